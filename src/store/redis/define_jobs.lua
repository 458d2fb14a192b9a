-- define_jobs: a node says what it defines.
-- KEYS[1] definitions  hash node -> 'DIGEST JSON'  KEYS[2] nodes channel
-- ARGV[1] node  ARGV[2] 'DIGEST JSON'
-- Returns 1.
-- Why: apart from the reports, which come every second and are read as often.
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
redis.call('PUBLISH', KEYS[2], '{"event":"nodes"}')
return 1
