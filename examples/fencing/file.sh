#!/bin/sh
# Appends a line to a file that refuses whoever has lost the lease: `echo "shipped 10248" | sh file.sh shipped.log`.
#
# SOLOIST       the program (default: soloist, which a node puts first in the PATH of its scripts)
# SOLOIST_TOKEN the fencing token that Soloist gives to every script
#
# A file compares nothing, so `soloist fence` does: it locks FILE.fence, compares the token with the newest one stored
# there, and keeps the lock until the command has ended. Exit code 4: refused, a newer run has written.
set -eu

line=$(cat)
# shellcheck disable=SC2016
exec "${SOLOIST:-soloist}" fence "$1.fence" -- sh -c 'printf "%s\n" "$1" >>"$2"' sh "$line" "$1"
