-- The newest token that was seen: who has an older one is refused.
CREATE TABLE IF NOT EXISTS fence (one INTEGER PRIMARY KEY CHECK (one = 1), token INTEGER NOT NULL);
INSERT OR IGNORE INTO fence VALUES (1, 0);
-- No key keeps an order from being shipped twice here, so that it would be seen.
CREATE TABLE IF NOT EXISTS shipped (number TEXT NOT NULL, copy TEXT NOT NULL, token INTEGER NOT NULL);
