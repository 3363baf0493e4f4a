-- Several of a channel's messages may be one row: the parts of an album, a text that its sender's client cut. And a row may have
-- come to say something else than its first message did: by an edit, or because it is itself the correction of an earlier
-- one. Each line here is one such update, so that none is taken in twice; the last of a message's lines is what it says now.
CREATE TABLE message_updates (
    id                  INTEGER PRIMARY KEY,
    message_id          INTEGER NOT NULL REFERENCES incoming_messages (id),
    chat_id             INTEGER NOT NULL,
    channel_message_id  INTEGER,
    words               TEXT    NOT NULL,   -- as the channel delivered them
    bot_id              INTEGER,
    update_id           INTEGER
);
CREATE INDEX updates_by_row ON message_updates (message_id, channel_message_id, id);
CREATE INDEX updates_by_channel_message ON message_updates (chat_id, channel_message_id, id);
CREATE UNIQUE INDEX updates_by_update ON message_updates (bot_id, update_id) WHERE update_id IS NOT NULL;

ALTER TABLE incoming_messages ADD COLUMN album TEXT;       -- the channel's name for what belongs together
ALTER TABLE incoming_messages ADD COLUMN sent_at TEXT;     -- as the channel says, of the last of its parts
-- What of a chat is held for a moment: looked at with every message that comes.
CREATE INDEX incoming_put_off ON incoming_messages (chat_id, not_before) WHERE processed = 0 AND not_before IS NOT NULL;
CREATE INDEX incoming_by_album ON incoming_messages (chat_id, album, id) WHERE album IS NOT NULL;
CREATE INDEX incoming_by_channel_message ON incoming_messages (chat_id, channel_message_id, id)
    WHERE channel_message_id IS NOT NULL;
