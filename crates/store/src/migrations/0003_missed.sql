-- What becomes of a slot that was missed, and of times that come again after the clock was set back.
ALTER TABLE reminders ADD COLUMN missed TEXT NOT NULL DEFAULT 'run' CHECK (missed IN ('run', 'skip', 'tell'));
ALTER TABLE reminders ADD COLUMN written_at TEXT;   -- when the next slot was written; NULL: not known

-- A row is a slot that happened (run), or the last of some that were passed over; first_slot is the first of these.
ALTER TABLE reminder_firings ADD COLUMN outcome TEXT NOT NULL DEFAULT 'run' CHECK (outcome IN ('run', 'skip', 'tell'));
ALTER TABLE reminder_firings ADD COLUMN first_slot TEXT;
