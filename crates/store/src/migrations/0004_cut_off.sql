-- Set when it is known that a cycle was cut off by a crash, a kill or a time-out; cleared when it is taken up again, which
-- then counts as one of its few tries. A cycle that is `running` without it was ended by an error (a full disk, …).
ALTER TABLE cycles ADD COLUMN was_cut_off INTEGER NOT NULL DEFAULT 0;
