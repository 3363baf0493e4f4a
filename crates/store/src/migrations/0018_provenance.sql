-- Whose bytes a text of ours may hold besides its person's own, in words; NULL: none. It is not shown in a later cycle's opening then.
ALTER TABLE outgoing_messages ADD COLUMN taint TEXT;
-- Of what cycles and commands wrote before this was noted nobody knows.
UPDATE outgoing_messages SET taint = 'what was read before this was noted' WHERE cycle_id IS NOT NULL OR kind = 'command';
-- A cycle that is to be gone on with was shown such things at its beginning.
UPDATE cycle_journal SET body = json_set(body, '$.taint', 'what was shown before this was noted')
    WHERE seq = 1 AND kind = 'said' AND cycle_id IN (SELECT id FROM cycles WHERE state IN ('running', 'waiting', 'parked'))
      AND iif(json_valid(body), json_extract(body, '$.taint') IS NULL, 0);
