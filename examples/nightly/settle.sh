#!/bin/sh
# Settles one day. Run by a node as the job `settle`, once for each tick.
#
# SOLOIST_TICK       the name of the tick: the same in every attempt
# SOLOIST_TICK_TIME  its time
# SOLOIST_ATTEMPT    1, and more when the tick is run again
# SOLOIST_PARAM_DAY  the day to settle
#
# What is made up, so that there is something to see: a tick at second 00 takes 25 seconds and meets the next one; the first attempt of
# a tick at second 40 fails.
#
# Exit codes: 0 done; 1 the bank did not answer.
set -eu
echo "settling $SOLOIST_PARAM_DAY: attempt $SOLOIST_ATTEMPT of $SOLOIST_TICK on $SOLOIST_NODE"

# Who was killed between writing and ending comes again: the name of the tick tells what is done already.
if grep -qsF -- " $SOLOIST_TICK " settled.txt; then
    echo "$SOLOIST_TICK was settled before: nothing to do"
    exit 0
fi

case ${SOLOIST_TICK_TIME:-} in
    *:00Z)
        for part in 1 2 3 4 5; do
            sleep 5
            echo "::progress $part/5 accounts of $SOLOIST_PARAM_DAY"
        done
        ;;
    *:40Z)
        if [ "$SOLOIST_ATTEMPT" -eq 1 ]; then
            echo "the bank does not answer" >&2
            exit 1
        fi
        ;;
esac

echo "$SOLOIST_PARAM_DAY $SOLOIST_TICK attempt $SOLOIST_ATTEMPT token $SOLOIST_TOKEN" >>settled.txt
echo "settled $SOLOIST_PARAM_DAY"
