-- What a file belongs to within its row, what took its place, and who listens to it.

ALTER TABLE attachments ADD COLUMN channel_message_id INTEGER; -- the part of the row that it came with; NULL: as the row's own
ALTER TABLE attachments ADD COLUMN replaced_at TEXT;           -- an edit put another file in its place: nothing more is done with it
ALTER TABLE attachments ADD COLUMN listener INTEGER;           -- the process that was the last to listen to it: a try of its own

-- The files that messages wait for, and those alone: most of what is kept is kept for good.
CREATE INDEX attachments_awaited ON attachments (message_id)
    WHERE state = 'wanted' OR state = 'kept' AND kind IN ('voice', 'video_note', 'audio');
