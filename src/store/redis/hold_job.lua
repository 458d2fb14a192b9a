-- hold_job: forbid a job whatever the switches say.
-- KEYS[1] state  hash  KEYS[2] events channel
-- ARGV[1] job  ARGV[2] user  ARGV[3] reason
-- Returns 1.
-- Why: a hold outranks every participation and keeps them, so resuming restores what people wanted.
redis.call('HSET', KEYS[1], 'hold_by', ARGV[2], 'hold_reason', ARGV[3], 'hold_since', integer(store_now()))
change(KEYS[1], KEYS[2], ARGV[1], 'held')
return 1
