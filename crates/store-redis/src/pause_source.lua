-- pause_source: serve no collector from a source until it is resumed, or serve again.
-- KEYS as in open_dispatch.
-- ARGV[1] source  ARGV[2] paused 0 or 1  ARGV[3] as in note_act
-- Returns 1, or 0 when there is no such source.
-- Why: an operator who pauses must not write back rules that another has changed meanwhile.
if call('EXISTS', base .. 's:' .. ARGV[1]) == 0 then return 0 end
call('HSET', base .. 's:' .. ARGV[1], 'paused', ARGV[2])
judge(ARGV[1])
place(ARGV[1], load(ARGV[1]))
close()
note_act(now)
return 1
