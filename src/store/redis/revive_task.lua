-- revive_task: a dead task is ready again, its attempts counted from zero.
-- KEYS as in open_dispatch.
-- ARGV[1] id
-- Returns 1, or 0 when there is no such task; one that is not dead is left as it is.
-- Why: the history keeps what happened before.
local key = base .. 't:' .. ARGV[1]
local record = redis.call('GET', key)
if not record then return 0 end
local t = parse(record)
if t.state == 'dead' then
  local rules = load(t.source)
  redis.call('ZREM', base .. 'x:' .. t.source, ARGV[1])
  note(ARGV[1], t, 'revived')
  t.attempt, t.error = '0', ''
  enqueue(ARGV[1], t, rules)
  redis.call('SET', key, compose(t))
  place(t.source, rules)
end
close()
return 1
