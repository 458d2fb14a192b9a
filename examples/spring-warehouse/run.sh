#!/bin/sh
# Two copies of a Spring Boot service with a shipping thread, and a node of Soloist that says which of them ships.
#
#   sh examples/spring-warehouse/run.sh          starts them and prints where they are
#   sh examples/spring-warehouse/run.sh show     switches, kills, pauses and restarts them, prints a table, and ends
#
# Without "show": open the link that it prints, switch "Outbound shipping" on, and look at both copies. Ctrl-C ends everything.
#
# ORDERS    a CSV file of orders, the number in the first column (default: examples/outbound/orders.csv)
# PAUSE_MS  how long shipping one order takes (default: 1000; with "show" 250)
# SOLOIST   the program (default: target/release/soloist or target/debug/soloist, else soloist of the PATH)
# STATE     where everything is kept (default: a new temporary directory, removed at the end)
# LISTEN    of the node (default: 127.0.0.1:8080); PORTS: of the copies (default: "9001 9002")
set -eu
here=$(cd "$(dirname -- "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
orders=${ORDERS:-$root/examples/outbound/orders.csv}
listen=${LISTEN:-127.0.0.1:8080}
ports=${PORTS:-9001 9002}
show=${1:-}
pause=${PAUSE_MS:-$([ -n "$show" ] && echo 250 || echo 1000)}

fail() {
    echo "run.sh: $1" >&2
    exit 1
}

for tool in curl java javac mvn; do
    command -v "$tool" >/dev/null || fail "$tool is needed: apt-get install curl default-jdk-headless maven"
done
[ -z "$show" ] || [ "$show" = show ] || fail "it takes nothing, or the word show"
[ -r "$orders" ] || fail "cannot read $orders: set ORDERS to a CSV file of orders"
program=${SOLOIST:-}
for built in "$root/target/release/soloist" "$root/target/debug/soloist"; do
    [ -n "$program" ] || [ ! -x "$built" ] || program=$built
done
[ -n "$program" ] || program=$(command -v soloist) || fail "no soloist: install it, build it (cargo build --release), or say where it is: SOLOIST=/path/to/soloist"

pids=
temporary=
state=${STATE:-}
[ -n "$state" ] || { state=$(mktemp -d) && temporary=$state; }
finish() {
    # What is paused hears nothing else.
    for pid in $pids; do
        kill -CONT "$pid" 2>/dev/null || continue
        kill "$pid" 2>/dev/null || :
    done
    wait
    [ -z "$temporary" ] || rm -rf -- "$temporary"
}
trap finish EXIT
trap 'exit 130' INT TERM

mkdir -p -- "$state"
echo "building the service with Maven"
build() { mvn -q -B -ntp -f "$here/all/pom.xml" package "$@"; }
build -o >"$state/maven.log" 2>&1 || build -U >"$state/maven.log" 2>&1 ||
    fail "the service was not built. If Maven Central cannot be reached, try again when it can: $(tail -n 20 "$state/maven.log")"
cp -- "$here/soloist.toml" "$state/soloist.toml"
soloist() { "$program" --config "$state/soloist.toml" "$@"; }

"$program" --config "$state/soloist.toml" serve --listen "$listen" --node warehouse >"$state/node.log" 2>&1 &
pids="$pids $!"

# Waits at most half a minute until the command succeeds; the first word says what is waited for.
until_so() {
    awaited=$1 tries=300
    shift
    until "$@" >/dev/null 2>&1; do
        tries=$((tries - 1))
        [ "$tries" -gt 0 ] || fail "waited in vain until $awaited: $(tail -n 5 "$state"/*.log)"
        sleep 0.1
    done
}
until_so "the node answers" curl -fsS "http://$listen/readyz"

# Two people to switch, and an account of the service itself: its token may hold this one lease and nothing else.
account() { head -c 24 /dev/urandom | od -An -tx1 | tr -d ' \n' | soloist user add "$1" --role "$2" --password-stdin >>"$state/accounts.log"; }
if [ ! -s "$state/token" ]; then
    account li admin
    account wang operator
    account warehouse collector
    soloist token new --user warehouse --name example --lease outbound >"$state/token" 2>/dev/null
fi
SOLOIST_API_TOKEN=$(cat "$state/token")
export SOLOIST_API_TOKEN

# Starts the copy of this port, and waits until it is up.
copy() {
    java -Xmx160m -XX:TieredStopAtLevel=1 -jar "$here/target/warehouse.jar" --server.port="$1" --soloist.nodes="http://$listen" \
        --warehouse.orders="$orders" --warehouse.state="$state" --warehouse.pause-ms="$pause" >>"$state/copy-$1.log" 2>&1 &
    echo $! >"$state/pid-$1"
    pids="$pids $!"
    until_so "the copy $1 is up" curl -fsS "http://127.0.0.1:$1/"
    [ -n "$show" ] || echo "http://127.0.0.1:$1/  is copy $! of the service (kill -9 $! to see the other take over)"
}
for port in $ports; do copy "$port"; done

if [ -z "$show" ]; then
    echo "what the copies say: $state/copy-*.log"
    echo "Soloist, where the job is switched on and off:"
    soloist link
    wait
    exit
fi

# What is shipped, as any copy tells that is not paused.
shipped() {
    for port in $ports; do curl -fsS -m 1 "http://127.0.0.1:$port/shipped" 2>/dev/null && return; done
    return 1
}
count() { shipped | grep -c . || :; }
# The port of the copy that shipped last.
last() { shipped | tail -n 1 | sed 's/.*warehouse-\([0-9]*\),.*/\1/'; }
more() { [ "$(count)" -ge $((before + 4)) ]; }
other_ships() { now=$(last) && [ -n "$now" ] && [ "$now" != "$former" ]; }
milliseconds() { date +%s%3N; }

# Does something, waits until four more orders are shipped (by another copy, if the first word is "other"), and prints a row.
row() {
    who=$1 what=$2
    shift 2
    before=$(count) former=$(last) began=$(milliseconds)
    "$@"
    if [ "$who" = other ]; then until_so "the other ships" other_ships; fi
    took=$(($(milliseconds) - began))
    until_so "four more orders are shipped" more
    line=$(shipped | tail -n 1)
    printf '%-35s | %-14s | %16s | %7s | %s\n' "$what" "$(echo "$line" | cut -d, -f2)" "$(echo "$line" | cut -d, -f3)" "$(count)" \
        "$([ "$who" = other ] && echo "$took ms" || echo "")"
}
switch() { soloist "$1" outbound --user "$2" >/dev/null; }
both() { switch on wang && switch off li; }
signal() { kill "-$1" "$(cat "$state/pid-$2")"; }

printf '%-35s | %-14s | %16s | %7s | %s\n' "what happens" "who ships" "token" "shipped" "its first order after"
row any "li switches it on" switch on li
row any "wang too, then li off" both
row other "the copy that ships: kill -9" signal KILL "$(last)"
killed=$former
row any "the killed one is started again" copy "$killed"
row other "the copy that ships: paused" signal STOP "$(last)"
paused=$former
row any "the paused one wakes up" signal CONT "$paused"
row other "the copy that ships: kill (SIGTERM)" signal TERM "$(last)"
switch off wang
is_off() { soloist why outbound | grep -q '^Off'; }
until_so "it is off" is_off
before=$(count)
sleep 1
printf '%-35s | %-14s | %16s | %7s |\n' "wang switches it off" "nobody" "" "$(count)"
[ "$(count)" -eq "$before" ] || fail "it was off, and an order was shipped"
all=$(count) different=$(shipped | cut -d, -f1 | sort -u | grep -c .)
echo "orders shipped: $all, different ones: $different, shipped twice: $((all - different))"
[ "$all" -eq "$different" ] || fail "an order was shipped twice"
