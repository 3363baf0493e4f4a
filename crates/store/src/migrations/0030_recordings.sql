-- What a finished cycle was asked and what it did for it, masked: a copy that outlives its journal. Similar requests are shown it.
CREATE TABLE recordings (
    id        INTEGER PRIMARY KEY AUTOINCREMENT,
    cycle_id  TEXT NOT NULL UNIQUE,
    chat_id   INTEGER,                           -- whose it is; NULL: no chat asked, so it is the owner's
    at        TEXT NOT NULL,
    request   TEXT NOT NULL,                     -- the person's words, or why the cycle was due
    words     TEXT NOT NULL,                     -- the request's content words, each once, sorted: the same ones are the same request
    calls     TEXT NOT NULL,                     -- JSON array: tool, input, did
    narrative TEXT NOT NULL,
    taint     TEXT,                              -- whose words the cycle had read; NULL: nobody else's
    rounds    INTEGER NOT NULL,                  -- turns of the model that it took
    model     TEXT,                              -- the sentence encoder that made the vector
    vector    BLOB                               -- what the request means: 32-bit floats, little-endian; NULL: not known yet
);
CREATE INDEX recordings_by_chat ON recordings (chat_id, id);
