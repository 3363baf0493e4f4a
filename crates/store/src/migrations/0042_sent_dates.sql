-- When the part was sent, by the channel's own clock: an answer that is dated before its question is none.
ALTER TABLE outgoing_parts ADD COLUMN channel_date TEXT;
