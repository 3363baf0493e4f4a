-- Which chat was taken up how long ago, for taking turns: the last row of each chat.
CREATE INDEX cycles_by_chat ON cycles (chat_id) WHERE chat_id IS NOT NULL;
