#!/bin/sh
# Three collectors crawl a small site politely: every page once, and never one sooner than the site allows.
#
#   sh examples/collect/run.sh
#
# SITE     a site that runs already (its log in $STATE/site.log); without it examples/impatient.pl is started
# GAP_MS   what that one allows (default: 100)
# SOLOIST  the program (default: target/dist/soloist, target/release/soloist or target/debug/soloist, else soloist of the PATH)
# STORE    where the tasks are kept (default: a file in STATE); a Redis does as well
# STATE    where files are kept (default: a new temporary directory, removed at the end)
#
# The site answers 429 to whoever asks sooner than 100 ms after the page before. The source has a gap of 250 ms, which
# the store keeps over all collectors together: none of them waits, counts or knows of the others. The gap is between
# starts; what it is longer than the site demands is for commands that take unequally long to get going.
set -eu
here=$(cd "$(dirname -- "$0")" && pwd)
root=$here/../..

fail() {
    echo "run.sh: $1" >&2
    exit 1
}

for tool in curl perl; do
    command -v "$tool" >/dev/null || fail "$tool is needed: apt-get install $tool"
done

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

store=${STORE:-sqlite:$state/soloist.db}
soloist() { "$program" --store "$store" "$@"; }

site=${SITE:-}
if [ -z "$site" ]; then
    perl "$here/../impatient.pl" site 127.0.0.1:0 "${GAP_MS:-100}" "$state/site.log" >"$state/site.url" &
    pids="$pids $!"
    tries=0
    until [ -s "$state/site.url" ]; do
        tries=$((tries + 1))
        [ "$tries" -lt 100 ] || fail "the site did not start"
        sleep 0.1
    done
    site=$(cat "$state/site.url")
fi

soloist source set site --gap 250ms --cap 2 --lease 30s
soloist task put --source site --key "$site/0"

collectors=
for name in red green blue; do
    STORE=$store STATE=$state SOLOIST=$program \
        "$program" --store "$store" collect --source site --parallel 2 --collector "$name" --until-empty -- \
        sh "$here/crawl.sh" &
    collectors="$collectors $!"
    pids="$pids $!"
done
for pid in $collectors; do
    wait "$pid" || fail "a collector failed"
done

soloist source list
echo
cut -f 1 "$state/pages.txt" | sort | uniq -c | while read -r count name; do echo "$name fetched $count pages"; done
awk '
    { statuses[$2]++; if (seen[$3]++) twice++ }
    NR > 1 && (least == "" || $1 - before < least) { least = $1 - before }
    { before = $1 }
    END {
        printf "the site was asked %d times: %d pages, %d answers 429, %d pages asked for twice; at least %d ms apart\n",
            NR, statuses[200], statuses[429], twice, least
        exit (statuses[429] > 0 || twice > 0)
    }
' "$state/site.log" || fail "that was not polite"
