-- put_tasks: tasks that are new to their source; one that exists is left as it is.
-- KEYS as in open_dispatch.
-- ARGV[1..7] of each task: id, source, key, priority, at (microseconds, 0: now), every (microseconds, 0: never), payload
-- Returns 'missing', source when a source does not exist (then nothing was put), else 'put' and 1 or 0 for each.
-- Why: the record itself is the unique key: no second index that could be orphaned.
for i = 1, #ARGV, 7 do
  if not load(ARGV[i + 1]) then return { 'missing', ARGV[i + 1] } end
end
local kit, answer, fresh = moves(), { 'put' }, {}
for i = 1, #ARGV, 7 do
  local id, source, at = ARGV[i], ARGV[i + 1], tonumber(ARGV[i + 4])
  local key = base .. 't:' .. id
  if call('EXISTS', key) == 1 then
    answer[#answer + 1] = 0
  else
    local t = { source = source, attempt = '0', token = '0', accepted = '0', priority = ARGV[i + 3], every = ARGV[i + 5],
      created = now_text, key = ARGV[i + 2], error = '', payload = ARGV[i + 6] }
    if at > now then
      kit.delay(id, t, at)
    else
      kit.enqueue(id, t)
      fresh[source] = true
    end
    call('SET', key, kit.compose(t))
    answer[#answer + 1] = 1
  end
end
for _, source in ipairs(names(fresh)) do place(source, load(source)) end
close()
return answer
