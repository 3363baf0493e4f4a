-- Changes of its own orders that the assistant has proposed, and what became of those that were agreed to.
CREATE TABLE proposals (
    id            INTEGER PRIMARY KEY AUTOINCREMENT,
    cycle_id      TEXT NOT NULL,
    call          TEXT NOT NULL,                 -- the call that proposes it
    title         TEXT NOT NULL,
    files         TEXT NOT NULL,                 -- JSON array: path, text before (null: none), text after
    figure        TEXT NOT NULL,                 -- rounds, cost, questions, tasks_done
    aim           TEXT NOT NULL,                 -- less, more
    job           TEXT,                          -- the one job that it changes: its runs are measured; NULL: answers are
    before_total  REAL NOT NULL,                 -- the figure in the week before it was asked
    before_pieces INTEGER NOT NULL,
    branch        TEXT,                          -- where its tree is; NULL: the branch is gone
    commit_id     TEXT NOT NULL,
    asked_at      TEXT NOT NULL,
    agreed_at     TEXT,                          -- when it was carried out
    tell_at       TEXT,                          -- when before and after are told; NULL: not agreed to, or told
    UNIQUE (cycle_id, call)
);
CREATE INDEX proposals_to_tell ON proposals (tell_at) WHERE tell_at IS NOT NULL;
CREATE INDEX proposals_with_branch ON proposals (id) WHERE branch IS NOT NULL;

-- The proposal that a message reports on: its button takes that back.
ALTER TABLE nudges ADD COLUMN proposal INTEGER;
