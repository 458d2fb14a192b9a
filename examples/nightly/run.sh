#!/bin/sh
# A settlement that runs every 20 seconds, once for each tick, on one of two nodes.
#
#   sh examples/nightly/run.sh
#
# It prints what the script says, and the commands to try in a second terminal. Ctrl-C ends everything.
#
# SOLOIST  the program (default: the first of target/dist/soloist, target/release/soloist, target/debug/soloist, else soloist of the PATH; it is printed)
# STATE    where everything is kept (default: a new temporary directory, removed at the end)
# PORTS    of the two nodes (default: "8080 8081")
set -eu
here=$(cd "$(dirname -- "$0")" && pwd)
root=$here/../..
ports=${PORTS:-8080 8081}

fail() {
    echo "run.sh: $1" >&2
    exit 1
}

program=${SOLOIST:-}
for built in "$root/target/dist/soloist" "$root/target/release/soloist" "$root/target/debug/soloist"; do
    [ -n "$program" ] || [ ! -x "$built" ] || program=$built
done
[ -n "$program" ] || program=$(command -v soloist) || fail "no soloist: install it, build it (cargo build --release), or say where it is: SOLOIST=/path/to/soloist"

pids=
temporary=
state=${STATE:-}
[ -n "$state" ] || { state=$(mktemp -d) && temporary=$state; }
finish() {
    for pid in $pids; do kill "$pid" 2>/dev/null || :; done
    wait
    [ -z "$temporary" ] || rm -rf -- "$temporary"
}
trap finish EXIT
trap 'exit 130' INT TERM

mkdir -p -- "$state"
cp -- "$here/soloist.toml" "$here/settle.sh" "$state/"
# Not for what is to be killed later: $! would be a shell.
soloist() { "$program" --config "$state/soloist.toml" "$@"; }
echo "the program is $program"
echo "everything is kept in $state; settled.txt will be there, too"
soloist check
[ -e "$state/soloist.db" ] ||
    head -c 24 /dev/urandom | od -An -tx1 | tr -d ' \n' | soloist user add li --role admin --password-stdin

node=a
for port in $ports; do
    "$program" --config "$state/soloist.toml" serve --listen "127.0.0.1:$port" --node "node-$node" >"$state/node-$node.out" 2>"$state/node-$node.log" &
    pids="$pids $!"
    echo "node-$node is process $!: http://127.0.0.1:$port"
    tries=0
    until [ -s "$state/node-$node.out" ]; do
        tries=$((tries + 1))
        [ "$tries" -lt 100 ] || fail "node-$node did not start: $(tail -n 5 "$state/node-$node.log")"
        sleep 0.1
    done
    node=b
done
soloist on settle --user li

cat <<END

In a second terminal:

  alias s='$program --config $state/soloist.toml'
  s status                                            # which node runs it, or when the next tick is
  s ticks settle                                      # what became of each tick
  s trigger settle --user li --param day=2026-11-11 --wait
  kill -9 PID                                         # of the node that runs it: the other goes on with attempt 2

$(soloist link 2>&1)

END
"$program" --config "$state/soloist.toml" logs settle --follow &
pids="$pids $!"
wait
