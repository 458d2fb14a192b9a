-- The store of Soloist: jobs as texts that src/store/core decides on, everything else as cells, lists and logs.
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
