-- read_task: one task with its history.
-- KEYS as in open_dispatch.
-- ARGV[1] id
-- Returns its record, then its history; nothing when it is unknown.
-- Why: one step, so that the history belongs to the record.
local record = call('GET', base .. 't:' .. ARGV[1])
if not record then return {} end
return { record, unpack(call('LRANGE', base .. 'h:' .. ARGV[1], 0, -1)) }
