#!/bin/sh
# Waits until the guards of this unit have given their leases back, at most ten seconds. For ExecStop and ExecStopPost.
#
# With KillMode=mixed systemd kills everything that is left as soon as the node is gone. After a crash guards are then still at
# work for some milliseconds; killed in it, they could give no lease back, and other nodes would wait for it to run out.
# systemd runs ExecStop after a crash, but not after the watchdog has aborted the node: that is for ExecStopPost.
set -u

# An orderly stop: the node is told to end next, and ends after its guards.
case ${MAINPID:-} in
    '') ;;
    *) kill -0 "$MAINPID" 2>/dev/null && exit 0 ;;
esac

# This unit's own cgroup; systemd may have put this process into one below it.
own=$(sed -n 's/^0:://p' /proc/self/cgroup)
top=/sys/fs/cgroup${own%/.control}

# Without version 2 of cgroups: every process.
processes() {
    if [ -f "$top/cgroup.procs" ]; then
        find "$top" -name cgroup.procs -exec cat {} + 2>/dev/null
    else
        find /proc -maxdepth 1 -name '[0-9]*' -printf '%f\n'
    fi
}

# By their titles, as deploy/entrypoint.sh finds them.
guards() {
    processes | sed 's#.*#/proc/&/cmdline#' | xargs -r grep -lsaE '^soloist (guard|release agent) of '
}

end=$(($(date +%s) + 10))
while [ -n "$(guards)" ] && [ "$(date +%s)" -lt "$end" ]; do
    sleep 0.1
done
