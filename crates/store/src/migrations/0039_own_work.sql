-- What a cycle works at that nobody has just asked for: `step/photos/3/0`. NULL: somebody or something else made it due.
ALTER TABLE cycles ADD COLUMN work TEXT;
CREATE INDEX cycles_by_work ON cycles (work) WHERE work IS NOT NULL;
