-- block_source: serve no collector from a source for a while.
-- KEYS as in open_dispatch.
-- ARGV[1] source  ARGV[2] how long from now, microseconds; 0 lifts a block  ARGV[3] as in note_act
-- Returns 1, or 0 when there is no such source.
-- Why: one collector that is told 429 stops all of them at once.
if call('EXISTS', base .. 's:' .. ARGV[1]) == 0 then return 0 end
local till = tonumber(ARGV[2]) > 0 and now + ARGV[2] or 0
call('HSET', base .. 's:' .. ARGV[1], 'blocked', integer(till))
judge(ARGV[1])
place(ARGV[1], load(ARGV[1]))
close()
note_act(now)
return 1
