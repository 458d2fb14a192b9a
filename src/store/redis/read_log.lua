-- read_log: lines of output after a number, or the newest ones.
-- KEYS[1] log  list of JSON lines, oldest first
-- ARGV[1] only lines with a greater number ('' for the newest)  ARGV[2] limit
-- Returns JSON lines, oldest first.
-- Why: the kept numbers are contiguous; number and place are read in one step.
local function integer(n)
  return string.format('%.0f', n)
end
local limit, kept = tonumber(ARGV[2]), redis.call('LLEN', KEYS[1])
if limit == 0 or kept == 0 then
  return {}
end
if ARGV[1] == '' then
  return redis.call('LRANGE', KEYS[1], -limit, -1)
end
local first = tonumber(string.match(redis.call('LINDEX', KEYS[1], 0), '"seq":(%d+)'))
local from = math.max(0, tonumber(ARGV[1]) + 1 - first)
if from >= kept then
  return {}
end
return redis.call('LRANGE', KEYS[1], integer(from), integer(from + limit - 1))
