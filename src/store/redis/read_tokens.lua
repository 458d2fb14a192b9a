-- read_tokens: one API token, or all living ones.
-- KEYS[1] tokens  hash of secret -> 'CREATED EXPIRES JSON', milliseconds; expires 0 when never
-- ARGV[1] hash of the secret ('' for all)
-- Returns for each: created, expires, JSON.
-- Why: an expired token is never returned, by the store's clock.
local answers, now, all = {}, store_now(), nil
if ARGV[1] == '' then
  all = redis.call('HVALS', KEYS[1])
else
  all = { redis.call('HGET', KEYS[1], ARGV[1]) or '' }
end
for _, value in ipairs(all) do
  local created, expires, rest = string.match(value, '^(%d+) (%d+) (.*)$')
  if created and (expires == '0' or now < tonumber(expires)) then
    answers[#answers + 1] = created
    answers[#answers + 1] = expires
    answers[#answers + 1] = rest
  end
end
return answers
