#!/bin/sh
# One call of the supplier. Run by a node as the job `orders` or `stock`, one run for each turn.
#
# SUPPLIER     its address
# SOLOIST_JOB  which job it is
#
# Exit codes: 0 done; 1 the supplier did not want to be called now, or did not answer.
set -eu
status=$(curl --silent --show-error --max-time 10 --output /dev/null --write-out '%{http_code}' -- \
    "$SUPPLIER/$SOLOIST_JOB") || exit 1
echo "$SOLOIST_JOB called: $status"
[ "$status" = 200 ]
