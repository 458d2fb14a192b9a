-- note_act: fragment before scripts of dispatch whose act has an entry in the audit; needs append_log.
-- KEYS none of its own.
-- ARGV[last] the entry  MessagePack, as append_log takes it; '' for none
-- Returns nothing by itself; leaves `note_act(micros)`, which such a script calls when it has done what was asked.
-- Why: the act and its entry are one step; all of it has one hash tag. The argument is the last one and always there, so that nothing
-- that a person typed is ever taken for it.
local function note_act(micros)
  if ARGV[#ARGV] ~= '' then
    append_log(cmsgpack.unpack(ARGV[#ARGV]), math.floor(micros / 1000))
  end
end
