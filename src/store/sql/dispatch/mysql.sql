-- Dispatch. Instants are Stamps: microseconds since 1970 on the server's clock, which never go back behind `newest`.
-- What each table is for: src/store/sqlite/migrations/0003_dispatch.sql. `{table}`: src/store/mysql/0001_start.sql.

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
