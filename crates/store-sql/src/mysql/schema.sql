-- Schema 1: jobs as texts that crates/store/src/core decides on, everything else as cells, lists and logs. What each table is
-- for: crates/store-sql/src/postgres/schema.sql. Instants are microseconds since 1970 by the server's clock, `*_ms` milliseconds. Never edited once
-- released: what comes later is a step (open.rs).
-- `{table}`: InnoDB, utf8mb4, compared byte by byte, trailing blanks included. Indexes stand in their tables: so CREATE is enough.

CREATE TABLE IF NOT EXISTS epoch (
    one        BIGINT NOT NULL PRIMARY KEY,
    id         VARCHAR(255) NOT NULL,
    server     VARCHAR(1024) NOT NULL,
    since_ms   BIGINT NOT NULL,
    until_ms   BIGINT NOT NULL,
    longest_ms BIGINT NOT NULL,
    before_ms  BIGINT NOT NULL,
    turned_ms  BIGINT NOT NULL,
    doubted_ms BIGINT NOT NULL,
    version    BIGINT NOT NULL
) {table};

CREATE TABLE IF NOT EXISTS jobs (
    job   VARCHAR(255) NOT NULL PRIMARY KEY,
    head  VARCHAR(255) NOT NULL,
    body  MEDIUMTEXT NOT NULL,
    lease MEDIUMTEXT,
    ends  BIGINT
) {table};

CREATE TABLE IF NOT EXISTS runs (
    job    VARCHAR(255) NOT NULL,
    number BIGINT NOT NULL,
    folded BIGINT NOT NULL,
    text   MEDIUMTEXT NOT NULL,
    PRIMARY KEY (job, number),
    KEY runs_folded (job, folded, number)
) {table};

CREATE TABLE IF NOT EXISTS output (
    job    VARCHAR(255) NOT NULL,
    number BIGINT NOT NULL,
    text   MEDIUMTEXT NOT NULL,
    PRIMARY KEY (job, number)
) {table};

CREATE TABLE IF NOT EXISTS cells (
    kind VARCHAR(128) NOT NULL,
    name VARCHAR(600) NOT NULL,
    text MEDIUMTEXT NOT NULL,
    PRIMARY KEY (kind, name)
) {table};

-- A text may be longer than any key: its digest says that it is there already.
CREATE TABLE IF NOT EXISTS lists (
    list   VARCHAR(400) NOT NULL,
    number BIGINT NOT NULL,
    text   MEDIUMTEXT NOT NULL,
    digest BINARY(32) AS (UNHEX(SHA2(text, 256))) STORED,
    UNIQUE KEY lists_each_once (list, digest),
    KEY lists_in_order (list, number),
    KEY lists_by_text (list, text(128))
) {table};

CREATE TABLE IF NOT EXISTS logs (
    log   VARCHAR(255) NOT NULL,
    id    BIGINT NOT NULL,
    at    BIGINT NOT NULL,
    times BIGINT NOT NULL,
    until BIGINT,
    entry MEDIUMTEXT NOT NULL,
    PRIMARY KEY (log, id)
) {table};

CREATE TABLE IF NOT EXISTS folds (
    log   VARCHAR(128) NOT NULL,
    topic VARCHAR(600) NOT NULL,
    same  MEDIUMTEXT NOT NULL,
    id    BIGINT NOT NULL,
    PRIMARY KEY (log, topic)
) {table};

CREATE TABLE IF NOT EXISTS numbers (
    name   VARCHAR(255) NOT NULL PRIMARY KEY,
    newest BIGINT NOT NULL
) {table};
INSERT INTO numbers (name, newest) VALUES ('gate', 0), ('gate:turns', 0) ON DUPLICATE KEY UPDATE name = name;

-- What happened, for whoever listens: hints. A number is drawn before the commit that shows it: a smaller one may be seen later.
CREATE TABLE IF NOT EXISTS rings (
    n    BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
    hint MEDIUMTEXT NOT NULL
) {table};

-- Dispatch. Instants are Stamps: microseconds since 1970 on the server's clock, which never go back behind `newest`.
-- What each table is for: crates/store-sql/src/sqlite/schema.sql.

CREATE TABLE IF NOT EXISTS dispatch (
    one    BIGINT NOT NULL PRIMARY KEY,
    newest BIGINT NOT NULL,
    token  BIGINT NOT NULL,
    turn   BIGINT NOT NULL,
    done   BIGINT NOT NULL
) {table};
INSERT INTO dispatch (one, newest, token, turn, done) VALUES (1, 0, 0, 0, 0) ON DUPLICATE KEY UPDATE one = one;

