-- check_token: fragment after publish_change: finds a stale token before anything is written.
-- KEYS none of its own; the script that follows passes the token key.
-- ARGV none of its own.
-- Returns nothing by itself; leaves `newer_than(minted, token)`: the newest token when it is newer than
-- `token`, else nil.
-- Why: a stale write is refused in the same atomic step. A token above the stored one was minted before the
-- store forgot; it is the newest, and is written down again.
local function newer_than(minted, token)
  local newest = redis.call('GET', minted)
  if newest and tonumber(newest) > tonumber(token) then
    return newest
  end
  if newest ~= token then
    redis.call('SET', minted, token)
  end
  return nil
end
