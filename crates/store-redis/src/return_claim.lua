-- return_claim: what is still held of a claim goes back unworked, to the head of its priority.
-- KEYS as in open_dispatch.
-- ARGV[1] claim  ARGV[2] only  the owner whose claim it must be (how its id begins); '' for any
-- ARGV[3] 'unseen'  only if no repeated request was answered with it (exchange_tasks marks it then); or absent
-- Returns how many went back.
-- Why: a collector that stops, or that hung up before it was answered, must not cost a task an attempt or a lease. The
-- request is forgotten as well: asked again, it is a new one.
local key = base .. 'c:' .. ARGV[1]
local memory = call('GET', key)
local collector = string.match(memory or '', '^%d+ (%S+)')
if not collector or (ARGV[2] ~= '' and ARGV[2] ~= string.sub(ARGV[1], 1, 32)) then return 0 end
if ARGV[3] == 'unseen' and string.find(memory, '\n+', 1, true) then return 0 end
if ARGV[3] ~= 'unseen' then call('HSET', base .. 'collectors', collector, now_text) end
local returned, freed, held = 0, {}, {}
for id, token_held in string.gmatch(memory, '\n(%S+) (%d+)') do
  table.insert(held, 1, { id, token_held })
end
for _, one in ipairs(held) do
  local record = call('GET', base .. 't:' .. one[1])
  local t = record and moves().parse(record)
  if t and t.state == 'leased' and t.token == one[2] and tonumber(t.at) > now then
    freed[t.source] = true
    call('ZREM', base .. 'l:' .. t.source, one[1])
    t.attempt = integer(t.attempt - 1)
    moves().enqueue(one[1], t, true)
    call('SET', base .. 't:' .. one[1], moves().compose(t))
    returned = returned + 1
  end
end
call('DEL', key)
for _, source in ipairs(names(freed)) do place(source, load(source)) end
close()
return returned
