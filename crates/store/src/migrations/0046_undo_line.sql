-- One line of what changed by somebody's order, for undo: what wakes did, and what people did themselves.
CREATE TABLE undo_line (
    id        INTEGER PRIMARY KEY AUTOINCREMENT,
    chat_id   INTEGER NOT NULL,                  -- where it was ordered; 0: at this machine
    at        TEXT NOT NULL,
    cycle_id  TEXT UNIQUE,                       -- the wake that did it; NULL: a person did it themselves
    did       TEXT,                              -- of a person's own step: in words, in the past tense
    commit_id TEXT,                              -- of a person's own step: its commit; NULL: the memory isn't touched
    before    TEXT                               -- of a person's own step: JSON, the setting that it changed as it was
);

INSERT INTO undo_line (chat_id, at, cycle_id)
SELECT COALESCE(chat_id, 0), COALESCE(ended_at, started_at), id FROM cycles
WHERE state = 'done' AND commit_id IS NOT NULL AND model <> 'none' AND (has_changed IS NOT 0 OR has_copies = 1)
    OR state IN ('failed', 'abandoned') AND has_copies = 1
ORDER BY ended_at, started_at, id;
