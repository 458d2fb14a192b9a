-- open_store: check or write the schema version and begin an epoch where there is none.
-- KEYS[1] epoch (guard_store)  KEYS[2] schema  integer
-- ARGV[1..5] guard_store  ARGV[6] schema of this program  integer  ARGV[7] emptiness  'unused': it was found empty
-- and no process that had opened it was connected; 'young': the same, on a server that started recently; 'in_use'
-- ARGV[8] longest lease that the caller knows of  milliseconds
-- Returns guard, then the schema version that the store has now.
-- Why: a wholly fresh store starts without waiting; one whose epoch alone is gone, or which is empty while
-- others use it, lost something. A server that has just started may have started empty. Both begin with a quarantine of
-- the longest lease that the caller knows of, which whoever knows of a longer one makes longer. A newer schema is
-- reported and left alone.
local schema = tonumber(redis.call('GET', KEYS[2]))
if begun and ARGV[1] == '' and (schema or ARGV[7] ~= 'unused') then
  redis.call('HSET', KEYS[1], 'since', string.format('%.0f', now),
    'until', string.format('%.0f', now + tonumber(ARGV[8])), 'longest', ARGV[8])
end
if not schema then
  schema = tonumber(ARGV[6])
  redis.call('SET', KEYS[2], ARGV[6])
end
return { guard, schema }
