-- Schema 1: jobs as texts that crates/store/src/core decides on, everything else as cells, lists and logs. Never edited once released: what comes
-- later is a step (open.rs).
-- Instants are microseconds since 1970 by the server's clock, `*_ms` milliseconds. COLLATE "C": names are compared byte by byte,
-- whatever the language of the database.

-- What the store says of itself (domain/doubt.rs); one row.
CREATE TABLE epoch (
    one        BIGINT PRIMARY KEY CHECK (one = 1),
    id         TEXT NOT NULL,
    server     TEXT NOT NULL,             -- system identifier and timeline
    since_ms   BIGINT NOT NULL,
    until_ms   BIGINT NOT NULL,
    longest_ms BIGINT NOT NULL,
    before_ms  BIGINT NOT NULL,
    turned_ms  BIGINT NOT NULL,
    doubted_ms BIGINT NOT NULL,
    version    BIGINT NOT NULL
);

-- A job that anybody ever touched, and the lease beside it; one that is over counts as none. A row without a head is no record.
CREATE TABLE jobs (
    job   TEXT COLLATE "C" PRIMARY KEY,
    head  TEXT NOT NULL,                  -- VERSION, and the instant of the commit
    body  TEXT NOT NULL,                  -- JSON
    lease TEXT,                           -- JSON
    ends  BIGINT
) WITH (fillfactor = 70);

-- The runs that ended, by their tokens.
CREATE TABLE runs (
    job    TEXT COLLATE "C" NOT NULL,
    number BIGINT NOT NULL,
    folded BIGINT NOT NULL,               -- 1: stands for idle runs; they go first when the history is full
    text   TEXT NOT NULL,                 -- the id, a blank, and JSON
    PRIMARY KEY (job, number)
);

CREATE TABLE output (
    job    TEXT COLLATE "C" NOT NULL,
    number BIGINT NOT NULL,
    text   TEXT NOT NULL,                 -- JSON
    PRIMARY KEY (job, number)
);

-- Tables of rows.
CREATE TABLE cells (
    kind TEXT COLLATE "C" NOT NULL,
    name TEXT COLLATE "C" NOT NULL,
    text TEXT NOT NULL,
    PRIMARY KEY (kind, name)
) WITH (fillfactor = 70);

-- Lists in order.
CREATE TABLE lists (
    list   TEXT COLLATE "C" NOT NULL,
    number BIGINT NOT NULL,
    text   TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (list, text)
);
CREATE INDEX lists_in_order ON lists (list, number, text);

-- Logs that number themselves.
CREATE TABLE logs (
    log   TEXT COLLATE "C" NOT NULL,
    id    BIGINT NOT NULL,
    at    BIGINT NOT NULL,                -- milliseconds
    times BIGINT NOT NULL,
    until BIGINT,                         -- milliseconds
    entry TEXT NOT NULL,                  -- the inside of a JSON object
    PRIMARY KEY (log, id)
);

-- Under which key an entry stands that may be told again.
CREATE TABLE folds (
    log   TEXT COLLATE "C" NOT NULL,
    topic TEXT COLLATE "C" NOT NULL,
    same  TEXT NOT NULL,
    id    BIGINT NOT NULL,
    PRIMARY KEY (log, topic)
);

-- Counters; and the gates, rows that are only locked.
CREATE TABLE numbers (
    name   TEXT COLLATE "C" PRIMARY KEY,
    newest BIGINT NOT NULL
) WITH (fillfactor = 70);
INSERT INTO numbers VALUES ('gate', 0), ('gate:turns', 0);

-- Dispatch. Instants are Stamps: microseconds since 1970 on the server's clock, which never go back behind `newest`.
-- Texts are compared as bytes. What each table is for: crates/store-sql/src/sqlite/schema.sql.

CREATE TABLE dispatch (
    one    BIGINT PRIMARY KEY CHECK (one = 1),
    newest BIGINT NOT NULL,
    token  BIGINT NOT NULL,
    turn   BIGINT NOT NULL,
    done   BIGINT NOT NULL
);
INSERT INTO dispatch (one, newest, token, turn, done) VALUES (1, 0, 0, 0, 0);

