-- Whether a cycle that has ended left more than its answers: then an undo without an id may mean it. NULL: it ended before this
-- was noted.
ALTER TABLE cycles ADD COLUMN has_changed INTEGER;
