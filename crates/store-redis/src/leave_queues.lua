-- leave_queues: a waiter waits no more.
-- KEYS as in open_dispatch.
-- ARGV[1] waiter  ARGV[2..] the sources it waited for; none: any
-- Returns 1.
-- Why: a place in the queue without a waiter would swallow a wake-up.
call('HDEL', base .. 'waits', ARGV[1])
if #ARGV == 1 then call('ZREM', base .. 'v', ARGV[1]) end
for i = 2, #ARGV do call('ZREM', base .. 'v:' .. ARGV[i], ARGV[1]) end
return 1
