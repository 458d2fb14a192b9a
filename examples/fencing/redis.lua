-- Sets a value unless a newer run has set it before; Redis runs the whole of it without anybody in between.
-- KEYS[1] the value  KEYS[2] the newest token seen (on a cluster: the same {hash tag} as KEYS[1])
-- ARGV[1] the caller's token  ARGV[2] the value
-- Returns 'ok', or the newer token. Tokens fit the 53 bits of a number in Lua.
local newest = redis.call('GET', KEYS[2])
if newest and tonumber(newest) > tonumber(ARGV[1]) then
    return newest
end
redis.call('SET', KEYS[2], ARGV[1])
redis.call('SET', KEYS[1], ARGV[2])
return 'ok'
