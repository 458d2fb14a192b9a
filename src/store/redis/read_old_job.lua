-- read_old_job: everything that schema 1 knows of a job, at one instant.
-- KEYS[1] state  hash  KEYS[2] lease  hash  KEYS[3] participants  hash  KEYS[4] token  KEYS[5] runs  sorted set of 'ID JSON'
-- ARGV none.
-- Returns state (field, value, ...), lease (field, value, ...), milliseconds left of it, participants (user, since, ...), newest token
-- ('0' when none), the newest run ('' when none), how many runs.
-- Why: entries of the history with score 0 were ordered by run id; they get their token, which is the store's order.
local runs = KEYS[5]
for _, entry in ipairs(redis.call('ZRANGE', runs, 0, 0, 'BYSCORE')) do
  redis.call('ZADD', runs, string.match(entry, '"token":(%d+)') or 1, entry)
end
return {
  redis.call('HGETALL', KEYS[1]),
  redis.call('HGETALL', KEYS[2]),
  redis.call('PTTL', KEYS[2]),
  redis.call('HGETALL', KEYS[3]),
  redis.call('GET', KEYS[4]) or '0',
  redis.call('ZRANGE', runs, -1, -1)[1] or '',
  redis.call('ZCARD', runs),
}
