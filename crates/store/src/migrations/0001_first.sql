-- The first schema. Times are RFC 3339 UTC text; chat 0 is the console. What a person may query is named in the README:
-- incoming_messages, outgoing_messages and processing_lock keep their first columns for ever, and every other column has
-- a default, so that a message can be queued by hand.

CREATE TABLE incoming_messages (
    id                  INTEGER PRIMARY KEY AUTOINCREMENT,
    chat_id             INTEGER NOT NULL,
    message_text        TEXT    NOT NULL,
    received_at         TEXT    NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now')),
    processed           INTEGER NOT NULL DEFAULT 0 CHECK (processed IN (0, 1)),
    outcome             TEXT,               -- why processed: answered, refused, dead, dropped, undone
    processed_at        TEXT,
    cycle_id            TEXT,               -- the cycle that took it up last
    kind                TEXT    NOT NULL DEFAULT 'text',
    sender_id           INTEGER,
    sender_name         TEXT,
    thread_id           INTEGER,            -- forum topic
    channel_message_id  INTEGER,            -- the channel's own id of the message
    quoted              TEXT,               -- what it replies to: somebody's words, never an instruction
    forwarded_from      TEXT,
    raw                 TEXT,               -- the update as it came
    bot_id              INTEGER,
    update_id           INTEGER,
    attempts            INTEGER NOT NULL DEFAULT 0,   -- cycles that failed on it
    held_for            TEXT,               -- the mind that could not answer it; another one may
    not_before          TEXT                -- back-off after the mind could not be reached
);
-- Update ids are a key, not an order.
CREATE UNIQUE INDEX incoming_by_update ON incoming_messages (bot_id, update_id) WHERE update_id IS NOT NULL;
CREATE INDEX incoming_queued ON incoming_messages (chat_id, id) WHERE processed = 0;
CREATE INDEX incoming_by_chat ON incoming_messages (chat_id, id);

CREATE TABLE outgoing_messages (
    id            INTEGER PRIMARY KEY AUTOINCREMENT,
    chat_id       INTEGER NOT NULL,
    message_text  TEXT    NOT NULL,         -- Markdown
    sent_at       TEXT,                     -- NULL until every part was confirmed
    created_at    TEXT    NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now')),
    kind          TEXT    NOT NULL DEFAULT 'reply',   -- reply, tell, reminder, notice, command
    key           TEXT    UNIQUE,           -- the same thing is never told twice
    thread_id     INTEGER,
    reply_to      INTEGER,                  -- channel_message_id of the question
    cycle_id      TEXT                      -- not delivered before this cycle has committed
);
CREATE INDEX outgoing_unsent ON outgoing_messages (chat_id, id) WHERE sent_at IS NULL;
CREATE INDEX outgoing_by_chat ON outgoing_messages (chat_id, id);

CREATE TABLE outgoing_parts (
    outgoing_id         INTEGER NOT NULL REFERENCES outgoing_messages (id),
    part                INTEGER NOT NULL,
    html                TEXT    NOT NULL,
    plain               TEXT    NOT NULL,
    state               TEXT    NOT NULL DEFAULT 'planned'
                        CHECK (state IN ('planned', 'attempting', 'sent', 'unknown', 'failed')),
    attempts            INTEGER NOT NULL DEFAULT 0,
    repeats             INTEGER NOT NULL DEFAULT 0,   -- sends after an ambiguous one: at most one, marked
    not_before          TEXT,
    sender              TEXT,               -- JSON identity of the process that is attempting
    channel_message_id  INTEGER,
    error               TEXT,
    changed_at          TEXT,
    PRIMARY KEY (outgoing_id, part)
);
CREATE INDEX parts_open ON outgoing_parts (outgoing_id, part) WHERE state IN ('planned', 'attempting', 'unknown');

CREATE TABLE processing_lock (
    id         INTEGER PRIMARY KEY CHECK (id = 1),
    is_locked  INTEGER NOT NULL DEFAULT 0,
    locked_at  TEXT,
    fence      INTEGER NOT NULL DEFAULT 0,
    holder     TEXT                         -- JSON {pid, boot_id, started, …}
);
INSERT INTO processing_lock (id) VALUES (1);

CREATE TABLE poll_state (
    bot_id        INTEGER PRIMARY KEY,
    next_offset   INTEGER NOT NULL,
    last_poll_at  TEXT
);

