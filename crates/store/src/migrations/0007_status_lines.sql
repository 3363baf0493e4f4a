-- The one line in a chat that says how far a long cycle is, until it goes with the answer. Written before it is sent: whoever finds
-- it here after a crash takes it away.
CREATE TABLE status_lines (
    cycle_id            TEXT    PRIMARY KEY,
    chat_id             INTEGER NOT NULL,
    channel_message_id  INTEGER             -- NULL: it is being sent, or nobody knows whether it was
) WITHOUT ROWID;
