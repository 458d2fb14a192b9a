-- judge_source: fragment of the scripts that change what limits a source.
-- KEYS as in open_dispatch.
-- ARGV none of its own.
-- Returns nothing by itself; leaves `judge(source)`, which keeps `plain`: whether the short way is right (open_dispatch).
-- Why: most sources have no limits, and then a claim need not read seven fields to find out. A block that is over leaves
-- the source on the long way, which finds the same.
local function judge(source)
  local f = call('HMGET', base .. 's:' .. source, 'gap', 'count', 'cap', 'paused', 'blocked')
  local plain = f[1] == '0' and f[2] == '0' and f[3] == '0' and f[4] == '0' and tonumber(f[5] or 0) <= now
  call('HSET', base .. 's:' .. source, 'plain', plain and '1' or '0')
end
