#!/bin/sh
# Two copies of a web service with a shipping thread, and a node of Soloist that says which of them ships.
#
#   sh examples/java-warehouse/run.sh
#
# Then open the link that it prints, switch "Outbound shipping" on, and look at both copies: one ships, the other waits. Kill one (its process id is
# printed): the other ships on, and no order is shipped twice. Ctrl-C ends everything.
#
# ORDERS    a CSV file of orders, the number in the first column (default: examples/outbound/orders.csv)
# PAUSE_MS  how long shipping one order takes (default: 1000)
# SOLOIST   the program (default: target/dist/soloist, target/release/soloist or target/debug/soloist, else soloist of the PATH)
# STATE     where everything is kept (default: a new temporary directory, removed at the end)
# LISTEN    of the node (default: 127.0.0.1:8080); PORTS: of the copies (default: "9001 9002")
set -eu
here=$(cd "$(dirname -- "$0")" && pwd)
root=$here/../..
orders=${ORDERS:-$root/examples/outbound/orders.csv}
listen=${LISTEN:-127.0.0.1:8080}
ports=${PORTS:-9001 9002}

fail() {
    echo "run.sh: $1" >&2
    exit 1
}

for tool in curl java javac; do
    command -v "$tool" >/dev/null || fail "$tool is needed: apt-get install curl default-jdk-headless"
done
[ -r "$orders" ] || fail "cannot read $orders: set ORDERS to a CSV file of orders"
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

mkdir -p -- "$state/classes"
javac -d "$state/classes" "$root"/clients/java/soloist-client/src/main/java/io/soloist/client/*.java "$here"/*.java || fail "the service does not compile"
cp -- "$here/soloist.toml" "$state/soloist.toml"
soloist() { "$program" --config "$state/soloist.toml" "$@"; }

"$program" --config "$state/soloist.toml" serve --listen "$listen" --node warehouse 2>"$state/node.log" &
pids="$pids $!"
tries=100
until curl -fsS "http://$listen/readyz" >/dev/null 2>&1; do
    tries=$((tries - 1))
    [ "$tries" -gt 0 ] || fail "the node does not answer: $(tail -n 5 "$state/node.log")"
    sleep 0.1
done

# Somebody to switch, and an account of the service itself: its token may hold this one lease and nothing else.
account() { head -c 24 /dev/urandom | od -An -tx1 | tr -d ' \n' | soloist user add "$1" --role "$2" --password-stdin; }
if [ ! -s "$state/token" ]; then
    account li admin
    account warehouse collector
    soloist token new --user warehouse --name example --lease outbound >"$state/token" 2>/dev/null
fi
SOLOIST_URLS=http://$listen
SOLOIST_API_TOKEN=$(cat "$state/token")
export SOLOIST_URLS SOLOIST_API_TOKEN

for port in $ports; do
    java -cp "$state/classes" Warehouse "$port" "$orders" "$state" &
    pids="$pids $!"
    echo "http://127.0.0.1:$port/  is copy $! of the service (kill -9 $! to see the other take over)"
done
echo "shipped orders: $state/shipped.csv"
echo "Soloist, where the job is switched on and off:"
soloist link
wait
