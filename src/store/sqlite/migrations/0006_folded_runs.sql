-- 0: one run; else how many runs alike without output the entry stands for (store::journal::RunEntry::folded).
ALTER TABLE runs ADD COLUMN folded INTEGER NOT NULL DEFAULT 0;
