-- What a cycle for one chat wrote to another holds words that there are nobody's own: since this is noted with each message, older ones are
-- marked, too. 0 is the console, where its owner sits.
UPDATE outgoing_messages SET taint = (
        SELECT 'what chat ' || c.chat_id || ' said' FROM cycles c WHERE c.id = outgoing_messages.cycle_id)
    WHERE taint IS NULL AND EXISTS (
        SELECT 1 FROM cycles c
        WHERE c.id = outgoing_messages.cycle_id AND c.chat_id NOT IN (outgoing_messages.chat_id, 0));
