-- Rotations move to rows and lists (src/store/core/rotation/names.rs). Whoever waits asks again: queues, promises and silent
-- node incarnations are dropped. Turns, rules, past turns, counts and what requests had are kept.

INSERT INTO rows
SELECT 'rotations', r.name, '1 ' || d.newest || char(10) || json_object(
    'rotation', json_object(
        'rules', json(r.rules),
        'ring', json(r.ring),
        'promise', NULL,
        'seen', json(CASE r.seen WHEN 0 THEN 'false' ELSE 'true' END),
        'silent', json('{}'),
        'known', json_object('server', '', 'forgot', NULL),
        'due', r.due),
    'incarnations', json('[]'),
    'ended', coalesce(json(c.kinds), json('{}')))
FROM dispatch d, rotations r LEFT JOIN (
    SELECT rotation, json_group_object(kind, json(endings)) AS kinds
    FROM (SELECT rotation, kind, json_group_object(ending, count) AS endings FROM turn_counts GROUP BY rotation, kind)
    GROUP BY rotation) c ON c.rotation = r.name;
INSERT INTO lists SELECT 'turns:due', due, name FROM rotations WHERE due IS NOT NULL;
INSERT OR REPLACE INTO lists SELECT 'turns:ended:' || rotation, token, turn FROM past_turns;
INSERT OR REPLACE INTO lists SELECT 'turns:lost', n, json_array(rotation, json(turn)) FROM lost_turns;
INSERT INTO rows SELECT 'turns:asked', rotation || ' ' || kind || ' ' || worker || ' ' || request, token || ' ' || until
    FROM turn_requests;
INSERT INTO lists SELECT 'turns:asked:until', until, rotation || ' ' || kind || ' ' || worker || ' ' || request
    FROM turn_requests;

DROP TABLE rotations;
DROP TABLE queue;
DROP TABLE silent_lives;
DROP TABLE turn_requests;
DROP TABLE past_turns;
DROP TABLE lost_turns;
DROP TABLE turn_counts;
