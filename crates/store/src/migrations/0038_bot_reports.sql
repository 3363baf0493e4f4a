-- The bot that came up last and how far it came, as JSON: an upgrade waits for it.
ALTER TABLE poll_state ADD COLUMN reported TEXT;
