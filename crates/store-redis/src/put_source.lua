-- put_source: make a source, or change its rules.
-- KEYS as in open_dispatch.
-- ARGV[1] source  ARGV[2..] of each rule: field, value (0: none)  microseconds, a count, or 0 or 1
-- ARGV[last] as in note_act
-- Returns 1 when it is new.
-- Why: tasks, starts and blocks are kept, and the new rules hold for the very next claim. Of the rules only those are known here by which
-- the scripts decide; the table of all of them is in domain::dispatch::rules.
local source, key = ARGV[1], base .. 's:' .. ARGV[1]
local before = call('HMGET', key, 'plain', 'started')
local fresh = call('ZADD', base .. 'names', 0, source)
if fresh == 1 then
  -- What every claim reads comes first: a small hash is searched from its beginning.
  call('HSET', key, 'lease', '0', 'plain', '0', 'ends', '0', 'promised', '0', 'token', '0', 'started', '0', 'done', '0')
end
call('HSET', key, 'ends', '0', unpack(ARGV, 2, #ARGV - 1))
local now_is = call('HMGET', key, 'gap', 'count')
if now_is[2] == '0' then call('DEL', base .. 'w:' .. source) end
judge(source)
-- A source without limits does not note its starts: the newest may have been just now.
if before[1] == '1' and before[2] ~= '0' and now_is[1] ~= '0' then call('HSET', key, 'last', now_text) end
place(source, load(source))
close()
note_act(now)
return fresh