CREATE TABLE sources (
    name           TEXT COLLATE "C" PRIMARY KEY,
    rules          TEXT NOT NULL,
    blocked_until  BIGINT NOT NULL,
    last_start     BIGINT,
    nth            BIGINT NOT NULL,
    ready          BIGINT NOT NULL,
    due            BIGINT NOT NULL,
    in_flight      BIGINT NOT NULL,
    dead           BIGINT NOT NULL,
    done           BIGINT NOT NULL,
    started        BIGINT NOT NULL,
    finished       BIGINT NOT NULL,
    retried        BIGINT NOT NULL,
    expired        BIGINT NOT NULL,
    promised       BIGINT NOT NULL,
    promised_until BIGINT NOT NULL,
    turn           BIGINT,
    shut           TEXT COLLATE "C",
    opens          BIGINT
);
CREATE INDEX sources_by_turn ON sources (turn) WHERE turn IS NOT NULL;
CREATE INDEX sources_by_shut ON sources (shut) WHERE shut IS NOT NULL;
CREATE INDEX sources_by_opens ON sources (opens) WHERE opens IS NOT NULL;
CREATE INDEX sources_by_promise ON sources (promised_until) WHERE promised > 0;

CREATE TABLE starts (
    source TEXT COLLATE "C" NOT NULL,
    at     BIGINT NOT NULL,
    n      BIGINT NOT NULL,
    PRIMARY KEY (source, at, n)
);

-- Numbers of rows are given by the program, under the lock on `dispatch`.
CREATE TABLE tasks (
    n         BIGINT PRIMARY KEY,
    id        TEXT COLLATE "C" NOT NULL UNIQUE,
    source    TEXT COLLATE "C" NOT NULL,
    state     TEXT COLLATE "C" NOT NULL,
    priority  BIGINT NOT NULL,
    place     BIGINT,
    at        BIGINT,
    until     BIGINT,
    lease_us  BIGINT,
    attempt   BIGINT NOT NULL,
    token     BIGINT NOT NULL,
    accepted  BIGINT NOT NULL,
    collector TEXT COLLATE "C",
    claim     BIGINT,
    every_us  BIGINT,
    created   BIGINT NOT NULL,
    changed   BIGINT NOT NULL,
    error     TEXT
) WITH (fillfactor = 80);
CREATE INDEX tasks_ready ON tasks (source, place) WHERE state = 'ready';
CREATE INDEX tasks_due ON tasks (at) WHERE state = 'due';
CREATE INDEX tasks_due_by_source ON tasks (source, at) WHERE state = 'due';
CREATE INDEX tasks_leased ON tasks (until) WHERE state = 'leased';
CREATE INDEX tasks_leased_by_source ON tasks (source, until) WHERE state = 'leased';
CREATE INDEX tasks_done ON tasks (changed, n) WHERE state = 'done';
CREATE INDEX tasks_dead ON tasks (changed) WHERE state = 'dead';
CREATE INDEX tasks_dead_by_source ON tasks (source, changed) WHERE state = 'dead';

-- Columns in this order: the program names none of them when it inserts.
CREATE TABLE payloads (
    task    BIGINT PRIMARY KEY,
    key     TEXT NOT NULL,
    payload TEXT NOT NULL
);

CREATE TABLE pasts (
    task      BIGINT NOT NULL,
    n         BIGINT NOT NULL,
    at        BIGINT NOT NULL,
    event     TEXT NOT NULL,
    attempt   BIGINT NOT NULL,
    collector TEXT,
    error     TEXT,
    PRIMARY KEY (task, n)
);

CREATE TABLE claims (
    n         BIGINT PRIMARY KEY,
    claim     TEXT COLLATE "C" NOT NULL UNIQUE,
    collector TEXT NOT NULL,
    request   TEXT NOT NULL,
    until     BIGINT,
    reason    TEXT,
    next_at   BIGINT,
    repeated  BIGINT NOT NULL,
    forget    BIGINT NOT NULL
);
CREATE INDEX claims_by_age ON claims (forget);

CREATE TABLE grants (
    claim BIGINT NOT NULL,
    task  BIGINT NOT NULL,
    PRIMARY KEY (claim, task)
);
CREATE INDEX grants_by_task ON grants (task);

CREATE TABLE waiters (
    n       BIGINT PRIMARY KEY,
    waiter  TEXT COLLATE "C" NOT NULL UNIQUE,
    sources TEXT NOT NULL,
    until   BIGINT NOT NULL
);
CREATE INDEX waiters_by_end ON waiters (until);
CREATE TABLE waits (
    source TEXT COLLATE "C" NOT NULL,
    waiter BIGINT NOT NULL,
    PRIMARY KEY (source, waiter)
);

CREATE TABLE collectors (
    name TEXT COLLATE "C" PRIMARY KEY,
    seen BIGINT NOT NULL
);
