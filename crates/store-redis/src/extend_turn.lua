-- extend_turn: the present turn lasts for another lease.
-- KEYS as in open_rotation.
-- ARGV[1] rotation  ARGV[2] turn  ARGV[3] only if it is this worker's ('': any)
-- Returns 'missing'; 'yes', turn; or 'stale', how it ended ('': unknown), the present turn or ''.
-- Why: a worker that lost the turn must learn so, and must not lengthen another's.
local r = open(ARGV[1])
if not r then return { 'missing' } end
expire(r)
local is, past = own(r, ARGV[2], ARGV[3])
-- Else a store that forgot would be found out only when the turn ends, and the next one wait from then.
recovered(r)
if is then
  put(r, 'until', text(now + number(r, 'ttl')))
  local request = base .. 'k:'
    .. redis.sha1hex(r.name .. ' ' .. r.f.kind .. ' ' .. r.f.worker .. ' ' .. r.f.request)
  call('PEXPIRE', request, text(math.ceil(number(r, 'ttl') / 1000) + 60000))
end
settle(r)
close()
if is then return { 'yes', turn(r) } end
return { 'stale', past, turn(r) }
