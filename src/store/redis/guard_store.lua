-- guard_store: fragment before every script that grants, renews or reads leases: may this store be believed?
-- KEYS[1] epoch      hash id, run_id, since, until, longest, before, turned, doubted
-- ARGV[1] known      epoch id that this client remembers; '' before its first call
-- ARGV[2] fresh      id for a new epoch, should one be needed
-- ARGV[3] remembered longest ttl that this client remembers, milliseconds
-- ARGV[4] ttl        longest ttl asked for now, milliseconds; 0 when none
-- ARGV[5] suspect    1 when this client saw the store's clock jump, else 0
-- Returns a READONLY error on a replica, else nothing by itself; leaves for the script that follows: `now`, `quarantine`
-- (milliseconds left), `begun` (there was no epoch), `guard` (the reply's first element: id, now, quarantine, longest ttl,
-- replicas online).
-- Why: FLUSHALL, a restart without persistence, a promoted replica and a clock jump each make a plain lock
-- grant twice. When the record is gone or another's, the server's run id changed, or a client saw the clock
-- jump, nothing is granted for the longest ttl that may be out there, while living holders re-assert theirs.
-- A replica is refused even where it could answer: what it says may be old.
-- Another run id is another epoch: the newest writes may be lost, and versions must not be compared across that.
-- `doubted` is when it was last found that something may be lost, for rotations (`memory` in look_at.lua).
-- `longest` and `before` are two buckets that turn slower than any lease lasts, so one long lease of last
-- week does not lengthen the quarantine of today.
local now, quarantine, begun, guard
do
  local time = redis.call('TIME')
  now = time[1] * 1000 + math.floor(time[2] / 1000)
  local known, fresh, remembered = ARGV[1], ARGV[2], tonumber(ARGV[3])
  local ttl, suspect = tonumber(ARGV[4]), ARGV[5] == '1'
  local info = redis.call('INFO', 'server', 'replication')
  if string.find(info, 'role:slave', 1, true) then
    return redis.error_reply('READONLY this server is a replica')
  end
  local server = string.match(info, 'run_id:(%w+)') or ''
  local held = redis.call('HMGET', KEYS[1],
    'id', 'run_id', 'since', 'until', 'longest', 'before', 'turned', 'doubted')
  local id, since, till = held[1], tonumber(held[3]) or 0, tonumber(held[4]) or 0
  local longest, before = tonumber(held[5]) or 0, tonumber(held[6]) or 0
  local replaced = held[2] and held[2] ~= server
  begun = not id
  local turned, dirty = tonumber(held[7]) or now, begun
  local doubted = tonumber(held[8])
  if begun or replaced or (known ~= '' and known ~= id) then
    longest = math.max(longest, remembered)
  end
  if ttl > 0 and now >= turned + 60000 + 2 * math.max(longest, before) then
    before, longest, turned, dirty = longest, ttl, now, true
  elseif ttl > longest then
    longest, dirty = ttl, true
  end
  local reach = math.max(longest, before)
  if known ~= '' and known ~= id then
    -- Emptied. Whoever notices first begins the quarantine; later ones only make sure it is long enough.
    if since == 0 then since = now end
    if not doubted or since > doubted then doubted, dirty = since, true end
    if till < since + reach then till, dirty = since + reach, true end
  end
  if replaced or suspect then
    since, till, dirty, doubted = now, now + reach, true, now
  end
  if begun or replaced then id = fresh end
  if since > 0 then
    -- Whoever noticed may never have heard of a lease as long as the one asked for now.
    till = math.max(till, since + ttl)
  end
  till = math.min(till, now + reach)
  if dirty then
    redis.call('HSET', KEYS[1], 'id', id, 'run_id', server, 'since', string.format('%.0f', since),
      'until', string.format('%.0f', till), 'longest', longest, 'before', before,
      'turned', string.format('%.0f', turned), 'doubted', string.format('%.0f', doubted or 0))
  end
  quarantine = math.max(0, till - now)
  -- One that still loads its first copy would confirm nothing for as long as that takes.
  local _, replicas = string.gsub(info, 'state=online', '')
  guard = { id, now, quarantine, reach, replicas }
end
