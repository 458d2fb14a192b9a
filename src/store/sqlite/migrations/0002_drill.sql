-- The newest drill of a job: domain::drill::Drill as JSON.
ALTER TABLE jobs ADD COLUMN drill TEXT;
