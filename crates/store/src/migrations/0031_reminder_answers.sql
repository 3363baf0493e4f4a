-- What a person did about a reminder that had come, by the buttons under its message: once a message.
CREATE TABLE reminder_answers (
    outgoing_id INTEGER PRIMARY KEY REFERENCES outgoing_messages (id),
    message_id  INTEGER NOT NULL,                -- the channel's id of the message that carries the buttons
    answer      TEXT NOT NULL CHECK (answer IN ('done', 'hour', 'morning')),
    at          TEXT NOT NULL,
    again_at    TEXT,                            -- when it comes again; NULL: it doesn't
    is_shown    INTEGER NOT NULL DEFAULT 0       -- whether the message shows the answer instead of its buttons
);
