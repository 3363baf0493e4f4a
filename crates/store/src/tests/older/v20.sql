-- A database as a program with schema version 20 made it, with a row in each table.
CREATE TABLE incoming_messages (id INTEGER PRIMARY KEY AUTOINCREMENT, chat_id INTEGER NOT NULL, message_text TEXT NOT NULL, received_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now')), processed INTEGER NOT NULL DEFAULT 0 CHECK (processed IN (0, 1)), outcome TEXT, processed_at TEXT, cycle_id TEXT, kind TEXT NOT NULL DEFAULT 'text', sender_id INTEGER, sender_name TEXT, thread_id INTEGER, channel_message_id INTEGER, quoted TEXT, forwarded_from TEXT, raw TEXT, bot_id INTEGER, update_id INTEGER, attempts INTEGER NOT NULL DEFAULT 0, held_for TEXT, not_before TEXT , album TEXT, sent_at TEXT, quotes_own INTEGER NOT NULL DEFAULT 0);
CREATE UNIQUE INDEX incoming_by_update ON incoming_messages (bot_id, update_id) WHERE update_id IS NOT NULL;
CREATE INDEX incoming_queued ON incoming_messages (chat_id, id) WHERE processed = 0;
CREATE INDEX incoming_by_chat ON incoming_messages (chat_id, id);
CREATE TABLE outgoing_messages (id INTEGER PRIMARY KEY AUTOINCREMENT, chat_id INTEGER NOT NULL, message_text TEXT NOT NULL, sent_at TEXT, created_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now')), kind TEXT NOT NULL DEFAULT 'reply', key TEXT UNIQUE, thread_id INTEGER, reply_to INTEGER, cycle_id TEXT , taken_back_at TEXT, taint TEXT);
CREATE INDEX outgoing_unsent ON outgoing_messages (chat_id, id) WHERE sent_at IS NULL;
CREATE INDEX outgoing_by_chat ON outgoing_messages (chat_id, id);
CREATE TABLE outgoing_parts (outgoing_id INTEGER NOT NULL REFERENCES outgoing_messages (id), part INTEGER NOT NULL, html TEXT NOT NULL, plain TEXT NOT NULL, state TEXT NOT NULL DEFAULT 'planned' CHECK (state IN ('planned', 'attempting', 'sent', 'unknown', 'failed')), attempts INTEGER NOT NULL DEFAULT 0, repeats INTEGER NOT NULL DEFAULT 0, not_before TEXT, sender TEXT, channel_message_id INTEGER, error TEXT, changed_at TEXT, PRIMARY KEY (outgoing_id, part));
CREATE INDEX parts_open ON outgoing_parts (outgoing_id, part) WHERE state IN ('planned', 'attempting', 'unknown');
CREATE TABLE processing_lock (id INTEGER PRIMARY KEY CHECK (id = 1), is_locked INTEGER NOT NULL DEFAULT 0, locked_at TEXT, fence INTEGER NOT NULL DEFAULT 0, holder TEXT);
CREATE TABLE poll_state (bot_id INTEGER PRIMARY KEY, next_offset INTEGER NOT NULL, last_poll_at TEXT);
CREATE TABLE counters (name TEXT PRIMARY KEY, n INTEGER NOT NULL DEFAULT 0, last_at TEXT);
CREATE TABLE cycles (id TEXT PRIMARY KEY, state TEXT NOT NULL CHECK (state IN ('running', 'waiting', 'parked', 'done', 'failed', 'abandoned')), trigger TEXT NOT NULL, reasons TEXT NOT NULL, chat_id INTEGER, thread_id INTEGER, model TEXT NOT NULL, system TEXT NOT NULL DEFAULT '[]', tools TEXT NOT NULL DEFAULT '[]', started_at TEXT NOT NULL, ended_at TEXT, not_before TEXT, tries INTEGER NOT NULL DEFAULT 0, fence INTEGER NOT NULL, commit_id TEXT, error TEXT , has_journal INTEGER NOT NULL DEFAULT 1, was_cut_off INTEGER NOT NULL DEFAULT 0);
CREATE INDEX cycles_open ON cycles (state) WHERE state IN ('running', 'waiting', 'parked');
CREATE TABLE cycle_journal (cycle_id TEXT NOT NULL REFERENCES cycles (id), seq INTEGER NOT NULL, at TEXT NOT NULL, kind TEXT NOT NULL, body TEXT NOT NULL, PRIMARY KEY (cycle_id, seq)) WITHOUT ROWID;
CREATE TABLE cycle_files (cycle_id TEXT NOT NULL REFERENCES cycles (id), path TEXT NOT NULL, base TEXT, content TEXT NOT NULL, PRIMARY KEY (cycle_id, path));
CREATE TABLE reminders (id INTEGER PRIMARY KEY AUTOINCREMENT, chat_id INTEGER NOT NULL, thread_id INTEGER, text TEXT NOT NULL, rule TEXT, zone TEXT NOT NULL, slot TEXT NOT NULL, next_at TEXT NOT NULL, state TEXT NOT NULL DEFAULT 'active' CHECK (state IN ('active', 'done', 'cancelled')), created_at TEXT NOT NULL, cycle_id TEXT , missed TEXT NOT NULL DEFAULT 'run' CHECK (missed IN ('run', 'skip', 'tell')), written_at TEXT, ended_by TEXT);
CREATE INDEX reminders_active ON reminders (next_at) WHERE state = 'active';
CREATE TABLE reminder_firings (reminder_id INTEGER NOT NULL REFERENCES reminders (id), slot TEXT NOT NULL, fired_at TEXT NOT NULL, outgoing_id INTEGER, outcome TEXT NOT NULL DEFAULT 'run' CHECK (outcome IN ('run', 'skip', 'tell')), first_slot TEXT, PRIMARY KEY (reminder_id, slot)) WITHOUT ROWID;
CREATE TABLE ledger (id INTEGER PRIMARY KEY AUTOINCREMENT, cycle_id TEXT NOT NULL, at TEXT NOT NULL, model TEXT NOT NULL, input INTEGER NOT NULL, output INTEGER NOT NULL, cache_read INTEGER NOT NULL, cache_write INTEGER NOT NULL, cost_usd REAL NOT NULL, discarded INTEGER NOT NULL DEFAULT 0 , reserved INTEGER NOT NULL DEFAULT 0);
CREATE INDEX ledger_by_time ON ledger (at);
CREATE TABLE upkeep (name TEXT PRIMARY KEY, failures INTEGER NOT NULL DEFAULT 0, last_ok_at TEXT, not_before TEXT, error TEXT);
CREATE TABLE handled (key TEXT PRIMARY KEY, value TEXT NOT NULL DEFAULT '', at TEXT NOT NULL);
CREATE TABLE repairs (id INTEGER PRIMARY KEY AUTOINCREMENT, at TEXT NOT NULL, check_id TEXT NOT NULL, what TEXT NOT NULL, cycle_id TEXT);
CREATE INDEX cycles_to_forget ON cycles (ended_at) WHERE has_journal = 1;
CREATE INDEX incoming_to_forget ON incoming_messages (processed_at) WHERE processed = 1 AND raw IS NOT NULL;
CREATE INDEX parts_to_forget ON outgoing_parts (changed_at) WHERE state = 'sent' AND html != '';
CREATE TABLE taken_up (cycle_id TEXT NOT NULL, message_id INTEGER NOT NULL, PRIMARY KEY (cycle_id, message_id)) WITHOUT ROWID;
CREATE INDEX taken_up_by_message ON taken_up (message_id);
CREATE TABLE attachments (id INTEGER PRIMARY KEY, message_id INTEGER NOT NULL REFERENCES incoming_messages (id), kind TEXT NOT NULL, file_id TEXT NOT NULL, unique_id TEXT, name TEXT, mime TEXT, bytes INTEGER, seconds INTEGER, width INTEGER, height INTEGER, state TEXT NOT NULL DEFAULT 'wanted' CHECK (state IN ('wanted', 'kept', 'ready', 'failed')), path TEXT, attempts INTEGER NOT NULL DEFAULT 0, not_before TEXT, error TEXT, transcript TEXT, changed_at TEXT , faults INTEGER NOT NULL DEFAULT 0, channel_message_id INTEGER, replaced_at TEXT, listener INTEGER);
CREATE INDEX attachments_by_message ON attachments (message_id);
CREATE INDEX attachments_open ON attachments (state, id) WHERE state IN ('wanted', 'kept');
CREATE TABLE status_lines (cycle_id TEXT PRIMARY KEY, chat_id INTEGER NOT NULL, channel_message_id INTEGER) WITHOUT ROWID;
CREATE TABLE paired (user_id INTEGER PRIMARY KEY, name TEXT NOT NULL DEFAULT '', paired_at TEXT NOT NULL, bot_id INTEGER);
CREATE TABLE pairing_codes (id INTEGER PRIMARY KEY AUTOINCREMENT, hash TEXT NOT NULL, made_by TEXT NOT NULL, made_at TEXT NOT NULL, expires_at TEXT NOT NULL, wrong INTEGER NOT NULL DEFAULT 0, used_by INTEGER);
CREATE INDEX cycles_by_chat ON cycles (chat_id) WHERE chat_id IS NOT NULL;
CREATE INDEX incoming_answerable ON incoming_messages (chat_id, id) WHERE processed = 0 AND held_for IS NULL;
CREATE INDEX incoming_kept ON incoming_messages (chat_id, id) WHERE processed = 0 AND held_for IS NOT NULL;
CREATE TABLE message_updates (id INTEGER PRIMARY KEY, message_id INTEGER NOT NULL REFERENCES incoming_messages (id), chat_id INTEGER NOT NULL, channel_message_id INTEGER, words TEXT NOT NULL, bot_id INTEGER, update_id INTEGER);
CREATE INDEX updates_by_row ON message_updates (message_id, channel_message_id, id);
CREATE INDEX updates_by_channel_message ON message_updates (chat_id, channel_message_id, id);
CREATE UNIQUE INDEX updates_by_update ON message_updates (bot_id, update_id) WHERE update_id IS NOT NULL;
CREATE INDEX incoming_put_off ON incoming_messages (chat_id, not_before) WHERE processed = 0 AND not_before IS NOT NULL;
CREATE INDEX incoming_by_album ON incoming_messages (chat_id, album, id) WHERE album IS NOT NULL;
CREATE INDEX incoming_by_channel_message ON incoming_messages (chat_id, channel_message_id, id) WHERE channel_message_id IS NOT NULL;
CREATE TABLE stopped (id INTEGER PRIMARY KEY CHECK (id = 1), at TEXT NOT NULL, chat_id INTEGER NOT NULL);
CREATE TABLE undos (id INTEGER PRIMARY KEY AUTOINCREMENT, wake TEXT NOT NULL UNIQUE, asked_at TEXT NOT NULL, chat_id INTEGER NOT NULL, thread_id INTEGER, reply_to INTEGER, cycle_id TEXT, taken_back TEXT, answer TEXT, done_at TEXT);
CREATE INDEX undos_open ON undos (id) WHERE done_at IS NULL;
CREATE INDEX cycles_by_end ON cycles (ended_at) WHERE state = 'done';
CREATE TABLE approvals (id INTEGER PRIMARY KEY AUTOINCREMENT, cycle_id TEXT NOT NULL REFERENCES cycles (id), call TEXT NOT NULL, tool TEXT NOT NULL, action TEXT NOT NULL, risk TEXT NOT NULL, reasons TEXT NOT NULL, origin TEXT, chat_id INTEGER NOT NULL, approver INTEGER, nonce TEXT NOT NULL UNIQUE, outgoing_id INTEGER, asked_at TEXT NOT NULL, expires_at TEXT NOT NULL, state TEXT NOT NULL DEFAULT 'pending' CHECK (state IN ('pending', 'approved', 'denied', 'expired', 'withdrawn')), decided_at TEXT, decided_by TEXT, used_at TEXT, shown TEXT NOT NULL DEFAULT 'pending', UNIQUE (cycle_id, call));
CREATE INDEX approvals_pending ON approvals (cycle_id) WHERE state = 'pending';
CREATE INDEX approvals_unshown ON approvals (id) WHERE shown != state;
CREATE INDEX attachments_awaited ON attachments (message_id) WHERE state = 'wanted' OR state = 'kept' AND kind IN ('voice', 'video_note', 'audio');
CREATE INDEX ledger_reserved ON ledger (at) WHERE reserved = 1;
CREATE TABLE unpaired (user_id INTEGER PRIMARY KEY, at TEXT NOT NULL);
CREATE TABLE overheard (id INTEGER PRIMARY KEY, bot_id INTEGER NOT NULL, update_id INTEGER NOT NULL, chat_id INTEGER NOT NULL, heard_at TEXT NOT NULL, message TEXT NOT NULL, UNIQUE (bot_id, update_id));
CREATE TABLE moved_chats (from_id INTEGER PRIMARY KEY, to_id INTEGER NOT NULL, at TEXT NOT NULL, is_listed INTEGER NOT NULL);
INSERT INTO incoming_messages VALUES
(1, 7, 'message_text ü', '2026-11-21T08:00:00.000Z', 1, 'outcome ü', '2026-11-21T08:00:00.006Z', 'c-done', 'kind ü', 11, 'sender_name ü', 13, 14, 'quoted ü', 'forwarded_from ü', 'raw ü', 18, 19, 20, 'held_for ü', '2026-11-21T08:00:00.020Z', 'album ü', '2026-11-21T08:00:00.022Z', 25),
(2, 7, 'remind me', '2026-11-21T08:00:00.000Z', 0, NULL, NULL, 'c-last', 'text', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, NULL, NULL, NULL, NULL, 0);
INSERT INTO outgoing_messages VALUES
(1, 7, 'message_text ü', '2026-11-21T08:00:00.003Z', '2026-11-21T08:00:00.000Z', 'kind ü', 'key ü', 9, 10, 'c-done', '2026-11-21T08:00:00.010Z', NULL),
(2, 7, 'of a guest''s cycle', NULL, '2026-11-21T08:00:00.000Z', 'tell', NULL, NULL, NULL, 'c-guest', NULL, NULL),
(3, 7, 'of a command', NULL, '2026-11-21T08:00:00.000Z', 'command', NULL, NULL, NULL, NULL, NULL, NULL),
(4, 7, 'of a person', NULL, '2026-11-21T08:00:00.000Z', 'notice', NULL, NULL, NULL, NULL, NULL, NULL);
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
(1, 7, 4, 'text ü', 'rule ü', 'zone ü', 'slot ü', '2026-11-21T08:00:00.007Z', 'active', '2026-11-21T08:00:00.009Z', 'c-done', 'skip', '2026-11-21T08:00:00.012Z', 'ended_by ü');
INSERT INTO reminder_firings VALUES
(1, 'slot ü', '2026-11-21T08:00:00.002Z', 1, 'tell', 'first_slot ü');
INSERT INTO ledger VALUES
(1, 'c-done', '2026-11-21T08:00:00.002Z', 'model ü', 6, 7, 8, 9, 8.25, 11, 12);
INSERT INTO upkeep VALUES
('name ü', 3, '2026-11-21T08:00:00.002Z', '2026-11-21T08:00:00.003Z', 'error ü');
INSERT INTO handled VALUES
('key ü', 'value ü', '2026-11-21T08:00:00.002Z');
INSERT INTO repairs VALUES
(1, '2026-11-21T08:00:00.001Z', 'check_id ü', 'what ü', 'c-done');
INSERT INTO taken_up VALUES
('c-done', 1);
INSERT INTO attachments VALUES
(1, 1, 'kind ü', 'file_id ü', 'unique_id ü', 'name ü', 'mime ü', 9, 10, 11, 12, 'ready', 'path ü', 15, '2026-11-21T08:00:00.014Z', 'error ü', 'transcript ü', '2026-11-21T08:00:00.017Z', 20, 21, '2026-11-21T08:00:00.020Z', 23);
INSERT INTO status_lines VALUES
('c-done', 7, 4);
INSERT INTO paired VALUES
(2, 'name ü', '2026-11-21T08:00:00.002Z', 5);
INSERT INTO pairing_codes VALUES
(1, 'hash ü', 'made_by ü', '2026-11-21T08:00:00.003Z', '2026-11-21T08:00:00.004Z', 7, 8);
INSERT INTO message_updates VALUES
(1, 1, 7, 5, 'words ü', 7, 8);
INSERT INTO stopped VALUES
(1, '2026-11-21T08:00:00.001Z', 7);
INSERT INTO undos VALUES
(1, 'wake ü', '2026-11-21T08:00:00.002Z', 7, 6, 7, 'c-done', 'taken_back ü', 'answer ü', '2026-11-21T08:00:00.009Z');
INSERT INTO approvals VALUES
(1, 'c-done', 'call ü', 'tool ü', 'action ü', 'risk ü', 'reasons ü', 'origin ü', 7, 11, 'nonce ü', 1, '2026-11-21T08:00:00.012Z', '2026-11-21T08:00:00.013Z', 'denied', '2026-11-21T08:00:00.015Z', 'decided_by ü', '2026-11-21T08:00:00.017Z', 'shown ü');
INSERT INTO unpaired VALUES
(2, '2026-11-21T08:00:00.001Z');
INSERT INTO overheard VALUES
(1, 3, 4, 7, '2026-11-21T08:00:00.004Z', 'message ü');
INSERT INTO moved_chats VALUES
(2, 3, '2026-11-21T08:00:00.002Z', 5);
DELETE FROM sqlite_sequence;
INSERT INTO sqlite_sequence VALUES ('approvals', 1), ('incoming_messages', 9), ('ledger', 1), ('outgoing_messages', 4), ('pairing_codes', 1), ('reminders', 1), ('repairs', 1), ('undos', 1);
PRAGMA user_version = 20;
