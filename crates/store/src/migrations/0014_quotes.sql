-- Whether what a message quotes is its own sender's, or ours: all else was written by others.
ALTER TABLE incoming_messages ADD COLUMN quotes_own INTEGER NOT NULL DEFAULT 0;
