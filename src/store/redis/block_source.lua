-- block_source: serve nobody from a source for a while.
-- KEYS as in open_dispatch.
-- ARGV[1] source  ARGV[2] how long from now, microseconds; 0 lifts a block
-- Returns 1, or 0 when there is no such source.
-- Why: whoever is told 429 stops everybody at once.
local rules = load(ARGV[1])
if not rules then return 0 end
rules.blocked = tonumber(ARGV[2]) > 0 and now + ARGV[2] or 0
redis.call('HSET', base .. 's:' .. ARGV[1], 'blocked', rules.blocked)
place(ARGV[1], rules)
close()
return 1
