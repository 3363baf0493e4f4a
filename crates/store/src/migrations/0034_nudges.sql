-- What of our own accord was said with buttons under it, and what its person did about it: once a message.
CREATE TABLE nudges (
    outgoing_id INTEGER PRIMARY KEY REFERENCES outgoing_messages (id),
    task        TEXT,                            -- the title of the one task that it is about
    zone        TEXT NOT NULL,                   -- IANA zone of its person
    may_stop    INTEGER NOT NULL DEFAULT 0,      -- whether it has a button against more of its kind
    message_id  INTEGER,                         -- the channel's id of the message that carries the buttons
    answer      TEXT,                            -- done, morning, quiet; NULL: none yet
    answered_at TEXT,
    again_at    TEXT,                            -- when it comes again as a reminder; NULL: it doesn't
    is_shown    INTEGER NOT NULL DEFAULT 0,      -- whether the message shows the answer instead of its buttons
    is_open     INTEGER NOT NULL DEFAULT 0       -- whether a wake has still to do what the answer says
);
CREATE INDEX nudges_open ON nudges (outgoing_id) WHERE is_open = 1;
CREATE INDEX nudges_unshown ON nudges (outgoing_id) WHERE answer IS NOT NULL AND is_shown = 0;

-- A desktop is told of a reminder while it is new.
CREATE INDEX outgoing_reminders ON outgoing_messages (created_at) WHERE kind = 'reminder';
