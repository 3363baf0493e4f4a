-- Whose bytes a text of ours may hold besides its person's own, in words; NULL: none. It is not shown in a later cycle's opening then.
ALTER TABLE outgoing_messages ADD COLUMN taint TEXT;
-- Of what cycles and commands wrote before this was noted nobody knows.
UPDATE outgoing_messages SET taint = 'what was read before this was noted' WHERE cycle_id IS NOT NULL OR kind = 'command';
