-- Failures to fetch a file that are the file's own, as far as can be told. Only they are counted against it: while there is no
-- network, none of its tries is.
ALTER TABLE attachments ADD COLUMN faults INTEGER NOT NULL DEFAULT 0;
