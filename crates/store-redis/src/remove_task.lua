-- remove_task: a task is there no more, nor anything of it.
-- KEYS as in open_dispatch.
-- ARGV[1] id  ARGV[2] '1': also one that is in a collector's hands  ARGV[3] as in note_act
-- Returns 'missing', 'held' (then nothing was done) or 'done'.
-- Why: the collector that had it in hand finds it unknown; its key may be put again, as a new task.
local id = ARGV[1]
local record = call('GET', base .. 't:' .. id)
if not record then return 'missing' end
local t = moves().parse(record)
if t.state == 'leased' and ARGV[2] ~= '1' then return 'held' end
if t.state == 'done' then
  call('LREM', base .. 'done', '1', id)
else
  local sets = { ready = 'q:', due = 'd:', leased = 'l:', dead = 'x:' }
  call('ZREM', base .. sets[t.state] .. t.source, id)
end
call('DEL', base .. 't:' .. id, base .. 'h:' .. id)
if t.state ~= 'done' then place(t.source, load(t.source)) end
close()
note_act(now)
return 'done'
