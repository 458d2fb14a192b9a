-- Jobs as texts: src/store/core decides what they mean, and SQLite compares and keeps them. `convert.rs` fills these tables from
-- those of before, and drops them, in the same transaction.

-- One row a job that anybody ever touched.
CREATE TABLE records (
    job  TEXT PRIMARY KEY,
    head TEXT NOT NULL,                 -- VERSION, and the instant of the commit in microseconds
    body TEXT NOT NULL                  -- JSON: src/store/core/record.rs
) STRICT, WITHOUT ROWID;

-- The lease beside it; one that is over counts as none.
CREATE TABLE leases (
    job        TEXT PRIMARY KEY,
    text       TEXT NOT NULL,           -- JSON: src/store/core/record.rs
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
