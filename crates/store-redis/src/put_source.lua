-- put_source: make a source, or change its rules.
-- KEYS as in open_dispatch.
-- ARGV[1] source  ARGV[2] gap  ARGV[3] count (0: no window)  ARGV[4] span  ARGV[5] cap (0: none)  ARGV[6] lease
-- ARGV[7] attempts (0: no end)  ARGV[8] first  ARGV[9] max  ARGV[10] paused 0 or 1; durations in microseconds
-- ARGV[11] as in note_act
-- Returns 1 when it is new.
-- Why: tasks, starts and blocks are kept, and the new rules hold for the very next claim.
local source = ARGV[1]
local before = call('HMGET', base .. 's:' .. source, 'plain', 'started')
local fresh = call('ZADD', base .. 'names', 0, source)
if fresh == 1 then
  -- What every claim reads comes first: a small hash is searched from its beginning.
  call('HSET', base .. 's:' .. source, 'lease', ARGV[6], 'plain', '0', 'ends', '0', 'promised', '0', 'token', '0',
    'started', '0', 'done', '0')
end
call('HSET', base .. 's:' .. source, 'gap', ARGV[2], 'count', ARGV[3], 'span', ARGV[4], 'cap', ARGV[5],
  'lease', ARGV[6], 'attempts', ARGV[7], 'first', ARGV[8], 'max', ARGV[9], 'paused', ARGV[10], 'ends', '0')
if ARGV[3] == '0' then call('DEL', base .. 'w:' .. source) end
judge(source)
-- A source without limits does not note its starts: the newest may have been just now.
if before[1] == '1' and before[2] ~= '0' and ARGV[2] ~= '0' then call('HSET', base .. 's:' .. source, 'last', now_text) end
place(source, load(source))
close()
note_act(now)
return fresh
