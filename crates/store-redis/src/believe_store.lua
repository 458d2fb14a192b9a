-- believe_store: fragment instead of trust_store, before a plan that neither grants nor keeps a lease.
-- KEYS none of its own.
-- ARGV none of its own.
-- Returns nothing by itself; leaves `guard` (an empty array) and `quarantine`, 0.
-- Why: what such a plan looked at is compared with what is there; a store that forgot refuses it by that alone.
local guard, quarantine = {}, 0
