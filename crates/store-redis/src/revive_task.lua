-- revive_task: a dead task is ready again, its attempts counted from zero.
-- KEYS as in open_dispatch.
-- ARGV[1] id  ARGV[2] as in note_act
-- Returns 1, or 0 when there is no such task; one that is not dead is left as it is.
-- Why: the history keeps what happened before.
local key = base .. 't:' .. ARGV[1]
local record = call('GET', key)
if not record then return 0 end
local kit = moves()
local t = kit.parse(record)
if t.state == 'dead' then
  call('ZREM', base .. 'x:' .. t.source, ARGV[1])
  kit.note(ARGV[1], t, 'revived')
  t.attempt, t.error = '0', ''
  kit.enqueue(ARGV[1], t)
  call('SET', key, kit.compose(t))
  place(t.source, load(t.source))
end
close()
note_act(now)
return 1
