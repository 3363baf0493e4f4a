-- What a person orders without a mind: that all work stops, and that a wake is undone.

-- While the row stands here no wake works, whoever restarts what.
CREATE TABLE stopped (
    id       INTEGER PRIMARY KEY CHECK (id = 1),
    at       TEXT    NOT NULL,
    chat_id  INTEGER NOT NULL          -- where it was ordered; 0: the console
);

-- A wake that is to be undone, or was. The same one never is twice.
CREATE TABLE undos (
    id          INTEGER PRIMARY KEY AUTOINCREMENT,
    wake        TEXT    NOT NULL UNIQUE,   -- the cycle that is taken back
    asked_at    TEXT    NOT NULL,
    chat_id     INTEGER NOT NULL,          -- who asked is told what became of it
    thread_id   INTEGER,
    reply_to    INTEGER,
    cycle_id    TEXT,                      -- the cycle that does it
    taken_back  TEXT,                      -- JSON: what was taken back in this database; NULL: nothing yet
    answer      TEXT,                      -- what is said of it once its commit is made
    done_at     TEXT
);
CREATE INDEX undos_open ON undos (id) WHERE done_at IS NULL;

ALTER TABLE reminders ADD COLUMN ended_by TEXT;                -- the cycle that ended it by a call
ALTER TABLE outgoing_messages ADD COLUMN taken_back_at TEXT;   -- what of it wasn't sent by then never is
CREATE INDEX cycles_by_end ON cycles (ended_at) WHERE state = 'done';
