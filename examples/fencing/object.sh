#!/bin/sh
# Replaces an object in a store like S3 that refuses whoever has lost the lease: `sh object.sh <report.csv`.
#
# OBJECT        its URL. Credentials: `--aws-sigv4 aws:amz:REGION:s3` and `user = KEY:SECRET` in ~/.curlrc
# SOLOIST_TOKEN the fencing token that Soloist gives to every script
#
# The object carries the token of its writer. Such a store cannot compare tokens, but it can refuse a write when the
# object is another than the one that was read (If-Match), or exists at all (If-None-Match: *). So: read the token, give
# up if it is newer, and write only over what was read; else look again. Whoever pauses between reading and writing finds
# the object changed. A run should write once as soon as it starts: until then no store can know of it.
# Exit code 4: refused, a newer run has written; end, and leave the rest to that run.
set -eu

token=${SOLOIST_TOKEN:-}
case $token in
    '' | *[!0-9]*) echo "object.sh: SOLOIST_TOKEN is missing: run this as a job of Soloist" >&2; exit 2 ;;
esac
work=$(mktemp -d)
trap 'rm -rf -- "$work"' EXIT
cat >"$work/body"

header() { tr -d '\r' <"$work/head" | sed -n "s/^$1: *//Ip" | tail -n 1; }

for _ in 1 2 3 4 5 6 7 8 9 10; do
    status=$(curl -sS --head --max-time 30 -D "$work/head" -o "$work/unused" -w '%{http_code}' "$OBJECT")
    case $status in
        404) condition='If-None-Match: *' ;;
        200)
            newest=$(header x-amz-meta-soloist-token)
            [ "${newest:-0}" -le "$token" ] || {
                echo "object.sh: refused: token $token is older than $newest, which has written here" >&2
                exit 4
            }
            condition="If-Match: $(header etag)"
            ;;
        *) echo "object.sh: $OBJECT answered $status to HEAD" >&2; exit 1 ;;
    esac
    status=$(curl -sS --max-time 300 -X PUT --data-binary "@$work/body" -o "$work/answer" -w '%{http_code}' \
        -H "$condition" -H "x-amz-meta-soloist-token: $token" -H 'Content-Type: application/octet-stream' "$OBJECT")
    case $status in
        200 | 201 | 204) exit 0 ;;
        409 | 412) ;; # another wrote meanwhile: look who
        *) echo "object.sh: $OBJECT answered $status to PUT: $(cat "$work/answer")" >&2; exit 1 ;;
    esac
done
echo "object.sh: the object changed ten times while it was written" >&2
exit 1
