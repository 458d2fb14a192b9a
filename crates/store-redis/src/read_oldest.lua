-- read_oldest: the entries of a history that a transition may have to know or to drop.
-- KEYS[1] runs  sorted set of 'ID JSON' by token
-- ARGV[1] number  token  ARGV[2] mark  text
-- Returns the entry under that number, the oldest entry, and the oldest in which the mark stands; false when there is none. The newest
-- entry of all is neither of the last two.
-- Why: a history of a thousand entries is not read to drop one of them.
local runs = KEYS[1]
local count = redis.call('ZCARD', runs) - 1
local marked = false
for from = 0, count - 1, 100 do
  for _, entry in ipairs(redis.call('ZRANGE', runs, from, math.min(from + 99, count - 1))) do
    if string.find(entry, ARGV[2], 1, true) then
      marked = entry
      break
    end
  end
  if marked then break end
end
return {
  redis.call('ZRANGE', runs, ARGV[1], ARGV[1], 'BYSCORE')[1] or false,
  count > 0 and redis.call('ZRANGE', runs, 0, 0)[1] or false,
  marked,
}
