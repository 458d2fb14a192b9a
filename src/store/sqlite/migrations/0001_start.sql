-- Everything a store needs. Instants are milliseconds since 1970 (UTC) unless the name says otherwise.
-- Applied once, in one transaction with the new number in user_version; never edited afterwards.

CREATE TABLE meta (
    key   TEXT PRIMARY KEY,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- Versions of different epochs do not compare.
INSERT INTO meta (key, value) VALUES ('epoch', lower(hex(randomblob(16))));

-- One row a job that anybody ever touched. `token` only grows and the row is never deleted.
-- The lease_ columns stay after the lease ran out and are NULL after a release: that tells a renewal
-- that comes late from one that comes after the end. JSON columns hold the types of src/domain/job.rs.
CREATE TABLE jobs (
    name             TEXT PRIMARY KEY,
    version          INTEGER NOT NULL,
    token            INTEGER NOT NULL,
    participants     TEXT NOT NULL,     -- JSON array, oldest first
    hold             TEXT,              -- JSON
    lease_node       TEXT,
    lease_owner      TEXT,
    lease_token      INTEGER,
    lease_since      INTEGER,
    lease_ttl_ms     INTEGER,
    lease_expires_ns INTEGER,           -- CLOCK_BOOTTIME of the boot below: setting the clock moves no lease
    lease_boot       TEXT,              -- /proc/sys/kernel/random/boot_id
    lease_expires    INTEGER,           -- for whoever has another boot id
    run              TEXT,              -- JSON
    last_exit        TEXT,              -- JSON
    last_switch      TEXT,              -- JSON
    crashes          INTEGER NOT NULL,
    next             TEXT,              -- JSON
    given_up         INTEGER NOT NULL,
    moving           TEXT,              -- JSON
    last_line        TEXT,
    log_seq          INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- What subscribers hear, written in the transaction of the change; trimmed. `job` NULL: nodes changed.
CREATE TABLE events (
    seq     INTEGER PRIMARY KEY,
    job     TEXT,
    version INTEGER,
    kind    TEXT
) STRICT;

-- `n` counts the runs of a job.
CREATE TABLE runs (
    job       TEXT NOT NULL,
    n         INTEGER NOT NULL,
    id        TEXT NOT NULL,
    node      TEXT NOT NULL,
    token     INTEGER NOT NULL,
    started   INTEGER NOT NULL,
    ended     INTEGER,
    exit_code INTEGER,
    signal    INTEGER,
    how       TEXT,                     -- exited, crashed, stopped, lost, fenced
    killed    INTEGER NOT NULL,
    PRIMARY KEY (job, n)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX runs_by_id ON runs (job, id);

CREATE TABLE lines (
    job    TEXT NOT NULL,
    seq    INTEGER NOT NULL,
    at     INTEGER NOT NULL,
    run    TEXT NOT NULL,
    node   TEXT NOT NULL,
    stream TEXT NOT NULL,
    text   TEXT NOT NULL,
    PRIMARY KEY (job, seq)
) STRICT, WITHOUT ROWID;

CREATE TABLE audit (
    id     INTEGER PRIMARY KEY AUTOINCREMENT,
    at     INTEGER NOT NULL,
    who    TEXT NOT NULL,
    origin TEXT NOT NULL,
    act    TEXT NOT NULL,
    target TEXT NOT NULL,
    reason TEXT
) STRICT;
CREATE INDEX audit_by_target ON audit (target, id);

-- `beat` is NULL for a node that left with its drain mark on.
CREATE TABLE nodes (
    name          TEXT PRIMARY KEY,
    beat          TEXT,                 -- JSON
    draining      INTEGER NOT NULL,
    heard         INTEGER NOT NULL,
    heard_boot_ns INTEGER NOT NULL,
    boot          TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE users (
    name     TEXT PRIMARY KEY,
    role     TEXT NOT NULL,
    password TEXT NOT NULL,             -- argon2id, PHC string
    created  INTEGER NOT NULL,
    language TEXT,
    theme    TEXT
) STRICT, WITHOUT ROWID;

-- Keys are SHA-256 (hex) of the secrets, which are not kept.
CREATE TABLE sessions (
    hash    TEXT PRIMARY KEY,
    user    TEXT NOT NULL,
    csrf    TEXT NOT NULL,
    created INTEGER NOT NULL,
    expires INTEGER NOT NULL,
    used    INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX sessions_by_user ON sessions (user);

CREATE TABLE tokens (
    hash    TEXT PRIMARY KEY,
    id      TEXT NOT NULL UNIQUE,
    user    TEXT NOT NULL,
    name    TEXT NOT NULL,
    created INTEGER NOT NULL,
    expires INTEGER
) STRICT, WITHOUT ROWID;

CREATE TABLE links (
    hash    TEXT PRIMARY KEY,
    user    TEXT,                       -- NULL: creates the first admin
    expires INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE failures (
    id  INTEGER PRIMARY KEY,
    key TEXT NOT NULL,
    at  INTEGER NOT NULL
) STRICT;
CREATE INDEX failures_by_key ON failures (key, at);
CREATE INDEX failures_by_age ON failures (at);
