-- What listed people said to others in a group that may turn out to be a part of what is said to the assistant: the beginning of a
-- long text, files of an album. It becomes a message when a part that is said to it follows, and else goes after moments.
CREATE TABLE overheard (
    id         INTEGER PRIMARY KEY,
    bot_id     INTEGER NOT NULL,
    update_id  INTEGER NOT NULL,
    chat_id    INTEGER NOT NULL,
    heard_at   TEXT    NOT NULL,
    message    TEXT    NOT NULL,          -- JSON
    UNIQUE (bot_id, update_id)
);
