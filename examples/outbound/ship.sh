#!/bin/sh
# Ships the orders of a CSV file one by one, and goes on after the last shipped one wherever it is started again.
#
# ORDERS  the orders (default: orders.csv beside this script); the first column is the order's number
# STATE   where shipped.csv and the fence are kept (default: state/ beside this script)
# PAUSE   seconds that shipping one order takes (default 1)
# SOLOIST the program to fence with (default: soloist, which a node puts first in the PATH of its scripts)
#
# What has been shipped is read from shipped.csv alone and before every order. The one act that ships is the append
# of a line to it, behind `soloist fence`: there is no instant at which an order is shipped but not recorded, so a
# crash neither ships twice nor skips, and a run that lost its lease cannot write any more.
set -eu

here=$(dirname -- "$0")
orders=${ORDERS:-$here/orders.csv}
state=${STATE:-$here/state}
pause=${PAUSE:-1}
soloist=${SOLOIST:-soloist}

fail() {
    echo "ship.sh: $1" >&2
    exit "${2:-1}"
}

[ -n "${SOLOIST_TOKEN:-}" ] || fail "no SOLOIST_TOKEN: switch the job on in Soloist, or use: soloist run --name outbound -- sh $0"
[ -r "$orders" ] || fail "cannot read $orders: set ORDERS to a CSV file of orders"
mkdir -p -- "$state"

# TERM ends the pause at once, and never cuts an order in half.
stopping=
napping=
trap 'stopping=yes; [ -z "$napping" ] || kill "$napping" 2>/dev/null || :' TERM INT

nap() {
    sleep "$pause" &
    napping=$!
    [ -z "$stopping" ] || kill "$napping" 2>/dev/null || :
    wait "$napping" || :
    napping=
}

# Prints "NUMBER TOTAL ID", the place and the record of the first order that is not in shipped.csv; an empty ID when
# there is none. LC_ALL=C: bytes pass through as they are, in whatever encoding.
next_order() {
    LC_ALL=C awk -v orders="$orders" -v shipped="$state/shipped.csv" -f "$here/next_order.awk"
}

while [ -z "$stopping" ]; do
    found=$(next_order)
    {
        read -r number total id
        read -r place
        record=$(cat)
    } <<FOUND
$found
FOUND
    if [ -z "$id" ]; then
        echo "::progress $number/$total all orders are shipped"
        echo "all $total orders are shipped"
        exit 0
    fi
    echo "::progress $number/$total shipping order $id"
    nap
    [ -z "$stopping" ] || break
    code=0
    "$soloist" fence "$state/fence" -- sh "$here/append.sh" "$state/shipped.csv" "$orders" "$record" || code=$?
    case $code in
        0) echo "shipped order $id to $place" ;;
        4) fail "a newer run ships already: this one must not write order $id" 4 ;;
        *) [ -n "$stopping" ] || fail "could not record order $id (exit code $code)" ;;
    esac
done
echo "asked to stop: the next run goes on after the last shipped order"
