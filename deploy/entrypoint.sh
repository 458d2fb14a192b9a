#!/bin/sh
# Runs soloist in a container, and lets its guards finish when it dies.
#
# A container ends with its first process, and everything in it at that instant: after a crash or an out-of-memory kill
# of the node no guard could give its lease back, and the job would wait for the lease to run out. This shell stands
# between, hands signals on, and ends when the last guard has done its work, or after ten seconds.
set -u

# A shell gives /dev/null to what it runs beside itself, unless it is told otherwise: `docker run -i ... task put <tasks`.
exec 3<&0
soloist "$@" <&3 3<&- &
node=$!
exec 3<&-
interrupted=
# HUP reloads.
trap 'interrupted=yes; kill -TERM "$node" 2>/dev/null' TERM
trap 'interrupted=yes; kill -INT "$node" 2>/dev/null' INT
trap 'interrupted=yes; kill -HUP "$node" 2>/dev/null' HUP

# A signal interrupts `wait`; what counts is how the node ended. 127: an earlier wait was told already.
code=0
while :; do
    interrupted=
    wait "$node"
    ended=$?
    [ "$ended" -eq 127 ] || code=$ended
    [ -n "$interrupted" ] || break
done

# By their titles: a guard that its nursery made shows no other arguments.
guards() { grep -sqazE '^soloist (guard|release agent) of ' /proc/[0-9]*/cmdline; }

looks=100
while [ "$looks" -gt 0 ] && guards; do
    looks=$((looks - 1))
    sleep 0.1
done
exit "$code"
