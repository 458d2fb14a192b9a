#!/bin/sh
# Two jobs alternate on the API of a supplier who allows one call at a time, and none too soon after the one before.
#
#   sh examples/rotation/run.sh
#
# SUPPLIER  a supplier that runs already (its log in $STATE/supplier.log); without it examples/impatient.pl is started
# GAP_MS    what that one allows (default: 150)
# SOLOIST   the program (default: target/dist/soloist, target/release/soloist or target/debug/soloist, else soloist of the PATH)
# STORE     where turns are kept (default: a file in STATE); a Redis does as well
# STATE     where files are kept (default: a new temporary directory, removed at the end)
#
# The supplier answers 429 to whoever calls sooner than 150 ms after the call before, or while that one is answered. Both
# jobs run again as soon as they may (`repeat`), and each run is one turn of the rotation: the store keeps 600 ms
# between the starts of two turns, whoever has them. Neither job waits, counts or knows of the other. The gap is between
# starts; what it is longer than the supplier demands is for scripts that take unequally long to get going.
set -eu
here=$(cd "$(dirname -- "$0")" && pwd)
root=$here/../..
calls=20

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

# until_true SECONDS WHAT COMMAND...
until_true() {
    tries=$(($1 * 10))
    what=$2
    shift 2
    until "$@"; do
        tries=$((tries - 1))
        [ "$tries" -gt 0 ] || fail "$what: $(tail -n 5 "$state/node.log" 2>/dev/null)"
        sleep 0.1
    done
}

supplier=${SUPPLIER:-}
if [ -z "$supplier" ]; then
    perl "$here/../impatient.pl" supplier 127.0.0.1:0 "${GAP_MS:-150}" "$state/supplier.log" >"$state/supplier.url" &
    pids="$pids $!"
    until_true 10 "the supplier did not start" [ -s "$state/supplier.url" ]
    supplier=$(cat "$state/supplier.url")
fi

cat >"$state/rotation.toml" <<END
store  = "${STORE:-sqlite:$state/soloist.db}"
listen = "127.0.0.1:0"
END
for job in orders stock; do
    cat >>"$state/rotation.toml" <<END

[[job]]
name     = "$job"
command  = ["sh", "$here/call.sh"]
env      = { SUPPLIER = "$supplier" }
repeat   = "50ms"
rotation = "supplier-api"       # each run is one turn, as the type of the job's own name
END
done
# Not for what is to be killed later: $! would be a shell.
soloist() { "$program" --config "$state/rotation.toml" "$@"; }

soloist rotation set supplier-api --type orders --type stock --min-gap 600ms --lease 10s
head -c 24 /dev/urandom | od -An -tx1 | tr -d ' \n' | soloist user add demo --role operator --password-stdin
"$program" --config "$state/rotation.toml" serve --node example >"$state/node.out" 2>"$state/node.log" &
pids="$pids $!"
until_true 20 "the node did not start" [ -s "$state/node.out" ]
for job in orders stock; do soloist on "$job" --user demo; done

called() { [ "$(wc -l <"$state/supplier.log" 2>/dev/null || echo 0)" -ge "$calls" ]; }
until_true 60 "the supplier was not called $calls times" called
for job in orders stock; do soloist off "$job" --user demo; done
ended() { ! soloist status --json | grep -q '"state": "\(running\|starting\|stopping\|waiting\)"'; }
until_true 20 "the jobs did not stop" ended

echo
soloist rotation list supplier-api | head -n 8
echo
awk '
    {
        statuses[$2]++
        jobs[$3]++
        if (NR > 1) {
            if ($3 == job) twice++
            if (least == "" || $1 - before < least) least = $1 - before
        }
        job = $3
        before = $1
    }
    END {
        printf "the supplier was called %d times: %d by orders, %d by stock, %d times twice in a row by the same; at least %d ms apart; %d answers 429\n",
            NR, jobs["/orders"], jobs["/stock"], twice, least, statuses[429]
        exit (statuses[429] > 0)
    }
' "$state/supplier.log" || fail "that was too soon"
