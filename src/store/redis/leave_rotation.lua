-- leave_rotation: a waiter waits no more.
-- KEYS as in open_rotation.
-- ARGV[1] rotation  ARGV[2] waiter
-- Returns 1.
-- Why: whoever was promised the turn makes way for the next at once.
local r = open(ARGV[1])
if not r then return 1 end
leave(r, ARGV[2])
settle(r)
close()
return 1
