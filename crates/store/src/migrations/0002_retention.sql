-- What is only looked back at goes after a while (retention.rs). These indices hold what has not gone yet: a look that finds
-- nothing old costs a step or two, however much there is.

-- 0: its journal and its conversation's fixed part were old, and are gone. The row stays, with its commit.
ALTER TABLE cycles ADD COLUMN has_journal INTEGER NOT NULL DEFAULT 1;
CREATE INDEX cycles_to_forget ON cycles (ended_at) WHERE has_journal = 1;
CREATE INDEX incoming_to_forget ON incoming_messages (processed_at) WHERE processed = 1 AND raw IS NOT NULL;
CREATE INDEX parts_to_forget ON outgoing_parts (changed_at) WHERE state = 'sent' AND html != '';

-- What is queued, and what a person may put back into the queue.
CREATE INDEX incoming_unfinished ON incoming_messages (cycle_id) WHERE processed = 0 OR outcome IN ('dead', 'dropped');
