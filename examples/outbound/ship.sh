#!/bin/sh
# Ships orders one by one, for ever: those of a CSV file, then every new one that comes into the inbox. Wherever it is
# started again it goes on after the last shipped order.
#
# ORDERS  the orders (default: orders.csv beside this script); the first column is the order's number
# STATE   where shipped.csv, the inbox and the fence are kept (default: state/ beside this script)
# PAUSE   seconds that shipping one order takes (default 1)
# REFILL  when there has been nothing to do for this many seconds, it orders a few things itself, so that there is
#         something to see (default 0: never)
# SOLOIST the program to fence with (default: soloist, which a node puts first in the PATH of its scripts)
#
# New orders come from `sh order.sh`, which stands beside this script. What has been shipped is read from shipped.csv alone
# and before every order. The one act that ships is the append of a line to it, behind `soloist fence`: there is no
# instant at which an order is shipped but not recorded, so a crash neither ships twice nor skips, and a run that lost its
# lease cannot write any more.
set -eu

here=$(dirname -- "$0")
orders=${ORDERS:-$here/orders.csv}
state=${STATE:-$here/state}
pause=${PAUSE:-1}
refill=${REFILL:-0}
soloist=${SOLOIST:-soloist}
shipped=$state/shipped.csv
inbox=$state/inbox

fail() {
    echo "ship.sh: $1" >&2
    exit "${2:-1}"
}

[ -n "${SOLOIST_TOKEN:-}" ] || fail "no SOLOIST_TOKEN: switch the job on in Soloist, or use: soloist run --name outbound -- sh $0"
[ -r "$orders" ] || fail "cannot read $orders: set ORDERS to a CSV file of orders"
case $refill in
    '' | *[!0-9]*) fail "REFILL is $refill: write whole seconds, or 0 for never" ;;
esac
mkdir -p -- "$inbox"

# TERM ends the pause at once, and never cuts an order in half.
stopping=
napping=
trap 'stopping=yes; [ -z "$napping" ] || kill "$napping" 2>/dev/null || :' TERM INT

nap() {
    sleep "$1" &
    napping=$!
    [ -z "$stopping" ] || kill "$napping" 2>/dev/null || :
    wait "$napping" || :
    napping=
}

fenced() {
    "$soloist" fence "$state/fence" -- "$@"
}

# Whether there may be something to do. Only if so are the files read.
is_quiet() {
    [ "$(wc -c <"$orders")" = "$size" ] || return 1
    for file in "$inbox"/*.csv; do
        [ ! -e "$file" ] || return 1
    done
}

# See next_order.awk. LC_ALL=C: bytes pass through as they are, in whatever encoding.
next_order() {
    set -- "$inbox"/*.csv
    [ -e "$1" ] || set --
    LC_ALL=C awk -v orders="$orders" -v shipped="$shipped" -v sweep="$sweep" \
        -f "$here/csv.awk" -f "$here/next_order.awk" -- "$@"
}

# settle CODE WHAT: goes on after exit code 0, fails after any other; one that our own TERM has caused only ends the run. The TERM
# reaches every process of this script, so each command that it can cut off is settled.
settle() {
    case $1 in
        0) return 0 ;;
        4) fail "a newer run ships already: this one must not write" 4 ;;
    esac
    [ -n "$stopping" ] || fail "could not $2 (exit code $1)"
    return 1
}

# Once this run's token is in the fence, no older run can write: what is read from now on stays true.
code=0
fenced true || code=$?
settle "$code" "use the fence $state/fence" || exit 0

# A run that was killed between an append and the removal of the file left the file behind.
sweep=1
left=$(next_order) || left=
printf '%s\n' "$left" | while read -r file; do
    [ -z "$file" ] || rm -f -- "$file"
done || settle $? "clear $inbox" || exit 0
sweep=0

number=0 total=0 # of the new orders since the last time that there was nothing to do
hinted=
while [ -z "$stopping" ]; do
    code=0
    { size=$(wc -c <"$orders") && found=$(next_order); } || code=$?
    settle "$code" "read the orders" || break
    {
        read -r count of_file fresh id
        read -r place || :
        read -r file || :
        record=$(cat) || code=$?
    } <<FOUND
$found
FOUND
    settle "$code" "read the order" || break
    if [ -z "$id" ]; then
        [ "$total" -gt 0 ] || { number=$count total=$of_file; }
        echo "::progress $number/$total waiting for orders"
        [ -n "$hinted" ] || echo "all $of_file orders of $orders are shipped; new ones come from: sh $here/order.sh"
        hinted=yes
        idle=0
        while [ -z "$stopping" ] && is_quiet; do
            nap 1
            idle=$((idle + 1))
            if [ "$refill" -gt 0 ] && [ "$idle" -ge "$refill" ] && [ -z "$stopping" ]; then
                idle=0
                STATE=$state ORDERS=$orders sh "$here/order.sh" 3 >/dev/null || :
            fi
        done
        number=0 total=0
        continue
    fi
    if [ -z "$file" ]; then
        number=$((count + 1)) total=$of_file
    else
        [ "$number" -lt "$total" ] || { number=0 total=0; }
        number=$((number + 1))
        [ "$total" -ge $((number + fresh - 1)) ] || total=$((number + fresh - 1))
    fi
    echo "::progress $number/$total shipping order $id"
    nap "$pause"
    [ -z "$stopping" ] || break
    code=0
    fenced sh "$here/append.sh" "$shipped" "$orders" "$record" || code=$?
    settle "$code" "record order $id" || break
    echo "shipped order $id to $place"
    [ -z "$file" ] || rm -f -- "$file" || code=$?
    settle "$code" "remove $file" || break
done
echo "asked to stop: the next run goes on after the last shipped order"
