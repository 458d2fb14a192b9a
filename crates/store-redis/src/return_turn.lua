-- return_turn: a turn whose grant never left its node ends, unless the same request was answered again.
-- KEYS as in open_rotation.
-- ARGV[1] rotation  ARGV[2] turn
-- Returns 'missing', or whether it did ('1' or '0').
-- Why: a client that hung up must not cost the others a whole lease. Nor itself: asked again, its request may have another.
local r = open(ARGV[1])
if not r then return { 'missing' } end
local mine = held(r) and r.f.turn == ARGV[2] and r.f.seen ~= '1'
if mine then
  local request = table.concat({ r.name, r.f.kind, r.f.worker, r.f.request }, ' ')
  call('DEL', base .. 'k:' .. redis.sha1hex(request))
  finish(r, 'lost', now)
end
settle(r)
close()
return { mine and '1' or '0' }
