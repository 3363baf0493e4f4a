-- Which chat was taken up how long ago, for taking turns: the last row of each chat.
CREATE INDEX cycles_by_chat ON cycles (chat_id) WHERE chat_id IS NOT NULL;
-- The queue of each chat, without what is kept for another mind, and that alone.
CREATE INDEX incoming_answerable ON incoming_messages (chat_id, id) WHERE processed = 0 AND held_for IS NULL;
CREATE INDEX incoming_kept ON incoming_messages (chat_id, id) WHERE processed = 0 AND held_for IS NOT NULL;
