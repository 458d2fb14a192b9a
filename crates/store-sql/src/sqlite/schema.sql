-- Schema 1: everything a store needs, as crates/store-sql/src/sqlite/schema.rs makes it. Never edited once released: what comes later is a step.
-- Instants are milliseconds since 1970 (UTC) unless the name or the section says otherwise.

CREATE TABLE meta (
    key   TEXT PRIMARY KEY,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- Versions of different epochs do not compare.
INSERT INTO meta (key, value) VALUES ('epoch', lower(hex(randomblob(16))));

-- What subscribers hear, written in the transaction of the change; trimmed. `job` NULL: `kind` says what changed (accounts; else nodes), or
-- `wake` whose turn it is: waiters, as a JSON array.
CREATE TABLE events (
    seq     INTEGER PRIMARY KEY,
    job     TEXT,
    version INTEGER,
    kind    TEXT,
    wake    TEXT
) STRICT;

-- Jobs as texts: crates/store/src/core decides what they mean, and SQLite compares and keeps them.

-- One row a job that anybody ever touched.
CREATE TABLE records (
    job  TEXT PRIMARY KEY,
    head TEXT NOT NULL,                 -- VERSION, and the instant of the commit in microseconds
    body TEXT NOT NULL                  -- JSON: crates/store/src/core/record.rs
) STRICT, WITHOUT ROWID;

-- The lease beside it; one that is over counts as none.
CREATE TABLE leases (
    job        TEXT PRIMARY KEY,
    text       TEXT NOT NULL,           -- JSON: crates/store/src/core/record.rs
    ttl_ms     INTEGER NOT NULL,
    expires_ns INTEGER NOT NULL,        -- CLOCK_BOOTTIME of the boot below: setting the clock moves no lease
    boot       TEXT NOT NULL,           -- /proc/sys/kernel/random/boot_id
    expires    INTEGER NOT NULL         -- for whoever has another boot id
) STRICT, WITHOUT ROWID;

-- The runs that ended, by their tokens.
CREATE TABLE entries (
    job    TEXT NOT NULL,
    number INTEGER NOT NULL,
    text   TEXT NOT NULL,               -- the id, a blank, and JSON: domain::journal::RunEntry
    PRIMARY KEY (job, number)
) STRICT, WITHOUT ROWID;

-- Those that stand for idle runs go first when the history is full.
CREATE INDEX entries_marked ON entries (job, number) WHERE instr(text, '"folded":') > 0;

CREATE TABLE output (
    job    TEXT NOT NULL,
    number INTEGER NOT NULL,
    text   TEXT NOT NULL,               -- JSON: domain::journal::LogLine
    PRIMARY KEY (job, number)
) STRICT, WITHOUT ROWID;

-- What belongs to no job: tables of rows, lists in order, logs that number themselves (crates/store/src/records.rs).
-- Accounts, credentials, drain marks, rotations and the audit are there.

CREATE TABLE rows (
    kind TEXT NOT NULL,
    name TEXT NOT NULL,
    text TEXT NOT NULL,
    PRIMARY KEY (kind, name)
) STRICT, WITHOUT ROWID;

CREATE TABLE lists (
    list   TEXT NOT NULL,
    number INTEGER NOT NULL,
    text   TEXT NOT NULL,
    PRIMARY KEY (list, text)
) STRICT, WITHOUT ROWID;
CREATE INDEX lists_in_order ON lists (list, number, text);

CREATE TABLE logs (
    log  TEXT NOT NULL,
    id   INTEGER NOT NULL,
    text TEXT NOT NULL,
    PRIMARY KEY (log, id)
) STRICT, WITHOUT ROWID;

-- The newest number of each log, which outlives its entries.
CREATE TABLE numbers (
    log    TEXT PRIMARY KEY,
    newest INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Dispatch. Instants are Stamps: microseconds since 1970 on a clock of their own (crates/store-sql/src/sqlite/clock.rs).

-- One row. `newest` is the newest instant that was written down: the clock never goes back behind it.
CREATE TABLE dispatch (
    one    INTEGER PRIMARY KEY CHECK (one = 1),
    newest INTEGER NOT NULL,
    token  INTEGER NOT NULL,            -- the newest of all tasks
    turn   INTEGER NOT NULL,            -- the newest of all sources
    done   INTEGER NOT NULL             -- done tasks that are remembered
) STRICT;
INSERT INTO dispatch (one, newest, token, turn, done) VALUES (1, 0, 0, 0, 0);

-- CLOCK_BOOTTIME + offset_us = Stamp, for as long as this boot lasts.
CREATE TABLE clocks (
    n         INTEGER PRIMARY KEY,
    boot      TEXT NOT NULL UNIQUE,
    offset_us INTEGER NOT NULL
) STRICT;

-- `turn`: its place in the ring of sources that can be served now; NULL when it cannot. `shut` says why, if it has
-- ready tasks all the same, and `opens` when that ends by itself. `promised`: waiters woken for it who have not claimed.
CREATE TABLE sources (
    name           TEXT PRIMARY KEY,
    rules          TEXT NOT NULL,       -- JSON: domain::dispatch::Rules
    blocked_until  INTEGER NOT NULL,
    last_start     INTEGER,
    nth            INTEGER NOT NULL,    -- counts places
    ready          INTEGER NOT NULL,
    due            INTEGER NOT NULL,
    in_flight      INTEGER NOT NULL,
    dead           INTEGER NOT NULL,
    done           INTEGER NOT NULL,
    started        INTEGER NOT NULL,
    finished       INTEGER NOT NULL,
    retried        INTEGER NOT NULL,
    expired        INTEGER NOT NULL,
    promised       INTEGER NOT NULL,
    promised_until INTEGER NOT NULL,
    turn           INTEGER,
    shut           TEXT,
    opens          INTEGER
) STRICT, WITHOUT ROWID;
CREATE INDEX sources_by_turn ON sources (turn) WHERE turn IS NOT NULL;
CREATE INDEX sources_by_shut ON sources (shut) WHERE shut IS NOT NULL;
CREATE INDEX sources_by_opens ON sources (opens) WHERE opens IS NOT NULL;
CREATE INDEX sources_by_promise ON sources (promised_until) WHERE promised > 0;

-- The starts that a window must count, one row for those of one instant; `n` is the number of the first of them.
CREATE TABLE starts (
    source TEXT NOT NULL,
    at     INTEGER NOT NULL,
    n      INTEGER NOT NULL,
    PRIMARY KEY (source, at, n)
) STRICT, WITHOUT ROWID;

-- What changes of a task; written often, so keys and payloads are elsewhere. `collector`, `claim` and `token` are of
-- the newest lease, `accepted` is the token of the newest accepted result.
CREATE TABLE tasks (
    n         INTEGER PRIMARY KEY,
    id        TEXT NOT NULL UNIQUE,
    source    TEXT NOT NULL,
    state     TEXT NOT NULL,            -- ready, due, leased, done, dead
    priority  INTEGER NOT NULL,
    place     INTEGER,                  -- if ready
    at        INTEGER,                  -- if due
    until     INTEGER,                  -- if leased
    lease_us  INTEGER,                  -- for how long, in microseconds: each extension lasts as long
    attempt   INTEGER NOT NULL,
    token     INTEGER NOT NULL,
    accepted  INTEGER NOT NULL,
    collector TEXT,
    claim     INTEGER,
    every_us  INTEGER,
    created   INTEGER NOT NULL,
    changed   INTEGER NOT NULL,
    error     TEXT
) STRICT;
CREATE INDEX tasks_ready ON tasks (source, place) WHERE state = 'ready';
CREATE INDEX tasks_due ON tasks (at) WHERE state = 'due';
CREATE INDEX tasks_due_by_source ON tasks (source, at) WHERE state = 'due';
CREATE INDEX tasks_leased ON tasks (until) WHERE state = 'leased';
CREATE INDEX tasks_leased_by_source ON tasks (source, until) WHERE state = 'leased';
CREATE INDEX tasks_done ON tasks (changed) WHERE state = 'done';
CREATE INDEX tasks_dead ON tasks (changed) WHERE state = 'dead';
CREATE INDEX tasks_dead_by_source ON tasks (source, changed) WHERE state = 'dead';

CREATE TABLE payloads (
    task    INTEGER PRIMARY KEY,
    key     TEXT NOT NULL,
    payload TEXT NOT NULL
) STRICT;

-- What went wrong with a task.
CREATE TABLE pasts (
    task      INTEGER NOT NULL,
    n         INTEGER NOT NULL,
    at        INTEGER NOT NULL,
    event     TEXT NOT NULL,
    attempt   INTEGER NOT NULL,
    collector TEXT,
    error     TEXT,
    PRIMARY KEY (task, n)
) STRICT, WITHOUT ROWID;

-- Answers to requests, remembered until `forget`. With a `reason` nothing was granted. `request`: whose it is, a blank, and its name.
CREATE TABLE claims (
    n         INTEGER PRIMARY KEY,
    claim     TEXT NOT NULL UNIQUE,
    collector TEXT NOT NULL,
    request   TEXT NOT NULL,
    until     INTEGER,                  -- the last end of its tasks
    reason    TEXT,
    next_at   INTEGER,
    repeated  INTEGER NOT NULL,         -- whether the same request was answered with it again
    forget    INTEGER NOT NULL
) STRICT;
CREATE INDEX claims_by_age ON claims (forget);

-- The tasks of a claim that were neither reported nor given back: held, or lost.
CREATE TABLE grants (
    claim INTEGER NOT NULL,
    task  INTEGER NOT NULL,
    PRIMARY KEY (claim, task)
) STRICT, WITHOUT ROWID;

-- Who waits, oldest first; `waits` has a row for each of its sources, '' for any.
CREATE TABLE waiters (
    n       INTEGER PRIMARY KEY,
    waiter  TEXT NOT NULL UNIQUE,
    sources TEXT NOT NULL,              -- JSON array
    until   INTEGER NOT NULL
) STRICT;
CREATE INDEX waiters_by_end ON waiters (until);
CREATE TABLE waits (
    source TEXT NOT NULL,
    waiter INTEGER NOT NULL,
    PRIMARY KEY (source, waiter)
) STRICT, WITHOUT ROWID;

CREATE TABLE collectors (
    name TEXT PRIMARY KEY,
    seen INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
