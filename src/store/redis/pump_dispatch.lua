-- pump_dispatch: do what the clock alone has made due.
-- KEYS as in open_dispatch.
-- ARGV none.
-- Returns now, when there is something to do next (0: unknown), how many leases had run out, 1 when there is more.
-- Why: any node may call this at any time; what one call did, the next finds done.
local expired, more = sweep(64)
-- Waiters who were woken and did not come: their tasks are for the next ones.
local lapsed = redis.call('ZRANGEBYSCORE', promises, '-inf', now, 'LIMIT', 0, 64)
for _, source in ipairs(lapsed) do
  redis.call('ZREM', promises, source)
  local rules = load(source)
  if rules then place(source, rules) end
end
more = more or #lapsed == 64
local next = never
for _, index in ipairs({ ends, dues, shut, promises }) do
  next = math.min(next, tonumber(redis.call('ZRANGE', index, 0, 0, 'WITHSCORES')[2] or never))
end
close()
return { integer(now), next < never and integer(next) or '0', expired, more and 1 or 0 }
