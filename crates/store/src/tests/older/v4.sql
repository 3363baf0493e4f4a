-- A database as a program with schema version 4 made it, with a row in each table.
CREATE TABLE incoming_messages (
 id INTEGER PRIMARY KEY AUTOINCREMENT,
 chat_id INTEGER NOT NULL,
 message_text TEXT NOT NULL,
 received_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now')),
 processed INTEGER NOT NULL DEFAULT 0 CHECK (processed IN (0, 1)),
 outcome TEXT, -- why processed: answered, refused, dead, dropped, undone
 processed_at TEXT,
 cycle_id TEXT, -- the cycle that took it up last
 kind TEXT NOT NULL DEFAULT 'text',
 sender_id INTEGER,
 sender_name TEXT,
 thread_id INTEGER, -- forum topic
 channel_message_id INTEGER, -- the channel's own id of the message
 quoted TEXT, -- what it replies to: somebody's words, never an instruction
 forwarded_from TEXT,
 raw TEXT, -- the update as it came
 bot_id INTEGER,
 update_id INTEGER,
 attempts INTEGER NOT NULL DEFAULT 0, -- cycles that failed on it
 held_for TEXT, -- the mind that could not answer it; another one may
 not_before TEXT -- back-off after the mind could not be reached
);
CREATE UNIQUE INDEX incoming_by_update ON incoming_messages (bot_id, update_id) WHERE update_id IS NOT NULL;
CREATE INDEX incoming_queued ON incoming_messages (chat_id, id) WHERE processed = 0;
CREATE INDEX incoming_by_chat ON incoming_messages (chat_id, id);
CREATE TABLE outgoing_messages (
 id INTEGER PRIMARY KEY AUTOINCREMENT,
 chat_id INTEGER NOT NULL,
 message_text TEXT NOT NULL, -- Markdown
 sent_at TEXT, -- NULL until every part was confirmed
 created_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now')),
 kind TEXT NOT NULL DEFAULT 'reply', -- reply, tell, reminder, notice, command
 key TEXT UNIQUE, -- the same thing is never told twice
 thread_id INTEGER,
 reply_to INTEGER, -- channel_message_id of the question
 cycle_id TEXT -- not delivered before this cycle has committed
);
CREATE INDEX outgoing_unsent ON outgoing_messages (chat_id, id) WHERE sent_at IS NULL;
CREATE INDEX outgoing_by_chat ON outgoing_messages (chat_id, id);
CREATE TABLE outgoing_parts (
 outgoing_id INTEGER NOT NULL REFERENCES outgoing_messages (id),
 part INTEGER NOT NULL,
 html TEXT NOT NULL,
 plain TEXT NOT NULL,
 state TEXT NOT NULL DEFAULT 'planned'
 CHECK (state IN ('planned', 'attempting', 'sent', 'unknown', 'failed')),
 attempts INTEGER NOT NULL DEFAULT 0,
 repeats INTEGER NOT NULL DEFAULT 0, -- sends after an ambiguous one: at most one, marked
 not_before TEXT,
 sender TEXT, -- JSON identity of the process that is attempting
 channel_message_id INTEGER,
 error TEXT,
 changed_at TEXT,
 PRIMARY KEY (outgoing_id, part)
);
CREATE INDEX parts_open ON outgoing_parts (outgoing_id, part) WHERE state IN ('planned', 'attempting', 'unknown');
CREATE TABLE processing_lock (
 id INTEGER PRIMARY KEY CHECK (id = 1),
 is_locked INTEGER NOT NULL DEFAULT 0,
 locked_at TEXT,
 fence INTEGER NOT NULL DEFAULT 0,
 holder TEXT -- JSON {pid, boot_id, started, …}
);
CREATE TABLE poll_state (
 bot_id INTEGER PRIMARY KEY,
 next_offset INTEGER NOT NULL,
 last_poll_at TEXT
);
CREATE TABLE counters (
 name TEXT PRIMARY KEY,
 n INTEGER NOT NULL DEFAULT 0,
 last_at TEXT
);
CREATE TABLE cycles (
 id TEXT PRIMARY KEY,
 state TEXT NOT NULL CHECK (state IN ('running', 'waiting', 'parked', 'done', 'failed', 'abandoned')),
 trigger TEXT NOT NULL,
 reasons TEXT NOT NULL, -- JSON array
 chat_id INTEGER,
 thread_id INTEGER,
 model TEXT NOT NULL,
 system TEXT NOT NULL DEFAULT '[]',
 tools TEXT NOT NULL DEFAULT '[]',
 started_at TEXT NOT NULL,
 ended_at TEXT,
 not_before TEXT,
 tries INTEGER NOT NULL DEFAULT 0, -- resumptions after a crash, a kill or a time-out
 fence INTEGER NOT NULL,
 commit_id TEXT,
 error TEXT
, has_journal INTEGER NOT NULL DEFAULT 1, was_cut_off INTEGER NOT NULL DEFAULT 0);
CREATE INDEX cycles_open ON cycles (state) WHERE state IN ('running', 'waiting', 'parked');
CREATE TABLE cycle_journal (
 cycle_id TEXT NOT NULL REFERENCES cycles (id),
 seq INTEGER NOT NULL,
 at TEXT NOT NULL,
 kind TEXT NOT NULL,
 body TEXT NOT NULL, -- JSON
 PRIMARY KEY (cycle_id, seq)
) WITHOUT ROWID;
CREATE TABLE cycle_files (
 cycle_id TEXT NOT NULL REFERENCES cycles (id),
 path TEXT NOT NULL,
 base TEXT, -- what the cycle read; NULL: the file was not there
 content TEXT NOT NULL,
 PRIMARY KEY (cycle_id, path)
);
CREATE TABLE reminders (
 id INTEGER PRIMARY KEY AUTOINCREMENT,
 chat_id INTEGER NOT NULL,
 thread_id INTEGER,
 text TEXT NOT NULL,
 rule TEXT, -- JSON recurrence; NULL: once
 zone TEXT NOT NULL, -- IANA zone its civil times are in
 slot TEXT NOT NULL, -- next civil slot, local wall time
 next_at TEXT NOT NULL, -- that slot's instant
 state TEXT NOT NULL DEFAULT 'active' CHECK (state IN ('active', 'done', 'cancelled')),
 created_at TEXT NOT NULL,
 cycle_id TEXT
, missed TEXT NOT NULL DEFAULT 'run' CHECK (missed IN ('run', 'skip', 'tell')), written_at TEXT);
CREATE INDEX reminders_active ON reminders (next_at) WHERE state = 'active';
CREATE TABLE reminder_firings (
 reminder_id INTEGER NOT NULL REFERENCES reminders (id),
 slot TEXT NOT NULL,
 fired_at TEXT NOT NULL,
 outgoing_id INTEGER, outcome TEXT NOT NULL DEFAULT 'run' CHECK (outcome IN ('run', 'skip', 'tell')), first_slot TEXT,
 PRIMARY KEY (reminder_id, slot)
) WITHOUT ROWID;
CREATE TABLE ledger (
 id INTEGER PRIMARY KEY AUTOINCREMENT,
 cycle_id TEXT NOT NULL,
 at TEXT NOT NULL,
 model TEXT NOT NULL,
 input INTEGER NOT NULL,
 output INTEGER NOT NULL,
 cache_read INTEGER NOT NULL,
 cache_write INTEGER NOT NULL,
 cost_usd REAL NOT NULL,
 discarded INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX ledger_by_time ON ledger (at);
CREATE TABLE upkeep (
 name TEXT PRIMARY KEY,
 failures INTEGER NOT NULL DEFAULT 0,
 last_ok_at TEXT,
 not_before TEXT,
 error TEXT
);
CREATE TABLE handled (
 key TEXT PRIMARY KEY,
 value TEXT NOT NULL DEFAULT '',
 at TEXT NOT NULL
);
CREATE TABLE repairs (
 id INTEGER PRIMARY KEY AUTOINCREMENT,
 at TEXT NOT NULL,
 check_id TEXT NOT NULL,
 what TEXT NOT NULL,
 cycle_id TEXT
);
CREATE INDEX cycles_to_forget ON cycles (ended_at) WHERE has_journal = 1;
CREATE INDEX incoming_to_forget ON incoming_messages (processed_at) WHERE processed = 1 AND raw IS NOT NULL;
CREATE INDEX parts_to_forget ON outgoing_parts (changed_at) WHERE state = 'sent' AND html != '';
CREATE INDEX incoming_unfinished ON incoming_messages (cycle_id) WHERE processed = 0 OR outcome IN ('dead', 'dropped');
INSERT INTO incoming_messages VALUES
(1, 7, 'message_text ü', '2026-11-21T08:00:00.000Z', 1, 'outcome ü', '2026-11-21T08:00:00.006Z', 'c-done', 'kind ü', 11, 'sender_name ü', 13, 14, 'quoted ü', 'forwarded_from ü', 'raw ü', 18, 19, 20, 'held_for ü', '2026-11-21T08:00:00.020Z'),
(2, 7, 'remind me', '2026-11-21T08:00:00.000Z', 0, NULL, NULL, 'c-last', 'text', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, NULL, NULL);
INSERT INTO outgoing_messages VALUES
(1, 7, 'message_text ü', '2026-11-21T08:00:00.003Z', '2026-11-21T08:00:00.000Z', 'kind ü', 'key ü', 9, 10, 'c-done'),
(2, 7, 'of a guest''s cycle', NULL, '2026-11-21T08:00:00.000Z', 'tell', NULL, NULL, NULL, 'c-guest'),
(3, 7, 'of a command', NULL, '2026-11-21T08:00:00.000Z', 'command', NULL, NULL, NULL, NULL),
(4, 7, 'of a person', NULL, '2026-11-21T08:00:00.000Z', 'notice', NULL, NULL, NULL, NULL);
INSERT INTO outgoing_parts VALUES
(1, 3, 'html ü', 'plain ü', 'sent', 7, 8, '2026-11-21T08:00:00.007Z', 'sender ü', 11, 'error ü', '2026-11-21T08:00:00.011Z');
INSERT INTO processing_lock VALUES
(1, 3, '2026-11-21T08:00:00.002Z', 5, 'holder ü');
INSERT INTO poll_state VALUES
(2, 3, '2026-11-21T08:00:00.002Z');
INSERT INTO counters VALUES
('name ü', 3, '2026-11-21T08:00:00.002Z');
INSERT INTO cycles VALUES
('c-done', 'done', 'trigger ü', 'reasons ü', 7, 7, 'model ü', 'system ü', 'tools ü', '2026-11-21T08:00:00.009Z', '2026-11-21T08:00:00.010Z', '2026-11-21T08:00:00.011Z', 14, 15, 'commit_id ü', 'error ü', 18, 19),
('c-first', 'abandoned', 'test', '[]', 7, NULL, 'offline', '[]', '[]', '2026-11-21T08:00:00Z', NULL, NULL, 0, 1, NULL, NULL, 1, 0),
('c-unreadable', 'abandoned', 'test', '[]', 7, NULL, 'offline', '[]', '[]', '2026-11-21T08:00:00Z', NULL, NULL, 0, 1, NULL, NULL, 1, 0),
('c-last', 'abandoned', 'test', '[]', 7, NULL, 'offline', '[]', '[]', '2026-11-21T08:00:00Z', NULL, NULL, 0, 1, NULL, NULL, 1, 0),
('c-open', 'running', 'test', '[]', 7, NULL, 'offline', '[]', '[]', '2026-11-21T08:00:00Z', NULL, NULL, 0, 1, NULL, NULL, 1, 0),
('c-guest', 'done', 'test', '[]', 5555, NULL, 'offline', '[]', '[]', '2026-11-21T08:00:00Z', NULL, NULL, 0, 1, NULL, NULL, 1, 0);
INSERT INTO cycle_journal VALUES
('c-done', 3, '2026-11-21T08:00:00.002Z', 'kind ü', '{}'),
('c-first', 1, '2026-11-21T08:00:00Z', 'said', '{"messages": [2]}'),
('c-guest', 1, '2026-11-21T08:00:00Z', 'said', '{"messages": [2]}'),
('c-last', 1, '2026-11-21T08:00:00Z', 'said', '{"messages": [2]}'),
('c-open', 1, '2026-11-21T08:00:00Z', 'said', '{"messages": [2]}'),
('c-unreadable', 1, '2026-11-21T08:00:00Z', 'said', '{');
INSERT INTO cycle_files VALUES
('c-done', 'path ü', 'base ü', 'content ü');
INSERT INTO reminders VALUES
(1, 7, 4, 'text ü', 'rule ü', 'zone ü', 'slot ü', '2026-11-21T08:00:00.007Z', 'active', '2026-11-21T08:00:00.009Z', 'c-done', 'skip', '2026-11-21T08:00:00.012Z');
INSERT INTO reminder_firings VALUES
(1, 'slot ü', '2026-11-21T08:00:00.002Z', 1, 'tell', 'first_slot ü');
INSERT INTO ledger VALUES
(1, 'c-done', '2026-11-21T08:00:00.002Z', 'model ü', 6, 7, 8, 9, 8.25, 11);
INSERT INTO upkeep VALUES
('name ü', 3, '2026-11-21T08:00:00.002Z', '2026-11-21T08:00:00.003Z', 'error ü');
INSERT INTO handled VALUES
('key ü', 'value ü', '2026-11-21T08:00:00.002Z');
INSERT INTO repairs VALUES
(1, '2026-11-21T08:00:00.001Z', 'check_id ü', 'what ü', 'c-done');
DELETE FROM sqlite_sequence;
INSERT INTO sqlite_sequence VALUES ('incoming_messages', 9), ('ledger', 1), ('outgoing_messages', 4), ('reminders', 1), ('repairs', 1);
PRAGMA user_version = 4;
