-- release_lease: give a lease back under which nothing runs.
-- KEYS[1] lease  hash  KEYS[2] state  hash  KEYS[3] events channel
-- ARGV[1] job  ARGV[2] owner
-- Returns 1 when it was given back, 0 when it was not the caller's any more.
-- Why: only the own lease; its owner is random per acquisition, and who lost the answer to its request knows no token.
-- `released` keeps a late renewal from resurrecting it.
local held = redis.call('HMGET', KEYS[1], 'owner', 'token')
if held[1] ~= ARGV[2] then
  return 0
end
redis.call('DEL', KEYS[1])
redis.call('HSET', KEYS[2], 'released', held[2])
change(KEYS[2], KEYS[3], ARGV[1], 'lease_released')
return 1
