-- open_store: check or write the schema version.
-- KEYS[1] epoch (trust_store)  KEYS[2] schema  integer
-- ARGV[1..5] trust_store  ARGV[6] schema of this program  integer
-- Returns guard, then the schema version that the store has now; 0 when that key holds something of another program.
-- Why: after the epoch, so that a store with a schema has one. A newer schema is reported and left alone.
local written = redis.call('GET', KEYS[2])
if not written then
  redis.call('SET', KEYS[2], ARGV[6])
  return { guard, tonumber(ARGV[6]) }
end
return { guard, tonumber(written) or 0 }
