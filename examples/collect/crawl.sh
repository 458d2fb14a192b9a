#!/bin/sh
# Fetches one page and puts those that it links to as tasks. Run by `soloist collect`, once for each task.
#
# SOLOIST_TASK_KEY  the page's address; the same address is the same task, so every page is fetched once
# STORE             where tasks are put
# STATE             where pages.txt is kept
# SOLOIST           the program to put tasks and to block the source with
#
# Exit codes: 0 done; 65 there is no such page and never will be; 75 try again later.
set -eu
url=$SOLOIST_TASK_KEY
site=${url%"${url#*://*/}"}

body=$(mktemp)
trap 'rm -f -- "$body"' EXIT
status=$(curl --silent --show-error --max-time 10 --output "$body" --write-out '%{http_code}' -- "$url") || exit 75
case $status in
    200) ;;
    404 | 410)
        echo "no such page: $url" >&2
        exit 65
        ;;
    429)
        # Nobody asks this site for a while: not only this collector.
        "$SOLOIST" --store "$STORE" source block "$SOLOIST_SOURCE" --for 2s >/dev/null
        echo "$url: asked too soon" >&2
        exit 75
        ;;
    *)
        echo "$url: status $status" >&2
        exit 75
        ;;
esac

# First what it links to: whoever is killed in between does all of this again, and putting again is harmless.
sed -n 's|.*href="/\([^"]*\)".*|\1|p' "$body" | while read -r path; do echo "$site$path"; done |
    "$SOLOIST" --store "$STORE" task put --source "$SOLOIST_SOURCE" >/dev/null
title=$(sed -n 's|.*<title>\(.*\)</title>.*|\1|p' "$body")
printf '%s\t%s\t%s\n' "$SOLOIST_COLLECTOR" "$url" "$title" >>"$STATE/pages.txt"
echo "$SOLOIST_COLLECTOR fetched $url ($title)"
