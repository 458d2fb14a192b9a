-- trust_store: fragment before every script that grants, keeps or reads leases: is this the store that the caller knows?
-- KEYS[1] epoch  hash (domain/doubt.rs)
-- ARGV[1] id, ARGV[2] version  of the record that the caller knows; '' when there was none
-- ARGV[3] run id of the server on which it looked; '' before its first look, which learns and does nothing
-- ARGV[4] until  end of the quarantine as that record says, or the next  milliseconds
-- ARGV[5] next   the record from now on  MessagePack, names and values; '': it stays
-- Returns a READONLY error on a replica; { { 'doubted', now, run id, seconds since its start, record } } when the store is not as
-- known: then nothing was done. Leaves for the script that follows: `now`, `quarantine` (milliseconds left), `guard` (the
-- first element of its answer: 'trusted', now, replicas that are online).
-- Why: whether a store may be believed is decided by the caller (domain::doubt). That decision holds only for the record
-- and the server that it looked at. A replica is refused even where it could answer: what it says may be old.
local now, quarantine, guard
do
  local time = redis.call('TIME')
  now = time[1] * 1000 + math.floor(time[2] / 1000)
  local info = redis.call('INFO', 'server', 'replication')
  if string.find(info, 'role:slave', 1, true) then
    return redis.error_reply('READONLY this server is a replica')
  end
  local held = redis.call('HMGET', KEYS[1], 'id', 'version')
  if ARGV[3] == '' or (held[1] or '') ~= ARGV[1] or (held[2] or '') ~= ARGV[2]
    or not string.find(info, 'run_id:' .. ARGV[3], 1, true) then
    local up = string.match(info, 'uptime_in_seconds:(%d+)')
    return { { 'doubted', now, string.match(info, 'run_id:(%w+)') or '', up or '0', redis.call('HGETALL', KEYS[1]) } }
  end
  if ARGV[5] ~= '' then
    redis.call('HSET', KEYS[1], unpack(cmsgpack.unpack(ARGV[5])))
  end
  quarantine = math.max(0, ARGV[4] - now)
  -- One that still loads its first copy would confirm nothing for as long as that takes.
  local _, replicas = string.gsub(info, 'state=online', '')
  guard = { 'trusted', now, replicas }
end
