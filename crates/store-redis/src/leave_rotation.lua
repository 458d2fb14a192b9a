-- leave_rotation: a waiter waits no more.
-- KEYS as in open_rotation.
-- ARGV[1] rotation  ARGV[2] waiter
-- Returns 1.
-- Why: a waiter that was promised the turn makes way for the next at once.
local r = open(ARGV[1])
if not r then return 1 end
for _, kind in ipairs(r.types) do strike(r, kind, ARGV[2]) end
if r.f.promised == ARGV[2] then put(r, 'promised', '') end
settle(r)
close()
return 1
