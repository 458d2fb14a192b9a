-- close_run: fragment after publish_change and order_runs: moves a run into the history and clears it from the state.
-- KEYS none of its own; the script that follows passes the state hash and the history.
-- ARGV none of its own.
-- Returns nothing by itself; leaves `close_run(state, runs, run)` with run = { id, job, node, token, started,
-- ended, code, signal, reason, killed, keep }: instants in milliseconds, token and code as text, keep the
-- number of runs kept.
-- Why: a run is closed by its own node or, as lost, by the next holder; both must leave the same record. The
-- history is ordered by token (order_runs). Runs alike of which nobody saw anything share one entry, under the id and the
-- token of the last of them: a job that looks for work every second must not wash its failures out.
local RUN_FIELDS = { 'run_id', 'run_token', 'run_node', 'run_pid', 'run_started', 'run_phase', 'run_kill_at',
  'run_progress', 'run_last_output' }

-- Whether the run ended well and nobody saw anything of it: no line of output, no progress.
local function is_idle(state, run)
  if run.reason ~= 'exited' or run.code ~= '0' or tonumber(run.killed) > 0 then
    return false
  end
  local known = redis.call('HMGET', state, 'run_id', 'run_progress', 'run_last_output')
  return known[1] == run.id and not known[2] and not known[3]
end

-- Takes the newest entry out of the history if this idle run only goes on with it: idle too, on the same node, nobody
-- switched in between. Returns since when, and how many runs that are.
local function fold(state, runs, run)
  local newest = redis.call('ZRANGE', runs, -1, -1)[1] or ''
  local folded = string.match(newest, '"folded":(%d+)}$')
  local switched = tonumber(redis.call('HGET', state, 'switch_at') or 0)
  if not folded or string.match(newest, '"node":"([^"]*)"') ~= run.node
    or tonumber(string.match(newest, '"ended":(%d+)')) < switched then
    return run.started, 1
  end
  redis.call('ZREM', runs, newest)
  return tonumber(string.match(newest, '"started":(%d+)')), tonumber(folded) + 1
end

-- Entries of idle runs go first, the oldest of them before the others; all else stays for as long as there is one. The
-- newest entry always stays: by it an end that is reported twice is known.
local function trim(runs, keep)
  for _ = 1, redis.call('ZCARD', runs) - keep do
    local newest, idle = redis.call('ZRANGE', runs, -1, -1)[1], nil
    for from = 0, keep, 100 do
      for _, entry in ipairs(redis.call('ZRANGE', runs, from, from + 99)) do
        idle = idle or (entry ~= newest and string.find(entry, '"folded":', 1, true) and entry)
      end
      if idle then break end
    end
    redis.call('ZREM', runs, idle or redis.call('ZRANGE', runs, 0, 0)[1])
  end
end

local function close_run(state, runs, run)
  order_runs(runs)
  local started, folded = run.started, nil
  if is_idle(state, run) then
    started, folded = fold(state, runs, run)
  end
  local function or_null(text) return (text and text ~= '') and text or 'null' end
  local entry = '{"id":' .. cjson.encode(run.id) .. ',"job":"' .. run.job .. '","node":"' .. run.node
    .. '","token":' .. run.token .. ',"started":' .. integer(started) .. ',"ended":' .. integer(run.ended)
    .. ',"exit":{"code":' .. or_null(run.code) .. ',"signal":' .. or_null(run.signal)
    .. '},"end":"' .. run.reason .. '","processes_killed":' .. run.killed
    .. (folded and ',"folded":' .. integer(folded) or '') .. '}'
  redis.call('ZADD', runs, run.token, run.id .. ' ' .. entry)
  trim(runs, run.keep)
  redis.call('HSET', state, 'exit_code', run.code or '', 'exit_signal', run.signal or '',
    'exit_end', run.reason, 'exit_node', run.node, 'exit_at', integer(run.ended))
  redis.call('HDEL', state, unpack(RUN_FIELDS))
end
