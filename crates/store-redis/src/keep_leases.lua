-- keep_leases: extend up to a hundred leases, each by itself.
-- KEYS[1] epoch (trust_store), then for each: lease, the record beside it
-- ARGV[1..5] trust_store, then for each: how the text of the lease must begin, ttl  milliseconds, > 0
-- Returns guard, then for each the milliseconds that were left (-1: it had no end), or -3 when the text begins otherwise or there
-- is no record.
-- Why: renewing changes no state that people see, so it touches no record and tells nothing. What becomes of a lease that
-- is not as its holder remembers it is decided by the caller.
local answers, records, ends = { guard }, {}, {}
for i = 3, #KEYS, 2 do records[#records + 1] = KEYS[i] end
-- Mostly all of the records are there, and one question is enough.
local all = records[1] and redis.call('EXISTS', unpack(records)) == #records
for i = 2, #KEYS, 2 do
  local lease, begins, ttl = KEYS[i], ARGV[i + 4], ARGV[i + 5]
  local left, size = -3, #begins
  ends[size] = ends[size] or string.format('%d', size - 1)
  if redis.call('GETRANGE', lease, '0', ends[size]) == begins and (all or redis.call('EXISTS', KEYS[i + 1]) == 1) then
    left = redis.call('PTTL', lease)
    redis.call('PEXPIRE', lease, ttl)
  end
  answers[#answers + 1] = left
end
return answers
