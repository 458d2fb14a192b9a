-- order_runs: fragment before every script that reads or writes the history of runs: puts it into the store's order.
-- KEYS none of its own; the script that follows passes the history.
-- ARGV none of its own.
-- Returns nothing by itself; leaves `order_runs(runs)`.
-- Why: the history is a sorted set of 'ID JSON' by fencing token, which the store mints from its own clock and which never
-- goes back. A run id carries the clock of the node that made it, which may be hours off. Entries with score 0 were written
-- by a version that ordered by run id; they get their token the first time anybody comes by.
local function order_runs(runs)
  local first = redis.call('ZRANGE', runs, 0, 0, 'WITHSCORES')
  if not first[1] or tonumber(first[2]) > 0 then
    return
  end
  for _, written in ipairs(redis.call('ZRANGE', runs, 0, 0, 'BYSCORE')) do
    redis.call('ZADD', runs, string.match(written, '"token":(%d+)') or 1, written)
  end
end
