-- renew_leases: extend up to a hundred leases, an answer for each.
-- KEYS[1] epoch (guard_store), then for each: lease, token, state
-- ARGV[1..5] guard_store, then for each: owner, node, token, ttl  milliseconds, > 0, since and how long ago that was
-- (recall_instant), run that was reported ('' when none)
-- Returns guard, then for each the milliseconds that were left; -1 when it is lost; -2 less the milliseconds that were left
-- when the store had forgotten the run, or the lease (then none were left).
-- Why: a lease that is missing although nobody minted a newer token was forgotten by the store; its living
-- holder re-asserts it, which is what makes the quarantine harmless. One that was given back stays gone: a
-- late renewal must not resurrect it. The holder reports its run again when it hears that this was forgotten: after a
-- fail-over the lease may be known, because a replica confirmed it, and the run not. Publishes nothing: renewing changes no state that anybody sees.
local answers = { guard }
for i = 0, (#KEYS - 1) / 3 - 1 do
  local lease, minted, state = KEYS[2 + 3 * i], KEYS[3 + 3 * i], KEYS[4 + 3 * i]
  local owner, node, token, ttl, since, ago, run = unpack(ARGV, 6 + 7 * i, 12 + 7 * i)
  local held = redis.call('HMGET', lease, 'owner', 'token', 'ttl')
  if held[1] == owner and held[2] == token then
    local left = redis.call('PTTL', lease)
    redis.call('PEXPIRE', lease, ttl)
    if held[3] ~= ttl then
      redis.call('HSET', lease, 'ttl', ttl)
    end
    left = math.max(0, math.min(left, tonumber(held[3])))
    local forgot = run ~= '' and redis.call('HGET', state, 'run_id') ~= run
    answers[#answers + 1] = forgot and -2 - left or left
  else
    local mine = tonumber(token)
    local newest = math.max(tonumber(redis.call('GET', minted)) or 0, tonumber(held[2]) or 0)
    local given_back = tonumber(redis.call('HGET', state, 'released')) or 0
    -- An older token under the lease can only be a sleeper that re-asserted in a store that had forgotten us.
    if mine < newest or mine <= given_back or (held[1] and mine == newest) then
      answers[#answers + 1] = -1
    else
      redis.call('SET', minted, token)
      redis.call('DEL', lease)
      redis.call('HSET', lease, 'owner', owner, 'node', node, 'token', token, 'since',
        string.format('%.0f', recall(now, since, ago)), 'ttl', ttl)
      redis.call('PEXPIRE', lease, ttl)
      redis.call('HSET', state, 'holder', node)
      answers[#answers + 1] = -2
    end
  end
end
return answers