CREATE TABLE IF NOT EXISTS sources (
    name           VARCHAR(255) NOT NULL PRIMARY KEY,
    rules          MEDIUMTEXT NOT NULL,
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
    shut           VARCHAR(16),
    opens          BIGINT,
    KEY sources_by_turn (turn),
    KEY sources_by_shut (shut),
    KEY sources_by_opens (opens),
    KEY sources_by_promise (promised_until)
) {table};

CREATE TABLE IF NOT EXISTS starts (
    source VARCHAR(255) NOT NULL,
    at     BIGINT NOT NULL,
    n      BIGINT NOT NULL,
    PRIMARY KEY (source, at, n)
) {table};

-- Numbers of rows are given by the program, under the lock on `dispatch`. `in_order`: what the tasks of a state are in order by. Each index
-- with the state in it is written at each step of a task, so there are two.
CREATE TABLE IF NOT EXISTS tasks (
    n         BIGINT NOT NULL PRIMARY KEY,
    id        VARCHAR(255) NOT NULL,
    source    VARCHAR(255) NOT NULL,
    state     VARCHAR(8) NOT NULL,
    priority  BIGINT NOT NULL,
    place     BIGINT,
    at        BIGINT,
    until     BIGINT,
    lease_us  BIGINT,
    attempt   BIGINT NOT NULL,
    token     BIGINT NOT NULL,
    accepted  BIGINT NOT NULL,
    collector VARCHAR(255),
    claim     BIGINT,
    every_us  BIGINT,
    created   BIGINT NOT NULL,
    changed   BIGINT NOT NULL,
    error     MEDIUMTEXT,
    in_order  BIGINT AS (CASE state WHEN 'ready' THEN place WHEN 'due' THEN at WHEN 'leased' THEN until ELSE changed END) STORED,
    UNIQUE KEY tasks_by_id (id),
    KEY tasks_by_state (state, in_order),
    KEY tasks_by_source (source, state, in_order)
) {table};

-- Columns in this order: the program names none of them when it inserts.
CREATE TABLE IF NOT EXISTS payloads (
    task    BIGINT NOT NULL PRIMARY KEY,
    `key`   MEDIUMTEXT NOT NULL,
    payload MEDIUMTEXT NOT NULL
) {table};

CREATE TABLE IF NOT EXISTS pasts (
    task      BIGINT NOT NULL,
    n         BIGINT NOT NULL,
    at        BIGINT NOT NULL,
    event     VARCHAR(16) NOT NULL,
    attempt   BIGINT NOT NULL,
    collector VARCHAR(255),
    error     MEDIUMTEXT,
    PRIMARY KEY (task, n)
) {table};

CREATE TABLE IF NOT EXISTS claims (
    n         BIGINT NOT NULL PRIMARY KEY,
    claim     VARCHAR(512) NOT NULL,
    collector VARCHAR(255) NOT NULL,
    request   VARCHAR(512) NOT NULL,
    until     BIGINT,
    reason    VARCHAR(16),
    next_at   BIGINT,
    repeated  BIGINT NOT NULL,
    forget    BIGINT NOT NULL,
    UNIQUE KEY claims_by_name (claim),
    KEY claims_by_age (forget)
) {table};

CREATE TABLE IF NOT EXISTS grants (
    claim BIGINT NOT NULL,
    task  BIGINT NOT NULL,
    PRIMARY KEY (claim, task),
    KEY grants_by_task (task)
) {table};

CREATE TABLE IF NOT EXISTS waiters (
    n       BIGINT NOT NULL PRIMARY KEY,
    waiter  VARCHAR(512) NOT NULL,
    sources MEDIUMTEXT NOT NULL,
    until   BIGINT NOT NULL,
    UNIQUE KEY waiters_by_name (waiter),
    KEY waiters_by_end (until)
) {table};
CREATE TABLE IF NOT EXISTS waits (
    source VARCHAR(255) NOT NULL,
    waiter BIGINT NOT NULL,
    PRIMARY KEY (source, waiter)
) {table};

CREATE TABLE IF NOT EXISTS collectors (
    name VARCHAR(255) NOT NULL PRIMARY KEY,
    seen BIGINT NOT NULL
) {table};
