-- Writes one row, unless a newer run has written before. As sql.sh, for PostgreSQL:
--
--     psql --set ON_ERROR_STOP=1 --set token="$SOLOIST_TOKEN" --set note="shipped 10248" --file postgres.sql
--
-- The upsert locks the row of `fence` until COMMIT: an older run waits here for the newer one, and is then refused by
-- the comparison. psql prints one row when it was written, and none when it was refused.
CREATE TABLE IF NOT EXISTS fence (sink text PRIMARY KEY, token bigint NOT NULL);
CREATE TABLE IF NOT EXISTS shipments (id bigserial PRIMARY KEY, token bigint NOT NULL, note text NOT NULL);
BEGIN;
WITH newest AS (
    INSERT INTO fence (sink, token) VALUES ('shipments', :token)
        ON CONFLICT (sink) DO UPDATE SET token = excluded.token WHERE fence.token <= excluded.token
        RETURNING token
)
INSERT INTO shipments (token, note) SELECT token, :'note' FROM newest RETURNING id;
COMMIT;
