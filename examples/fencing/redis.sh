#!/bin/sh
# Sets a value in Redis that refuses whoever has lost the lease: `echo 10248 | sh redis.sh last-shipped`.
#
# REDIS_PORT    where redis-cli connects to on this machine (default 6379)
# SOLOIST_TOKEN the fencing token that Soloist gives to every script
#
# Comparing and setting are one script, redis.lua. The key of the token must never expire. Exit code 4: refused, a newer
# run has set it; end, and leave the rest to that run.
set -eu

here=$(dirname -- "$0")
token=${SOLOIST_TOKEN:-}
case $token in
    '' | *[!0-9]*) echo "redis.sh: SOLOIST_TOKEN is missing: run this as a job of Soloist" >&2; exit 2 ;;
esac
value=$(cat)

newest=$(redis-cli -e -p "${REDIS_PORT:-6379}" --eval "$here/redis.lua" "{$1}" "{$1}:token" , "$token" "$value")
[ "$newest" = ok ] || {
    echo "redis.sh: refused: token $token is older than $newest, which has written here" >&2
    exit 4
}
