-- observe_leases: version and remaining lease of up to a hundred jobs.
-- KEYS[1] epoch (guard_store), then for each: state, lease
-- ARGV[1..5] guard_store
-- Returns guard, then for each: version, milliseconds left (-1 when free).
-- Why: cheap enough for every second, and the call by which every node notices a store that forgot.
local answers = { guard }
for i = 2, #KEYS, 2 do
  local left = redis.call('PTTL', KEYS[i + 1])
  local full = tonumber(redis.call('HGET', KEYS[i + 1], 'ttl'))
  if not full then
    left = -1
  elseif left < 0 or left > full then
    left = full
  end
  answers[#answers + 1] = tonumber(redis.call('HGET', KEYS[i], 'version')) or 0
  answers[#answers + 1] = left
end
return answers
