-- read_nodes: all nodes that reported lately.
-- KEYS[1] nodes  hash node -> 'MILLISECONDS JSON'  KEYS[2] drains  set
-- ARGV[1] forgotten after, milliseconds
-- Returns for each: age of its report in milliseconds, 1 when draining else 0, report as JSON.
-- Why: ages by the store's clock, the only one that all share.
local answers, now, all = {}, store_now(), redis.call('HGETALL', KEYS[1])
for i = 1, #all, 2 do
  local at, report = string.match(all[i + 1], '^(%d+) (.*)$')
  local age = math.max(0, now - (tonumber(at) or 0))
  if report and age <= tonumber(ARGV[1]) then
    answers[#answers + 1] = age
    answers[#answers + 1] = redis.call('SISMEMBER', KEYS[2], all[i])
    answers[#answers + 1] = report
  end
end
return answers
