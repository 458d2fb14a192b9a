-- convert_job: put the record of schema 2 in the place of the fields of schema 1.
-- KEYS[1] state  hash  KEYS[2] lease  hash, then text  KEYS[3] participants  hash  KEYS[4] token  KEYS[5] record
-- ARGV[1] version of the state that was read  ARGV[2] body  ARGV[3] text of the lease ('' when there was none)
-- Returns 1, or 0 when the state has changed since it was read.
-- Why: one step, so that a process that starts in the middle of it finds each job whole, in one form or the other. The lease
-- lasts as long as
-- before: its script may be running.
if redis.call('HGET', KEYS[1], 'version') ~= ARGV[1] then
  return 0
end
local time = redis.call('TIME')
local at = string.format('%.0f', time[1] * 1000000 + time[2])
local left = redis.call('PTTL', KEYS[2])
redis.call('SET', KEYS[5], ARGV[1] .. ' ' .. at .. '\n' .. ARGV[2])
redis.call('DEL', KEYS[1], KEYS[2], KEYS[3], KEYS[4])
if left > 0 and ARGV[3] ~= '' then
  redis.call('SET', KEYS[2], ARGV[3], 'PX', left)
end
return 1
