-- read_runs: a page of a job's runs that have ended, newest first, and its record.
-- KEYS[1] record  KEYS[2] runs  sorted set of 'ID JSON' by token
-- ARGV[1] only runs older than this id ('' for all)  ARGV[2] limit  > 0
-- Returns the record (false when there is none), then the runs as 'ID JSON'.
-- Why: in one step, so that a run that ends meanwhile is neither missing nor there twice. An id says nothing about the
-- order, so a page begins where that id is found; nothing is older than one that is not known.
local record = redis.call('GET', KEYS[1])
local before, from, stretch = ARGV[1], 0, 100
if before ~= '' then
  from = nil
  local begin, sought = 0, before .. ' '
  while not from do
    local some = redis.call('ZRANGE', KEYS[2], begin, begin + stretch - 1, 'REV')
    if not some[1] then
      return { record, {} }
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
return { record, redis.call('ZRANGE', KEYS[2], from, from + ARGV[2] - 1, 'REV') }
