-- pass_turn: the present turn ends by its holder's word.
-- KEYS as in open_rotation.
-- ARGV[1] rotation  ARGV[2] turn  ARGV[3] only if it is this worker's ('': any)  ARGV[4] outcome  ARGV[5] next ('': in order)
-- ARGV[6] not before (microseconds; 0: at once)
-- Returns 'missing', 'rotation' or 'type'; 'yes', turn, in how long something is due next (microseconds, at most a second); or
-- 'stale', how it ended ('': unknown), the present turn or ''.
-- Why: the one who comes next is promised the turn and woken in the same step.
local r = open(ARGV[1])
if not r then return { 'missing', 'rotation' } end
if ARGV[5] ~= '' and not r.place[ARGV[5]] then return { 'missing', 'type' } end
expire(r)
local is, past = own(r, ARGV[2], ARGV[3])
local passed = turn(r)
if is then
  finish(r, ARGV[4], now)
  put(r, 'next', ARGV[5])
  put(r, 'not_before', ARGV[6])
end
local due = settle(r)
close()
if is then return { 'yes', passed, text(due and math.max(0, math.min(due - now, 1000000)) or 1000000) } end
return { 'stale', past, turn(r) }
