-- What a person is asked before it is done. An action stands here byte for byte, and is carried out at most once under its row.
CREATE TABLE approvals (
    id           INTEGER PRIMARY KEY AUTOINCREMENT,
    cycle_id     TEXT    NOT NULL REFERENCES cycles (id),
    call         TEXT    NOT NULL,          -- the call's id in the cycle's journal
    tool         TEXT    NOT NULL,
    action       TEXT    NOT NULL,          -- its arguments as the mind wrote them, byte for byte
    risk         TEXT    NOT NULL,
    reasons      TEXT    NOT NULL,          -- JSON array: why it is asked
    origin       TEXT,                      -- whose bytes the cycle had read by then, if not only its person's
    chat_id      INTEGER NOT NULL,          -- where it is asked; 0: the console
    approver     INTEGER,                   -- whose word counts in that chat; NULL: of whoever may speak there
    nonce        TEXT    NOT NULL UNIQUE,   -- what the buttons carry
    outgoing_id  INTEGER,                   -- the message that asks
    asked_at     TEXT    NOT NULL,
    expires_at   TEXT    NOT NULL,
    state        TEXT    NOT NULL DEFAULT 'pending'
                 CHECK (state IN ('pending', 'approved', 'denied', 'expired', 'withdrawn')),
    decided_at   TEXT,
    decided_by   TEXT,                      -- a person's numeric id, or `console`
    used_at      TEXT,                      -- when the call was begun under it
    shown        TEXT    NOT NULL DEFAULT 'pending',   -- the state that the message in the chat shows
    UNIQUE (cycle_id, call)
);
CREATE INDEX approvals_pending ON approvals (cycle_id) WHERE state = 'pending';
CREATE INDEX approvals_unshown ON approvals (id) WHERE shown != state;
