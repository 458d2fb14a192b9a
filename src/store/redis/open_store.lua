-- open_store: check or write the schema version and begin an epoch where there is none.
-- KEYS[1] epoch (guard_store)  KEYS[2] schema  integer
-- ARGV[1..5] guard_store  ARGV[6] schema of this program  integer  ARGV[7] unused  1 when it was found empty and no
-- process that had opened it was connected, else 0  ARGV[8] longest lease that the caller knows of  milliseconds
-- Returns guard, then the schema version that the store has now; 0 when that key holds something of another program.
-- Why: a store whose epoch alone is gone, or which is empty while others use it, lost something just now. One that is
-- wholly fresh may have lost something when its server started. Leases of before that moment may live for the longest
-- lease that the caller knows of, which whoever knows of a longer one makes longer. Redis counts the seconds of the
-- wall clock that began since its start: a server that says `1` may be a millisecond old. A newer schema is reported
-- and left alone.
local written = redis.call('GET', KEYS[2])
local schema = tonumber(written)
if written and not schema then
  return { guard, 0 }
end
if begun and ARGV[1] == '' then
  local lost = now
  if not schema and ARGV[7] == '1' then
    local up = tonumber(string.match(redis.call('INFO', 'server'), 'uptime_in_seconds:(%d+)')) or 0
    lost = now - 1000 * math.max(0, up - 1)
  end
  redis.call('HSET', KEYS[1], 'since', string.format('%.0f', lost),
    'until', string.format('%.0f', lost + tonumber(ARGV[8])), 'longest', ARGV[8])
end
if not schema then
  schema = tonumber(ARGV[6])
  redis.call('SET', KEYS[2], ARGV[6])
end
return { guard, schema }
