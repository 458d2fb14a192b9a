-- read_runs: a page of a job's runs, newest first.
-- KEYS[1] state  hash  KEYS[2] runs  sorted set of 'ID JSON'
-- ARGV[1] only runs older than this id ('' for all)  ARGV[2] limit
-- Returns the present run as id, token, node, started (nils when none), then the ended ones as 'ID JSON'.
-- Why: in one step, so that a run that ends meanwhile is neither missing nor there twice.
local page = redis.call('HMGET', KEYS[1], 'run_id', 'run_token', 'run_node', 'run_started')
local from = ARGV[1] == '' and '+' or '(' .. ARGV[1]
local ended = redis.call('ZRANGE', KEYS[2], from, '-', 'BYLEX', 'REV', 'LIMIT', 0, ARGV[2])
return { page, ended }
