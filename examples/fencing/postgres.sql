-- Writes one row, unless a newer run has written before. As sql.sh, for PostgreSQL:
--
--     psql --set token="$SOLOIST_TOKEN" --set note="shipped 10248" --file postgres.sql
--
-- The upsert locks the row of `fence` until COMMIT: an older run waits here for the newer one, and is then refused by
-- the comparison. A refusal is an error that names both tokens, so psql ends with exit code 3 and nothing is written.
\set ON_ERROR_STOP on
CREATE TABLE IF NOT EXISTS fence (sink text PRIMARY KEY, token bigint NOT NULL);
CREATE TABLE IF NOT EXISTS shipments (id bigserial PRIMARY KEY, token bigint NOT NULL, note text NOT NULL);
-- Raises unless `token` is the newest. A function, because psql puts no variables into DO blocks.
CREATE OR REPLACE FUNCTION pg_temp.pass_fence(token bigint) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    newest bigint;
BEGIN
    INSERT INTO fence AS seen (sink, token) VALUES ('shipments', pass_fence.token)
        ON CONFLICT (sink) DO UPDATE SET token = greatest(seen.token, excluded.token)
        RETURNING seen.token INTO newest;
    IF newest > pass_fence.token THEN
        RAISE EXCEPTION 'refused: token % is older than %, which has written here', pass_fence.token, newest;
    END IF;
END
$$;
BEGIN;
SELECT pg_temp.pass_fence(:token);
INSERT INTO shipments (token, note) VALUES (:token, :'note') RETURNING id;
COMMIT;
