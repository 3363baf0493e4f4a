-- A rule that a person makes of a question: that exactly this call may always be done.
ALTER TABLE approvals ADD COLUMN rule TEXT CHECK (rule IN ('offered', 'shown', 'declined', 'ordered', 'added'));
ALTER TABLE approvals ADD COLUMN rule_outgoing_id INTEGER;
ALTER TABLE approvals ADD COLUMN rule_at TEXT;
ALTER TABLE approvals ADD COLUMN rule_is_shown INTEGER NOT NULL DEFAULT 0;
CREATE INDEX approvals_rules ON approvals (id) WHERE rule_outgoing_id IS NOT NULL AND rule_is_shown = 0;

-- Rules of ours that a person takes back: a row goes when it is done.
CREATE TABLE rule_removals (
    id        INTEGER PRIMARY KEY AUTOINCREMENT,
    rule      TEXT NOT NULL,                     -- as it stands in policy.toml
    chat_id   INTEGER NOT NULL,                  -- who is told
    thread_id INTEGER,
    reply_to  INTEGER
);
