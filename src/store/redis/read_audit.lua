-- read_audit: a stretch of the audit before a number.
-- KEYS[1] audit  list of JSON entries, oldest first  KEYS[2] audit_seq  integer
-- ARGV[1] only entries with a smaller number ('' for all)  ARGV[2] limit
-- Returns JSON entries, oldest first.
-- Why: the kept numbers are contiguous and end at audit_seq. Filtering by target is the caller's: a long scan
-- in here would stop the server for everybody.
local kept, newest = redis.call('LLEN', KEYS[1]), tonumber(redis.call('GET', KEYS[2])) or 0
local before = tonumber(ARGV[1]) or newest + 1
local last = math.min(kept, kept - (newest + 1 - before)) - 1
if last < 0 or tonumber(ARGV[2]) == 0 then
  return {}
end
return redis.call('LRANGE', KEYS[1], integer(math.max(0, last + 1 - tonumber(ARGV[2]))), integer(last))
