-- The store of Soloist: jobs as texts that src/store/core decides on, everything else as cells, lists and logs. What each table is
-- for: src/store/postgres/0001_start.sql. Instants are microseconds since 1970 by the server's clock, `*_ms` milliseconds.
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
