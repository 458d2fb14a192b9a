#!/bin/bash
# Succeeds when the node in this container answers /healthz. Needs nothing but bash.
set -eu
port=${SOLOIST_LISTEN##*:}
exec 3<>"/dev/tcp/127.0.0.1/${port:-8080}"
printf 'GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n' >&3
read -r -t 2 _ status _ <&3
[ "$status" = 200 ]
