-- look_records: several things at one instant.
-- KEYS[1] any key of the tag under which they lie, which routes it on a cluster
-- ARGV[1] looks  MessagePack: a list of the instructions of look_at
-- Returns the instant in microseconds, then what each look found.
-- Why: one script, so that no answer mixes two instants.
local answers = { at }
for i, l in ipairs(cmsgpack.unpack(ARGV[1])) do
  answers[i + 1] = look(l)
end
return answers
