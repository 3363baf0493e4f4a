-- A person wants it tried again, however old it is.
ALTER TABLE incoming_messages ADD COLUMN asked_again INTEGER NOT NULL DEFAULT 0;
