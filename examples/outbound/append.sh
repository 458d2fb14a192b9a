#!/bin/sh
# Ships one order: appends its record to shipped.csv, once. Runs behind `soloist fence`.
#
# append.sh SHIPPED ORDERS RECORD
set -eu
shipped=$1 orders=$2 record=$3

if [ ! -s "$shipped" ]; then
    header=$(head -n 1 -- "$orders" | tr -d '\r')
    printf '%s,shipped_at,node,token\n' "$header" >>"$shipped"
fi

# A machine that lost its power may leave half a line behind. That order was not shipped: the half goes.
if [ -n "$(tail -c 1 -- "$shipped")" ]; then
    sed '$d' -- "$shipped" >"$shipped.whole"
    mv -f -- "$shipped.whole" "$shipped"
fi

# One write of one line: it is there as a whole or not at all.
printf '%s,%s,%s,%s\n' "$record" "$(date -u +%Y-%m-%dT%H:%M:%SZ)" "${SOLOIST_NODE:-}" "$SOLOIST_TOKEN" >>"$shipped"
