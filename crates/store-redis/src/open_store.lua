-- open_store: check or write the schema version.
-- KEYS[1] epoch (trust_store)  KEYS[2] schema  'soloist NUMBER'
-- ARGV[1..5] trust_store  ARGV[6] schema of this program  integer
-- Returns guard, then the schema version that the store has now; 0 when that key holds something of another program, -1 when
-- it holds a plain number, as before 1.0.
-- Why: after the epoch, so that a store with a schema has one. Another schema is reported and left alone.
local written = redis.call('GET', KEYS[2])
if not written then
  written = 'soloist ' .. ARGV[6]
  redis.call('SET', KEYS[2], written)
end
if string.find(written, '^%d+$') then
  return { guard, -1 }
end
return { guard, tonumber(string.match(written, '^soloist (%d+)') or 0) }
