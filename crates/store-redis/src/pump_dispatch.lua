-- pump_dispatch: do what the clock alone has made due.
-- KEYS as in open_dispatch.
-- ARGV none.
-- Returns now, when there is something to do next (0: unknown), how many leases had run out, 1 when there is more.
-- Why: any node may call this at any time; what one call did, the next finds done.
local expired, more = sweep('64')
local next = call('ZRANGE', timers, 0, 0, 'WITHSCORES')[2] or '0'
close()
return { now_text, next, expired, more and 1 or 0 }
