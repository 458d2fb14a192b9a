-- extend_claim: a new lease from now for what is still held of a claim, as long as each was granted for.
-- KEYS as in open_dispatch.
-- ARGV[1] claim  ARGV[2] only  the owner whose claim it must be (how its id begins); '' for any
-- Returns 'missing', or 'extended', the earliest end (0: none), how many are kept, their ids, the ids of those lost.
-- Why: a finished task is in neither list; one whose lease has ended by the clock is lost, even if no other collector has it
-- yet.
local key = base .. 'c:' .. ARGV[1]
local memory = call('GET', key)
local collector = string.match(memory or '', '^%d+ (%S+)')
if not collector or (ARGV[2] ~= '' and ARGV[2] ~= string.sub(ARGV[1], 1, 32)) then return { 'missing' } end
call('HSET', base .. 'collectors', collector, now_text)
local kept, lost, earliest, last = {}, {}, never, 0
for id, held, granted in string.gmatch(memory, '\n(%S+) (%d+) ?(%d*)') do
  local record = call('GET', base .. 't:' .. id)
  local t = record and moves().parse(record)
  local lease = tonumber(granted)
  if lease and t and t.state == 'leased' and t.token == held and tonumber(t.at) > now then
    local rules = load(t.source)
    t.at = integer(now + lease)
    call('SET', base .. 't:' .. id, moves().compose(t, true))
    call('ZADD', base .. 'l:' .. t.source, now + lease, id)
    -- After the clock was set back it may end sooner than before, and than the timer says.
    if rules.ends == 0 or rules.ends > now + lease then
      rules.ends = now + lease
      call('ZADD', timers, 'LT', t.at, 'l:' .. t.source)
      call('HSET', base .. 's:' .. t.source, 'ends', t.at)
    end
    kept[#kept + 1] = id
    earliest, last = math.min(earliest, now + lease), math.max(last, now + lease)
  elseif t and t.accepted ~= held then
    lost[#lost + 1] = id
  end
end
if kept[1] then
  local head, rest = string.match(memory, '^(%d+ %S+ )%d+(.*)$')
  call('SET', key, head .. integer(last) .. rest, 'PX', integer(math.ceil((last - now) / 1000) + 60000))
end
local answer = { 'extended', kept[1] and integer(earliest) or '0', #kept }
for _, id in ipairs(kept) do answer[#answer + 1] = id end
for _, id in ipairs(lost) do answer[#answer + 1] = id end
return answer
