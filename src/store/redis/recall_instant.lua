-- recall_instant: fragment before scripts that are told when something began.
-- KEYS none of its own.
-- ARGV none of its own.
-- Returns nothing by itself; leaves `recall(now, at, ago)`: the instant `at` that a store said once (milliseconds, '' when
-- none did), as long as that is `ago` milliseconds before `now`, else what is `ago` before `now`.
-- Why: a holder tells a store that forgot when its lease and its run began (domain::time::Began, where the tolerance is
-- explained); after a fail-over the clock may be another's, and what lasts must not seem younger or older than it is.
local function recall(now, at, ago)
  local counted = now - tonumber(ago)
  local said = tonumber(at)
  if said and math.abs(said - counted) <= 2000 then
    return said
  end
  return counted
end
