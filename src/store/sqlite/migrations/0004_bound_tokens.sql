-- API tokens that act in dispatch for one collector, or on some sources, only.

ALTER TABLE tokens ADD COLUMN collector TEXT;                    -- NULL: for any
ALTER TABLE tokens ADD COLUMN sources TEXT NOT NULL DEFAULT '';  -- separated by spaces; '': on all
