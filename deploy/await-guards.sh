#!/bin/sh
# Waits until the guards of this unit have given their leases back, at most ten seconds. For ExecStop and ExecStopPost.
#
# After a crash guards are still at work for some milliseconds; killed in it, they could give no lease back, and other nodes would wait for
# it to run out. What is left when all have had their time is killed, as with KillMode=mixed, but not the watcher of programs.
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

# systemd says what came of the service to ExecStopPost alone. Without a cgroup of its own nobody knows what is the unit's.
case ${SERVICE_RESULT:-}:$own in
    :*) exit 0 ;;
    *:*/.control) ;;
    *) exit 0 ;;
esac
find "$top" -name cgroup.procs -not -path "$top/.control/*" -exec cat {} + 2>/dev/null | while read -r pid; do
    grep -qsa '^soloist watcher of ' "/proc/$pid/cmdline" || kill -9 "$pid" 2>/dev/null
done
exit 0
