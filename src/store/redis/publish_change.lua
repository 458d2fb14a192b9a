-- publish_change: fragment before every script that changes a job: one more version, one event, one step.
-- KEYS none of its own; the script that follows passes the state hash and the channel.
-- ARGV none of its own.
-- Returns nothing by itself; leaves `change(state, channel, job, event)`, `integer(n)` and `store_now()`.
-- Why: a change without its version and its event would leave browsers with an old picture. Integers go
-- through '%.0f', because Lua's own conversion loses the digits of a token.
local function integer(n)
  return string.format('%.0f', n)
end
local function store_now()
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end
local function change(state, channel, job, event)
  local version = redis.call('HINCRBY', state, 'version', 1)
  redis.call('PUBLISH', channel,
    '{"job":"' .. job .. '","version":' .. integer(version) .. ',"event":"' .. event .. '"}')
end
