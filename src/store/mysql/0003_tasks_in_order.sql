-- The tables of an older build had an index of `tasks` for each state (src/store/sql/dispatch/mysql.sql says why there are two now).
-- One statement changes them, whole or not at all; it takes as long as it takes.

SET @soloist_limit = /*M!@@max_statement_time*//*!80000 0*/;
SET /*M!max_statement_time*//*!80000 @soloist_none*/ = 0;
ALTER TABLE tasks
    ADD COLUMN in_order BIGINT AS (CASE state WHEN 'ready' THEN place WHEN 'due' THEN at WHEN 'leased' THEN until ELSE changed END) STORED,
    ADD KEY tasks_by_state (state, in_order),
    ADD KEY tasks_by_source (source, state, in_order),
    DROP KEY tasks_ready,
    DROP KEY tasks_due,
    DROP KEY tasks_due_by_source,
    DROP KEY tasks_leased,
    DROP KEY tasks_leased_by_source,
    DROP KEY tasks_done,
    DROP KEY tasks_dead_by_source;
SET /*M!max_statement_time*//*!80000 @soloist_none*/ = @soloist_limit;
