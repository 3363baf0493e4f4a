-- Standing jobs: when each runs next, and what was seen at the last look. What they do stands in their files.
CREATE TABLE jobs (
    name       TEXT PRIMARY KEY,                 -- its file's, beneath memory/jobs
    read_from  TEXT NOT NULL,                    -- what of its file the plan was made from
    gate       TEXT NOT NULL DEFAULT '',         -- what it looks at, as its file says; another one begins anew
    rule       TEXT,                             -- JSON recurrence; NULL: once
    zone       TEXT NOT NULL,                    -- IANA zone of its civil times
    slot       TEXT,                             -- the next civil slot
    next_at    TEXT,                             -- its instant; NULL: nothing comes, or it rests
    is_asked   INTEGER NOT NULL DEFAULT 0,       -- a person wants a run now
    created_at TEXT NOT NULL,
    written_at TEXT NOT NULL,                    -- when the next slot was written
    seen       TEXT,                             -- JSON: what the last look saw, bounded
    failures   INTEGER NOT NULL DEFAULT 0,       -- in a row
    error      TEXT
) WITHOUT ROWID;
CREATE INDEX jobs_due ON jobs (next_at) WHERE next_at IS NOT NULL;

CREATE TABLE job_runs (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    name       TEXT NOT NULL,
    slot       TEXT,                             -- the civil slot; NULL: a person asked for it
    started_at TEXT NOT NULL,
    ended_at   TEXT,
    state      TEXT NOT NULL CHECK (state IN ('open', 'missed', 'nothing', 'told', 'worked', 'failed')),
    cycle_id   TEXT,                             -- the cycle that does it
    found      TEXT,                             -- what its gate saw: others' words
    output     TEXT,                             -- what it came to
    held       TEXT                              -- a message that waits for the end of the quiet hours, as JSON
);
CREATE INDEX job_runs_by_name ON job_runs (name, id);
CREATE UNIQUE INDEX job_runs_once ON job_runs (name, slot) WHERE slot IS NOT NULL AND state != 'missed';
CREATE INDEX job_runs_open ON job_runs (id) WHERE state = 'open' OR held IS NOT NULL;
