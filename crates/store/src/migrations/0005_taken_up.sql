-- Which cycles took a message up, not only the last (`incoming_messages.cycle_id`): what the given-up ones among them had done
-- must not be done again. Goes with the cycle's journal.
CREATE TABLE taken_up (
    cycle_id    TEXT    NOT NULL,
    message_id  INTEGER NOT NULL,
    PRIMARY KEY (cycle_id, message_id)
) WITHOUT ROWID;
CREATE INDEX taken_up_by_message ON taken_up (message_id);

-- What was taken up before this table came: as the journals tell, and the last of each where a journal can't be read.
INSERT OR IGNORE INTO taken_up (cycle_id, message_id)
    SELECT m.cycle_id, m.id FROM incoming_messages m
    WHERE m.cycle_id IS NOT NULL AND (m.processed = 0 OR m.outcome IN ('dead', 'dropped'));
INSERT OR IGNORE INTO taken_up (cycle_id, message_id)
    SELECT j.cycle_id, m.id
    FROM cycle_journal j
    JOIN cycles c ON c.id = j.cycle_id AND c.state = 'abandoned'
    JOIN json_each(CASE WHEN json_valid(j.body) THEN j.body ELSE '{}' END, '$.messages') taken
    JOIN incoming_messages m ON m.id = taken.value
    WHERE j.kind = 'said' AND (m.processed = 0 OR m.outcome IN ('dead', 'dropped'));

-- Retention finds a cycle's messages by `taken_up` now.
DROP INDEX incoming_unfinished;
