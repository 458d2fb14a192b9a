-- What Soloist of commit 80095f5 (schema 7) wrote into SQLite, as sqlite3 dumps it. A lease that lasts is moved
-- to the present by the test: its boot is another one, so it is judged by the wall clock.
PRAGMA application_id = 1397705807;
PRAGMA user_version = 7;
PRAGMA foreign_keys=OFF;
BEGIN TRANSACTION;
CREATE TABLE meta (
    key   TEXT PRIMARY KEY,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO meta VALUES('epoch','250ecd70e4a5ff90e7005f33f8055650');
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
, drill TEXT) STRICT, WITHOUT ROWID;
INSERT INTO jobs VALUES('collector',26,1838462806871041,'[{"user":"li","since":1795373834834}]',NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'{"exit":{"code":0,"signal":null},"end":"exited","node":"node-a","at":1795373834835}','{"user":"li","on":true,"at":1795373834834,"reason":null}',0,'{"what":"repeat","at":1795377434835}',0,NULL,'one order',1,NULL);
INSERT INTO jobs VALUES('forgotten',1,1838462806871045,'[]',NULL,NULL,NULL,0,NULL,NULL,NULL,NULL,NULL,'{"id":"01M81QMQ9X9446YSHACBFYEAM1","token":1838462806871045,"node":"node-b","pid":7,"started":1795373834835,"phase":{"phase":"running"},"progress":null,"last_output":null}',NULL,NULL,0,NULL,0,NULL,NULL,0,NULL);
INSERT INTO jobs VALUES('held',3,0,'[]','{"by":"li","reason":"stocktaking","since":1795373834835}',NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'{"user":"li","on":false,"at":1795373834835,"reason":"enough"}',0,NULL,0,NULL,NULL,0,NULL);
INSERT INTO jobs VALUES('nightly',1,1838462806871040,'[]',NULL,'node-b','nightly/1',1838462806871040,1795373834835,20000,1991092320385,'another-boot',1795373854835,NULL,NULL,NULL,0,NULL,0,NULL,NULL,0,NULL);
INSERT INTO jobs VALUES('outbound',7,1838462806867968,'[{"user":"li","since":1795373834832},{"user":"wang","since":1795373834832}]',NULL,'node-a','a6ceb3583567237cfbc921392335d8d0/6',1838462806867968,1795373834832,30000,2001089281092,'another-boot',1795373864832,'{"id":"01M81QMQ2XM1FJQ77QMS5DNT3Z","token":1838462806867968,"node":"node-a","pid":30217,"started":1795373834833,"phase":{"phase":"running"},"progress":{"done":3,"total":9,"note":"shipping"},"last_output":1795373834833}',NULL,'{"user":"wang","on":true,"at":1795373834832,"reason":null}',0,NULL,0,'{"from":"node-a","to":"node-b","by":"li","until":1795373894833}','shipping',1,'{"token":1838462806867968,"by":"li","at":1795373834833,"to":null,"started":null}');
INSERT INTO jobs VALUES('settlement',11,1838462806868993,'[{"user":"li","since":1795373834833}]',NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'{"exit":{"code":3,"signal":null},"end":"crashed","node":"node-a","at":1795373834833}','{"user":"li","on":true,"at":1795373834833,"reason":"spring sale"}',2,NULL,1,NULL,'\ '||char(7)||'',4,NULL);
INSERT INTO jobs VALUES('silent',3,1838462806871040,'[{"user":"li","since":1795373834835}]',NULL,'node-b','silent/1',1838462806871040,1795373834835,200,1971292069873,'another-boot',1795373835035,'{"id":"01M81QMQ8X9446YSHACBFYEAM1","token":1838462806871040,"node":"node-b","pid":30217,"started":1795373834835,"phase":{"phase":"running"},"progress":null,"last_output":null}',NULL,'{"user":"li","on":true,"at":1795373834835,"reason":null}',0,NULL,0,NULL,NULL,0,NULL);
CREATE TABLE events (
    seq     INTEGER PRIMARY KEY,
    job     TEXT,
    version INTEGER,
    kind    TEXT
, wake TEXT) STRICT;
INSERT INTO events VALUES(1,'outbound',1,'participation_changed',NULL);
INSERT INTO events VALUES(2,'outbound',2,'participation_changed',NULL);
INSERT INTO events VALUES(3,'outbound',3,'lease_acquired',NULL);
INSERT INTO events VALUES(4,'outbound',4,'run_started',NULL);
INSERT INTO events VALUES(5,'outbound',5,'run_progressed',NULL);
INSERT INTO events VALUES(6,'outbound',6,'drill_requested',NULL);
INSERT INTO events VALUES(7,'outbound',7,'move_requested',NULL);
INSERT INTO events VALUES(8,'settlement',1,'participation_changed',NULL);
INSERT INTO events VALUES(9,'settlement',2,'lease_acquired',NULL);
INSERT INTO events VALUES(10,'settlement',3,'run_started',NULL);
INSERT INTO events VALUES(11,'settlement',4,'run_progressed',NULL);
INSERT INTO events VALUES(12,'settlement',5,'run_ended',NULL);
INSERT INTO events VALUES(13,'settlement',6,'lease_released',NULL);
INSERT INTO events VALUES(14,'settlement',7,'lease_acquired',NULL);
INSERT INTO events VALUES(15,'settlement',8,'run_started',NULL);
INSERT INTO events VALUES(16,'settlement',9,'run_progressed',NULL);
INSERT INTO events VALUES(17,'settlement',10,'run_ended',NULL);
INSERT INTO events VALUES(18,'settlement',11,'lease_released',NULL);
INSERT INTO events VALUES(19,'collector',1,'participation_changed',NULL);
INSERT INTO events VALUES(20,'collector',2,'lease_acquired',NULL);
INSERT INTO events VALUES(21,'collector',3,'run_started',NULL);
INSERT INTO events VALUES(22,'collector',4,'run_ended',NULL);
INSERT INTO events VALUES(23,'collector',5,'lease_released',NULL);
INSERT INTO events VALUES(24,'collector',6,'lease_acquired',NULL);
INSERT INTO events VALUES(25,'collector',7,'run_started',NULL);
INSERT INTO events VALUES(26,'collector',8,'run_ended',NULL);
INSERT INTO events VALUES(27,'collector',9,'lease_released',NULL);
INSERT INTO events VALUES(28,'collector',10,'lease_acquired',NULL);
INSERT INTO events VALUES(29,'collector',11,'run_started',NULL);
INSERT INTO events VALUES(30,'collector',12,'run_progressed',NULL);
INSERT INTO events VALUES(31,'collector',13,'run_ended',NULL);
INSERT INTO events VALUES(32,'collector',14,'lease_released',NULL);
INSERT INTO events VALUES(33,'collector',15,'lease_acquired',NULL);
INSERT INTO events VALUES(34,'collector',16,'run_started',NULL);
INSERT INTO events VALUES(35,'collector',17,'run_ended',NULL);
INSERT INTO events VALUES(36,'collector',18,'lease_released',NULL);
INSERT INTO events VALUES(37,'collector',19,'lease_acquired',NULL);
INSERT INTO events VALUES(38,'collector',20,'run_started',NULL);
INSERT INTO events VALUES(39,'collector',21,'run_ended',NULL);
INSERT INTO events VALUES(40,'collector',22,'lease_released',NULL);
INSERT INTO events VALUES(41,'collector',23,'lease_acquired',NULL);
INSERT INTO events VALUES(42,'collector',24,'run_started',NULL);
INSERT INTO events VALUES(43,'collector',25,'run_ended',NULL);
INSERT INTO events VALUES(44,'collector',26,'lease_released',NULL);
INSERT INTO events VALUES(45,'held',1,'participation_changed',NULL);
INSERT INTO events VALUES(46,'held',2,'participation_changed',NULL);
INSERT INTO events VALUES(47,'held',3,'held',NULL);
INSERT INTO events VALUES(48,'silent',1,'participation_changed',NULL);
INSERT INTO events VALUES(49,'silent',2,'lease_acquired',NULL);
INSERT INTO events VALUES(50,'silent',3,'run_started',NULL);
INSERT INTO events VALUES(51,'forgotten',1,'run_started',NULL);
INSERT INTO events VALUES(52,'nightly',1,'lease_acquired',NULL);
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
    killed    INTEGER NOT NULL, folded INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (job, n)
) STRICT, WITHOUT ROWID;
INSERT INTO runs VALUES('collector',2,'01M81QMQ7X9446YSHACBFYEAM2','node-a',1838462806870017,1795373834834,1795373834834,0,NULL,'exited',0,2);
INSERT INTO runs VALUES('collector',3,'01M81QMQ7X9446YSHACBFYEAM3','node-a',1838462806870018,1795373834834,1795373834834,0,NULL,'exited',0,0);
INSERT INTO runs VALUES('collector',6,'01M81QMQ7X9446YSHACBFYEAM6','node-a',1838462806871041,1795373834834,1795373834835,0,NULL,'exited',0,3);
INSERT INTO runs VALUES('forgotten',1,'01M81QMQ9X9446YSHACBFYEAM1','node-b',1838462806871045,1795373834835,NULL,NULL,NULL,NULL,0,0);
INSERT INTO runs VALUES('outbound',1,'01M81QMQ2XM1FJQ77QMS5DNT3Z','node-a',1838462806867968,1795373834833,NULL,NULL,NULL,NULL,0,0);
INSERT INTO runs VALUES('settlement',1,'01M81QMQ60PVQ2ZBMNGWW7SVT1','node-a',1838462806868992,1795373834833,1795373834833,3,NULL,'crashed',0,0);
INSERT INTO runs VALUES('settlement',2,'01M81QMQ60PVQ2ZBMNGWW7SVT2','node-a',1838462806868993,1795373834833,1795373834833,3,NULL,'crashed',0,0);
INSERT INTO runs VALUES('silent',1,'01M81QMQ8X9446YSHACBFYEAM1','node-b',1838462806871040,1795373834835,NULL,NULL,NULL,NULL,0,0);
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
INSERT INTO lines VALUES('collector',1,1795373834834,'01M81QMQ7X9446YSHACBFYEAM3','node-a','stdout','one order');
INSERT INTO lines VALUES('outbound',1,1795373834833,'01M81QMQ2XM1FJQ77QMS5DNT3Z','node-a','stdout','shipping');
INSERT INTO lines VALUES('settlement',1,1795373834833,'01M81QMQ60PVQ2ZBMNGWW7SVT1','node-a','stdout','no "luck" today: 汇率');
INSERT INTO lines VALUES('settlement',2,1795373834833,'01M81QMQ60PVQ2ZBMNGWW7SVT1','node-a','stdout','\ '||char(7)||'');
INSERT INTO lines VALUES('settlement',3,1795373834833,'01M81QMQ60PVQ2ZBMNGWW7SVT2','node-a','stdout','no "luck" today: 汇率');
INSERT INTO lines VALUES('settlement',4,1795373834833,'01M81QMQ60PVQ2ZBMNGWW7SVT2','node-a','stdout','\ '||char(7)||'');
CREATE TABLE audit (
    id     INTEGER PRIMARY KEY AUTOINCREMENT,
    at     INTEGER NOT NULL,
    who    TEXT NOT NULL,
    origin TEXT NOT NULL,
    act    TEXT NOT NULL,
    target TEXT NOT NULL,
    reason TEXT
) STRICT;
INSERT INTO audit VALUES(1,1795373834836,'li','tty1','job.hold','held','stocktaking');
CREATE TABLE nodes (
    name          TEXT PRIMARY KEY,
    beat          TEXT,                 -- JSON
    draining      INTEGER NOT NULL,
    heard         INTEGER NOT NULL,
    heard_boot_ns INTEGER NOT NULL,
    boot          TEXT NOT NULL
, digest TEXT, definitions TEXT) STRICT, WITHOUT ROWID;
CREATE TABLE users (
    name     TEXT PRIMARY KEY,
    role     TEXT NOT NULL,
    password TEXT NOT NULL,             -- argon2id, PHC string
    created  INTEGER NOT NULL,
    language TEXT,
    theme    TEXT
) STRICT, WITHOUT ROWID;
CREATE TABLE sessions (
    hash    TEXT PRIMARY KEY,
    user    TEXT NOT NULL,
    csrf    TEXT NOT NULL,
    created INTEGER NOT NULL,
    expires INTEGER NOT NULL,
    used    INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE tokens (
    hash    TEXT PRIMARY KEY,
    id      TEXT NOT NULL UNIQUE,
    user    TEXT NOT NULL,
    name    TEXT NOT NULL,
    created INTEGER NOT NULL,
    expires INTEGER
, collector TEXT, sources TEXT NOT NULL DEFAULT '') STRICT, WITHOUT ROWID;
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
CREATE TABLE dispatch (
    one    INTEGER PRIMARY KEY CHECK (one = 1),
    newest INTEGER NOT NULL,
    token  INTEGER NOT NULL,            -- the newest of all tasks
    turn   INTEGER NOT NULL,            -- the newest of all sources
    done   INTEGER NOT NULL             -- done tasks that are remembered
) STRICT;
INSERT INTO dispatch VALUES(1,0,0,0,0);
CREATE TABLE clocks (
    n         INTEGER PRIMARY KEY,
    boot      TEXT NOT NULL UNIQUE,
    offset_us INTEGER NOT NULL
) STRICT;
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
CREATE TABLE starts (
    source TEXT NOT NULL,
    at     INTEGER NOT NULL,
    n      INTEGER NOT NULL,
    PRIMARY KEY (source, at, n)
) STRICT, WITHOUT ROWID;
CREATE TABLE tasks (
    n         INTEGER PRIMARY KEY,
    id        TEXT NOT NULL UNIQUE,
    source    TEXT NOT NULL,
    state     TEXT NOT NULL,            -- ready, due, leased, done, dead
    priority  INTEGER NOT NULL,
    place     INTEGER,                  -- if ready
    at        INTEGER,                  -- if due
    until     INTEGER,                  -- if leased
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
CREATE TABLE payloads (
    task    INTEGER PRIMARY KEY,
    key     TEXT NOT NULL,
    payload TEXT NOT NULL
) STRICT;
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
CREATE TABLE claims (
    n         INTEGER PRIMARY KEY,
    claim     TEXT UNIQUE,
    collector TEXT NOT NULL,
    request   TEXT,
    until     INTEGER,                  -- the last end of its tasks
    reason    TEXT,
    next_at   INTEGER,
    repeated  INTEGER NOT NULL DEFAULT 0, -- whether the same request was answered with it again
    forget    INTEGER NOT NULL
) STRICT;
CREATE TABLE grants (
    claim INTEGER NOT NULL,
    task  INTEGER NOT NULL,
    PRIMARY KEY (claim, task)
) STRICT, WITHOUT ROWID;
CREATE TABLE waiters (
    n       INTEGER PRIMARY KEY,
    waiter  TEXT NOT NULL UNIQUE,
    sources TEXT NOT NULL,              -- JSON array
    until   INTEGER NOT NULL
) STRICT;
CREATE TABLE waits (
    source TEXT NOT NULL,
    waiter INTEGER NOT NULL,
    PRIMARY KEY (source, waiter)
) STRICT, WITHOUT ROWID;
CREATE TABLE collectors (
    name TEXT PRIMARY KEY,
    seen INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
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
CREATE TABLE silent_lives (
    life     TEXT NOT NULL,
    rotation TEXT NOT NULL,
    until    INTEGER NOT NULL,
    PRIMARY KEY (life, rotation)
) STRICT, WITHOUT ROWID;
CREATE TABLE turn_requests (
    rotation TEXT NOT NULL,
    kind     TEXT NOT NULL,
    worker   TEXT NOT NULL,
    request  TEXT NOT NULL,
    token    INTEGER NOT NULL,
    until    INTEGER NOT NULL,
    PRIMARY KEY (rotation, kind, worker, request)
) STRICT, WITHOUT ROWID;
CREATE TABLE past_turns (
    n        INTEGER PRIMARY KEY AUTOINCREMENT,
    rotation TEXT NOT NULL,
    token    INTEGER NOT NULL,
    turn     TEXT NOT NULL              -- JSON: store::rotation::PastTurn
) STRICT;
CREATE TABLE lost_turns (
    n        INTEGER PRIMARY KEY,
    rotation TEXT NOT NULL,
    turn     TEXT NOT NULL              -- JSON: domain::rotation::Turn
) STRICT;
CREATE TABLE turn_counts (
    rotation TEXT NOT NULL,
    kind     TEXT NOT NULL,
    ending   TEXT NOT NULL,
    count    INTEGER NOT NULL,
    PRIMARY KEY (rotation, kind, ending)
) STRICT, WITHOUT ROWID;
DELETE FROM sqlite_sequence;
INSERT INTO sqlite_sequence VALUES('audit',1);
CREATE UNIQUE INDEX runs_by_id ON runs (job, id);
CREATE INDEX audit_by_target ON audit (target, id);
CREATE INDEX sessions_by_user ON sessions (user);
CREATE INDEX failures_by_key ON failures (key, at);
CREATE INDEX failures_by_age ON failures (at);
CREATE INDEX sources_by_turn ON sources (turn) WHERE turn IS NOT NULL;
CREATE INDEX sources_by_shut ON sources (shut) WHERE shut IS NOT NULL;
CREATE INDEX sources_by_opens ON sources (opens) WHERE opens IS NOT NULL;
CREATE INDEX sources_by_promise ON sources (promised_until) WHERE promised > 0;
CREATE INDEX tasks_ready ON tasks (source, place) WHERE state = 'ready';
CREATE INDEX tasks_due ON tasks (at) WHERE state = 'due';
CREATE INDEX tasks_due_by_source ON tasks (source, at) WHERE state = 'due';
CREATE INDEX tasks_leased ON tasks (until) WHERE state = 'leased';
CREATE INDEX tasks_leased_by_source ON tasks (source, until) WHERE state = 'leased';
CREATE INDEX tasks_done ON tasks (changed) WHERE state = 'done';
CREATE INDEX tasks_dead ON tasks (changed) WHERE state = 'dead';
CREATE INDEX tasks_dead_by_source ON tasks (source, changed) WHERE state = 'dead';
CREATE UNIQUE INDEX claims_by_request ON claims (collector, request);
CREATE INDEX claims_by_age ON claims (forget);
CREATE INDEX waiters_by_end ON waiters (until);
CREATE INDEX rotations_by_due ON rotations (due) WHERE due IS NOT NULL;
CREATE INDEX queue_by_kind ON queue (rotation, kind, n);
CREATE INDEX queue_by_until ON queue (until);
CREATE INDEX turn_requests_by_until ON turn_requests (until);
CREATE INDEX past_turns_by_rotation ON past_turns (rotation, n);
CREATE INDEX past_turns_by_token ON past_turns (rotation, token);
COMMIT;
