-- A row that stands for a request whose end isn't known: it is under way, or its wake was cut off. Until it is replaced by what the
-- request cost, its cost is the most that it may be.
ALTER TABLE ledger ADD COLUMN reserved INTEGER NOT NULL DEFAULT 0;
CREATE INDEX ledger_reserved ON ledger (at) WHERE reserved = 1;
