-- close_run: fragment after publish_change: moves a run into the history and clears it from the state.
-- KEYS none of its own; the script that follows passes the state hash and the history.
-- ARGV none of its own.
-- Returns nothing by itself; leaves `close_run(state, runs, run)` with run = { id, job, node, token, started,
-- ended, code, signal, reason, killed, keep }: instants in milliseconds, token and code as text, keep the
-- number of runs kept.
-- Why: a run is closed by its own node or, as lost, by the next holder; both must leave the same record. The
-- history is a sorted set ordered by run id (a ULID), so a page of it is one range.
local RUN_FIELDS = { 'run_id', 'run_token', 'run_node', 'run_pid', 'run_started', 'run_phase', 'run_kill_at',
  'run_progress', 'run_last_output' }
local function close_run(state, runs, run)
  local function or_null(text) return (text and text ~= '') and text or 'null' end
  local entry = '{"id":' .. cjson.encode(run.id) .. ',"job":"' .. run.job .. '","node":"' .. run.node
    .. '","token":' .. run.token .. ',"started":' .. integer(run.started) .. ',"ended":' .. integer(run.ended)
    .. ',"exit":{"code":' .. or_null(run.code) .. ',"signal":' .. or_null(run.signal)
    .. '},"end":"' .. run.reason .. '","processes_killed":' .. run.killed .. '}'
  redis.call('ZADD', runs, 0, run.id .. ' ' .. entry)
  redis.call('ZREMRANGEBYRANK', runs, 0, -run.keep - 1)
  redis.call('HSET', state, 'exit_code', run.code or '', 'exit_signal', run.signal or '',
    'exit_end', run.reason, 'exit_node', run.node, 'exit_at', integer(run.ended))
  redis.call('HDEL', state, unpack(RUN_FIELDS))
end
