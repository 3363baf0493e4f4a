-- Which door a message came in by, or was meant for: NULL (put in by hand), terminal, telegram, page. All terminals are chat 0; its
-- session tells one that waits for its answers from the others.
ALTER TABLE incoming_messages ADD COLUMN channel TEXT;
ALTER TABLE incoming_messages ADD COLUMN session TEXT;
ALTER TABLE outgoing_messages ADD COLUMN channel TEXT;
ALTER TABLE outgoing_messages ADD COLUMN session TEXT;
-- When a desktop notification told of it, which isn't showing it.
ALTER TABLE outgoing_messages ADD COLUMN notified_at TEXT;

-- Terminals that wait for their answers now. One that ends in order takes its row away; the next one takes those of the dead.
CREATE TABLE sessions (
    id         TEXT PRIMARY KEY,
    channel    TEXT NOT NULL,
    holder     TEXT NOT NULL,       -- JSON identity of the process
    opened_at  TEXT NOT NULL
);
