-- read_log: lines of output after a number, before a number, or the newest ones.
-- KEYS[1] log  list of JSON lines, oldest first
-- ARGV[1] 'after', 'before' or 'newest'  ARGV[2] that number  ARGV[3] limit
-- Returns JSON lines, oldest first: the first ones after the number, else the last ones.
-- Why: the kept numbers are contiguous; number and place are read in one step.
local function integer(n)
  return string.format('%.0f', n)
end
local limit, kept = tonumber(ARGV[3]), redis.call('LLEN', KEYS[1])
if limit == 0 or kept == 0 then
  return {}
end
if ARGV[1] == 'newest' then
  return redis.call('LRANGE', KEYS[1], -limit, -1)
end
local first = tonumber(string.match(redis.call('LINDEX', KEYS[1], 0), '"seq":(%d+)'))
local from, to
if ARGV[1] == 'after' then
  from = math.max(0, tonumber(ARGV[2]) + 1 - first)
  to = from + limit - 1
else
  to = math.min(kept, tonumber(ARGV[2]) - first) - 1
  from = math.max(0, to - limit + 1)
end
if from >= kept or to < 0 then
  return {}
end
return redis.call('LRANGE', KEYS[1], integer(from), integer(to))
