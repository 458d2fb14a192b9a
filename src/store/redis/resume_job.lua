-- resume_job: allow a held job again, and forgive it.
-- KEYS[1] state  hash  KEYS[2] events channel
-- ARGV[1] job
-- Returns 1.
-- Why: whoever resumes wants it to run now, so crashes and waits of before are forgotten.
redis.call('HDEL', KEYS[1], 'hold_by', 'hold_reason', 'hold_since', 'given_up', 'crashes', 'next_what', 'next_at')
change(KEYS[1], KEYS[2], ARGV[1], 'resumed')
return 1
