-- The part is the beginning of its message, which goes along as a file, whole.
ALTER TABLE outgoing_parts ADD COLUMN as_file INTEGER NOT NULL DEFAULT 0;
