-- apply_step: carry out one step of the schema (store/schema.rs), whose text is put in below.
-- KEYS[1] schema  'soloist NUMBER'
-- ARGV[1] number that the store has before, ARGV[2] after it  ARGV[3] base: how the keys begin that belong to no job
-- Returns nothing: of two who try, the second finds the number changed, and does nothing.
-- Why: in one call with the number, so that a server which is killed meanwhile has both or neither.
if redis.call('GET', KEYS[1]) ~= 'soloist ' .. ARGV[1] then
  return
end
local base = ARGV[3]
do
{step}
end
redis.call('SET', KEYS[1], 'soloist ' .. ARGV[2])
