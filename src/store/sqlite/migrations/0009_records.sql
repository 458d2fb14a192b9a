-- What belongs to no job: tables of rows, lists in order, logs that number themselves (src/store/records.rs).
-- Accounts, credentials, drain marks and the audit move there from tables of their own.

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

INSERT INTO rows SELECT 'users', name, json_object('name', name, 'role', role, 'password', password, 'created', created,
    'language', language, 'theme', theme) FROM users;
INSERT INTO rows SELECT 'sessions', hash, json_object('user', user, 'csrf', csrf, 'created', created, 'expires', expires,
    'used', used) FROM sessions;
INSERT INTO rows SELECT 'tokens', hash, json_object('id', id, 'user', user, 'name', name, 'created', created, 'expires', expires,
    'collector', collector,
    'sources', json(CASE sources WHEN '' THEN '[]' ELSE '["' || replace(sources, ' ', '","') || '"]' END)) FROM tokens;
INSERT INTO rows SELECT 'links', hash, json_object('user', user, 'expires', expires) FROM links;
INSERT INTO rows SELECT 'draining', name, '' FROM nodes WHERE draining <> 0;
INSERT INTO logs SELECT 'audit', id, json_object('id', id, 'at', at, 'who', who, 'from', origin, 'act', act, 'target', target,
    'reason', reason) FROM audit;
INSERT INTO numbers SELECT 'audit', max(id) FROM audit HAVING max(id) IS NOT NULL;

DROP TABLE users;
DROP TABLE sessions;
DROP TABLE tokens;
DROP TABLE links;
DROP TABLE failures;
DROP TABLE nodes;
DROP TABLE audit;
