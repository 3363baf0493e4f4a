-- Files that came with a message. What stands here is kept: fetched from the channel as soon as that is possible, and, if it is
-- speech, written down. A message isn't given to a mind while one of its files is on its way.
CREATE TABLE attachments (
    id          INTEGER PRIMARY KEY,
    message_id  INTEGER NOT NULL REFERENCES incoming_messages (id),
    kind        TEXT    NOT NULL,           -- as the Bot API names the field: voice, video_note, audio, photo, document, …
    file_id     TEXT    NOT NULL,           -- the channel's handle for fetching it, valid for this bot alone
    unique_id   TEXT,                       -- the same for the same file, whoever sends it
    name        TEXT,                       -- as its sender named it: never a path
    mime        TEXT,                       -- as its sender says
    bytes       INTEGER,                    -- as the channel says
    seconds     INTEGER,                    -- of sound or film
    width       INTEGER,                    -- of a picture, in pixels
    height      INTEGER,
    state       TEXT    NOT NULL DEFAULT 'wanted'
                CHECK (state IN ('wanted', 'kept', 'ready', 'failed')),
    path        TEXT,                       -- below the workspace, once it is kept
    attempts    INTEGER NOT NULL DEFAULT 0, -- failures of the present step
    not_before  TEXT,
    error       TEXT,                       -- why it is late, or was given up
    transcript  TEXT,                       -- JSON: the words, their language, how sure they are
    changed_at  TEXT
);
CREATE INDEX attachments_by_message ON attachments (message_id);
CREATE INDEX attachments_open ON attachments (state, id) WHERE state IN ('wanted', 'kept');
