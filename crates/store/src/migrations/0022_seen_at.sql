-- When the lease was last taken: a clock that shows less was set back since.
ALTER TABLE processing_lock ADD COLUMN seen_at TEXT;
