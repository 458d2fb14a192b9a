-- Rotations. Instants are Stamps, as in 0003.

-- `ring` is domain::rotation::Ring, `promised` the waiter who was woken for the turn and has it until `promised_until`,
-- `seen`: the present turn was answered more than once, so a worker may know of it. `due`: when something happens by itself.
CREATE TABLE rotations (
    name           TEXT PRIMARY KEY,
    rules          TEXT NOT NULL,       -- JSON: domain::rotation::Rules
    ring           TEXT NOT NULL,       -- JSON
    promised       TEXT,
    promised_kind  TEXT,
    promised_until INTEGER NOT NULL,
    seen           INTEGER NOT NULL,
    due            INTEGER
) STRICT, WITHOUT ROWID;
CREATE INDEX rotations_by_due ON rotations (due) WHERE due IS NOT NULL;

-- Who waits, in the order of `n`; `life` is what the waiters of one process begin with.
CREATE TABLE queue (
    n        INTEGER PRIMARY KEY AUTOINCREMENT,
    rotation TEXT NOT NULL,
    kind     TEXT NOT NULL,
    waiter   TEXT NOT NULL,
    life     TEXT NOT NULL,
    worker   TEXT NOT NULL,
    since    INTEGER NOT NULL,
    until    INTEGER NOT NULL,
    UNIQUE (rotation, waiter)
) STRICT;
CREATE INDEX queue_by_kind ON queue (rotation, kind, n);
CREATE INDEX queue_by_until ON queue (until);

-- Lives of nodes that let a promise lapse and were not heard of since: nobody of theirs waits.
CREATE TABLE silent_lives (
    life     TEXT NOT NULL,
    rotation TEXT NOT NULL,
    until    INTEGER NOT NULL,
    PRIMARY KEY (life, rotation)
) STRICT, WITHOUT ROWID;

-- Which turn a request had.
CREATE TABLE turn_requests (
    rotation TEXT NOT NULL,
    kind     TEXT NOT NULL,
    worker   TEXT NOT NULL,
    request  TEXT NOT NULL,
    token    INTEGER NOT NULL,
    until    INTEGER NOT NULL,
    PRIMARY KEY (rotation, kind, worker, request)
) STRICT, WITHOUT ROWID;
CREATE INDEX turn_requests_by_until ON turn_requests (until);

-- The newest turns that ended.
CREATE TABLE past_turns (
    n        INTEGER PRIMARY KEY AUTOINCREMENT,
    rotation TEXT NOT NULL,
    token    INTEGER NOT NULL,
    turn     TEXT NOT NULL              -- JSON: store::rotation::PastTurn
) STRICT;
CREATE INDEX past_turns_by_rotation ON past_turns (rotation, n);
CREATE INDEX past_turns_by_token ON past_turns (rotation, token);

-- Turns whose lease ran out, until a pump has named them.
CREATE TABLE lost_turns (
    n        INTEGER PRIMARY KEY,
    rotation TEXT NOT NULL,
    turn     TEXT NOT NULL              -- JSON: domain::rotation::Turn
) STRICT;

-- How many turns of a type ended in which way.
CREATE TABLE turn_counts (
    rotation TEXT NOT NULL,
    kind     TEXT NOT NULL,
    ending   TEXT NOT NULL,
    count    INTEGER NOT NULL,
    PRIMARY KEY (rotation, kind, ending)
) STRICT, WITHOUT ROWID;
