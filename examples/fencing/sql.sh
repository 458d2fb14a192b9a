#!/bin/sh
# Writes one row to a database that refuses whoever has lost the lease: `echo "shipped 10248" | sh sql.sh`.
#
# DATABASE      the SQLite file (default: shipments.db); the same for PostgreSQL stands in postgres.sql
# SOLOIST_TOKEN the fencing token that Soloist gives to every script
#
# The table `fence` remembers the newest token seen. Raising it, comparing with it and writing are ONE transaction: a run
# that was paused at any point, even just before its write, wakes up too late to do harm. Every later writer sees the
# newer token. Exit code 4: refused, a newer run has written here; end, and leave the rest to that run.
set -eu

database=${DATABASE:-shipments.db}
token=${SOLOIST_TOKEN:-}
case $token in
    '' | *[!0-9]*) echo "sql.sh: SOLOIST_TOKEN is missing: run this as a job of Soloist" >&2; exit 2 ;;
esac
# Quotes are doubled, and so the note is a value and never SQL.
note=$(sed "s/'/''/g")

newest=$(sqlite3 -bail -cmd '.timeout 10000' "$database" <<SQL
CREATE TABLE IF NOT EXISTS fence (sink TEXT PRIMARY KEY, token INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS shipments (id INTEGER PRIMARY KEY, token INTEGER NOT NULL, note TEXT NOT NULL);
-- IMMEDIATE: the write lock is taken before anything is read.
BEGIN IMMEDIATE;
INSERT INTO fence (sink, token) VALUES ('shipments', $token)
    ON CONFLICT (sink) DO UPDATE SET token = excluded.token WHERE fence.token < excluded.token;
INSERT INTO shipments (token, note)
    SELECT $token, '$note' FROM fence WHERE sink = 'shipments' AND token <= $token;
SELECT token FROM fence WHERE sink = 'shipments';
COMMIT;
SQL
)
[ "$newest" -le "$token" ] || {
    echo "sql.sh: refused: token $token is older than $newest, which has written here" >&2
    exit 4
}
