#!/bin/sh
# Prints what a node tells as it happens, one frame of JSON a line, and comes back with jitter when the stream ends.
#
#   SOLOIST_API_TOKEN=sol_... sh examples/live/follow.sh outbound | jq .type
#
# SOLOIST_API_TOKEN  of any account that may look
# NODE               where a node is; http://127.0.0.1:8080 when it is not set
# arguments          jobs whose output is told too
#
# A frame "snapshot" comes first after each connection and replaces everything before it.
# Exit code: 1 when the node refuses (its reason is on stderr); it does not end by itself otherwise.
set -u
node=${NODE:-http://127.0.0.1:8080}
follow=$(IFS=,; echo "$*")

while :; do
    # The token goes over stdin: arguments of a process can be read by everybody on the machine. Less than a byte a second for
    # 40 s is a connection that is dead: a comment comes every 15 s.
    printf 'Authorization: Bearer %s\n' "$SOLOIST_API_TOKEN" |
        curl --silent --show-error --no-buffer --header @- --speed-limit 1 --speed-time 40 \
            --write-out '\nended: %{http_code}\n' "$node/api/v1/live${follow:+?follow=$follow}" |
        while IFS= read -r line; do
            case $line in
                'data: '*) printf '%s\n' "${line#data: }" ;;
                '{'*) printf '%s\n' "$line" >&2 ;;
                'ended: 40'[0134]) exit 1 ;;
            esac
        done || exit 1
    # Between 1 and 5 s: a thousand readers do not come back in the same moment.
    sleep "$(od -An -N2 -tu2 /dev/urandom | awk '{ print 1 + 4 * $1 / 65535 }')"
done
