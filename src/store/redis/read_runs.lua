-- read_runs: a page of a job's runs, newest first.
-- KEYS[1] state  hash  KEYS[2] runs  sorted set of 'ID JSON' by token
-- ARGV[1] only runs older than this id ('' for all)  ARGV[2] limit  > 0
-- Returns the present run as id, token, node, started (nils when none), then the ended ones as 'ID JSON'.
-- Why: in one step, so that a run that ends meanwhile is neither missing nor there twice. An id says nothing about the
-- order, so a page begins where that id is found; nothing is older than one that nobody knows.
order_runs(KEYS[2])
local page = redis.call('HMGET', KEYS[1], 'run_id', 'run_token', 'run_node', 'run_started')
local before, from, stretch = ARGV[1], 0, 100
if before == page[1] then
  page = {}
elseif before ~= '' then
  page, from = {}, nil
  local begin, sought = 0, before .. ' '
  while not from do
    local some = redis.call('ZRANGE', KEYS[2], begin, begin + stretch - 1, 'REV')
    if not some[1] then
      return { { false, false, false, false }, {} }
    end
    for i, written in ipairs(some) do
      if string.sub(written, 1, #sought) == sought then
        from = begin + i
        break
      end
    end
    begin = begin + stretch
  end
end
local ended = redis.call('ZRANGE', KEYS[2], from, from + ARGV[2] - 1, 'REV')
return { { page[1] or false, page[2] or false, page[3] or false, page[4] or false }, ended }