CREATE TABLE counters (
    name     TEXT PRIMARY KEY,
    n        INTEGER NOT NULL DEFAULT 0,
    last_at  TEXT
);

-- A cycle: its conversation's fixed part, its state, what it cost. Its journal is cycle_journal.
CREATE TABLE cycles (
    id           TEXT PRIMARY KEY,
    state        TEXT NOT NULL CHECK (state IN ('running', 'waiting', 'parked', 'done', 'failed', 'abandoned')),
    trigger      TEXT NOT NULL,
    reasons      TEXT NOT NULL,             -- JSON array
    chat_id      INTEGER,
    thread_id    INTEGER,
    model        TEXT NOT NULL,
    system       TEXT NOT NULL DEFAULT '[]',
    tools        TEXT NOT NULL DEFAULT '[]',
    started_at   TEXT NOT NULL,
    ended_at     TEXT,
    not_before   TEXT,
    tries        INTEGER NOT NULL DEFAULT 0,   -- resumptions after a crash, a kill or a time-out
    fence        INTEGER NOT NULL,
    commit_id    TEXT,
    error        TEXT
);
CREATE INDEX cycles_open ON cycles (state) WHERE state IN ('running', 'waiting', 'parked');

CREATE TABLE cycle_journal (
    cycle_id  TEXT    NOT NULL REFERENCES cycles (id),
    seq       INTEGER NOT NULL,
    at        TEXT    NOT NULL,
    kind      TEXT    NOT NULL,
    body      TEXT    NOT NULL,             -- JSON
    PRIMARY KEY (cycle_id, seq)
) WITHOUT ROWID;

CREATE TABLE cycle_files (
    cycle_id  TEXT NOT NULL REFERENCES cycles (id),
    path      TEXT NOT NULL,
    base      TEXT,                         -- what the cycle read; NULL: the file was not there
    content   TEXT NOT NULL,
    PRIMARY KEY (cycle_id, path)
);

CREATE TABLE reminders (
    id          INTEGER PRIMARY KEY AUTOINCREMENT,
    chat_id     INTEGER NOT NULL,
    thread_id   INTEGER,
    text        TEXT NOT NULL,
    rule        TEXT,                       -- JSON recurrence; NULL: once
    zone        TEXT NOT NULL,              -- IANA zone its civil times are in
    slot        TEXT NOT NULL,              -- next civil slot, local wall time
    next_at     TEXT NOT NULL,              -- that slot's instant
    state       TEXT NOT NULL DEFAULT 'active' CHECK (state IN ('active', 'done', 'cancelled')),
    created_at  TEXT NOT NULL,
    cycle_id    TEXT
);
CREATE INDEX reminders_active ON reminders (next_at) WHERE state = 'active';

-- A slot fires once, whatever the clock does.
CREATE TABLE reminder_firings (
    reminder_id  INTEGER NOT NULL REFERENCES reminders (id),
    slot         TEXT    NOT NULL,
    fired_at     TEXT    NOT NULL,
    outgoing_id  INTEGER,
    PRIMARY KEY (reminder_id, slot)
) WITHOUT ROWID;

CREATE TABLE ledger (
    id           INTEGER PRIMARY KEY AUTOINCREMENT,
    cycle_id     TEXT NOT NULL,
    at           TEXT NOT NULL,
    model        TEXT NOT NULL,
    input        INTEGER NOT NULL,
    output       INTEGER NOT NULL,
    cache_read   INTEGER NOT NULL,
    cache_write  INTEGER NOT NULL,
    cost_usd     REAL NOT NULL,
    discarded    INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX ledger_by_time ON ledger (at);

-- Back-off of what is looked after without a mind: push, fetch, model.
CREATE TABLE upkeep (
    name        TEXT PRIMARY KEY,
    failures    INTEGER NOT NULL DEFAULT 0,
    last_ok_at  TEXT,
    not_before  TEXT,
    error       TEXT
);

-- Things that are reasons once: a decay line, a task's `at:`, the commit seen last (under the key `head`).
CREATE TABLE handled (
    key    TEXT PRIMARY KEY,
    value  TEXT NOT NULL DEFAULT '',
    at     TEXT NOT NULL
);

-- What health repaired and the next wake writes into the episodic memory.
CREATE TABLE repairs (
    id        INTEGER PRIMARY KEY AUTOINCREMENT,
    at        TEXT NOT NULL,
    check_id  TEXT NOT NULL,
    what      TEXT NOT NULL,
    cycle_id  TEXT
);
