-- Whether copies were kept of what a cycle had changed in a person's folders when it ended: then it can be undone, even if it came to
-- nothing else.
ALTER TABLE cycles ADD COLUMN has_copies INTEGER NOT NULL DEFAULT 0;
