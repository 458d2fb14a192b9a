#!/bin/sh
# Orders something: puts new orders into the inbox that ship.sh empties. Run it as often as you like, also several at once.
#
# order.sh [HOW_MANY]     (default 1)
#
# ORDERS  a CSV file of orders (default: orders.csv beside this script): each new order is a copy of one of them
# STATE   where the inbox is (default: state/ beside this script); the same as ship.sh has
#
# A new order is one file. It gets its name by `ln`, which fails when the name is taken: the order is there as a whole or
# not at all, and no two have the same number, without any lock.
set -eu

here=$(dirname -- "$0")
orders=${ORDERS:-$here/orders.csv}
inbox=${STATE:-$here/state}/inbox
many=${1:-1}

fail() {
    echo "order.sh: $1" >&2
    exit 1
}

case $many in
    '' | *[!0-9]* | ????*) fail "how many orders? write a number up to 999, not $many" ;;
esac
[ -r "$orders" ] || fail "cannot read $orders: set ORDERS to a CSV file of orders"
mkdir -p -- "$inbox"
new=$inbox/.new.$$
trap 'rm -f -- "$new"' EXIT
trap 'exit 143' TERM INT

now=$(date -u +%y%m%d-%H%M%S)
nth=1
while [ "$nth" -le "$many" ]; do
    # Of one width, so that the names sort in the order of the orders.
    id=$now-$$-$(printf "%0${#many}d" "$nth")
    LC_ALL=C awk -v orders="$orders" -v id="$id" -v seed="$(date +%s)$$$nth" \
        -f "$here/csv.awk" -f "$here/new_order.awk" >"$new"
    ln -- "$new" "$inbox/$id.csv" || fail "cannot put order $id into $inbox"
    rm -f -- "$new"
    echo "ordered $id"
    nth=$((nth + 1))
done
