-- What each node defines, as JSON, and the digest of it that its reports name.
ALTER TABLE nodes ADD COLUMN digest TEXT;
ALTER TABLE nodes ADD COLUMN definitions TEXT;
