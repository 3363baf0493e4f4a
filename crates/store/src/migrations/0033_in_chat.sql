-- Where a chat, or a topic of it, was begun afresh by `/new`: what was said there before isn't in its openings.
CREATE TABLE fresh_starts (
    chat_id     INTEGER NOT NULL,
    thread_id   INTEGER NOT NULL,                -- forum topic; 0: none
    incoming_id INTEGER NOT NULL,                -- the last message from before; 0: none
    outgoing_id INTEGER NOT NULL,                -- the last one of ours
    at          TEXT NOT NULL,
    PRIMARY KEY (chat_id, thread_id)
) WITHOUT ROWID;

-- Settings that the owner has chosen in a chat. Each holds for as long as the settings say what they said then.
CREATE TABLE chosen_settings (
    name       TEXT PRIMARY KEY,                 -- MODEL
    value      TEXT NOT NULL,
    instead_of TEXT NOT NULL,                    -- what the settings said
    chosen_at  TEXT NOT NULL
) WITHOUT ROWID;

-- Restarts of the bot that were ordered: who ordered one is told once what came of it.
CREATE TABLE restarts (
    id        INTEGER PRIMARY KEY AUTOINCREMENT,
    asked_at  TEXT NOT NULL,
    chat_id   INTEGER NOT NULL,
    thread_id INTEGER,
    told_at   TEXT                               -- NULL: it isn't over
);
