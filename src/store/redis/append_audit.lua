-- append_audit: write down who did what.
-- KEYS[1] audit  list of JSON entries, oldest first  KEYS[2] audit_seq  integer
-- ARGV[1] the inside of a JSON object  ARGV[2] entries kept
-- Returns the entry's number.
-- Why: numbers are contiguous, so a page is one range; the store's clock is the only one that all share.
local id = redis.call('INCR', KEYS[2])
redis.call('RPUSH', KEYS[1], '{"id":' .. integer(id) .. ',"at":' .. integer(store_now()) .. ',' .. ARGV[1] .. '}')
redis.call('LTRIM', KEYS[1], -tonumber(ARGV[2]), -1)
return id
