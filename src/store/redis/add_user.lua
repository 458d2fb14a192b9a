-- add_user: make an account.
-- KEYS[1] users  hash name -> JSON
-- ARGV[1] name  ARGV[2] the inside of a JSON object  ARGV[3] '1' only while no account exists
-- Returns 1, or 0 when the name is taken (or any exists).
-- Why: of two people who open the first link at once, one becomes the first admin.
if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 1 or (ARGV[3] == '1' and redis.call('EXISTS', KEYS[1]) == 1) then
  return 0
end
redis.call('HSET', KEYS[1], ARGV[1], '{"created":' .. integer(store_now()) .. ',' .. ARGV[2] .. '}')
return 1
