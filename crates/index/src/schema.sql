-- The index of what is remembered and of what was said. It is derived: whoever deletes the file loses time alone.

CREATE TABLE state (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;

-- Files of the memory, by their paths in the repository; and chats, as `chat/<number>`.
CREATE TABLE documents (
    id       INTEGER PRIMARY KEY,
    path     TEXT NOT NULL UNIQUE,
    hash     INTEGER NOT NULL DEFAULT 0,         -- of the whole text
    bytes    INTEGER NOT NULL DEFAULT 0,
    mtime_ns INTEGER NOT NULL DEFAULT 0
);

CREATE TABLE chunks (
    id          INTEGER PRIMARY KEY AUTOINCREMENT, -- never used again: what was embedded is told by it
    document    INTEGER NOT NULL,
    ord         INTEGER NOT NULL,                -- its place in the document; of what was said, milliseconds
    line        INTEGER NOT NULL,                -- from 1; of a message, within it
    last_line   INTEGER NOT NULL,
    kind        INTEGER NOT NULL,
    message     INTEGER,                         -- the row that it was said in
    identity    INTEGER NOT NULL,                -- hash of all that is kept of it but its place
    key         INTEGER NOT NULL,                -- hash of what is embedded of it
    date        INTEGER,                         -- days since 1 January of the year 1
    chat        INTEGER,                         -- whose it is besides the owner's
    for_all     INTEGER NOT NULL DEFAULT 0,
    taint       TEXT,                            -- whose words it may hold, for the owner
    guest_taint INTEGER NOT NULL DEFAULT 0,      -- the same for the chat that it is for
    speaker     TEXT NOT NULL DEFAULT '',
    heading     TEXT NOT NULL DEFAULT '',
    above       TEXT NOT NULL DEFAULT '',        -- the headings above that one
    origin      TEXT NOT NULL DEFAULT '',        -- what a wake noted of where it comes from
    text        TEXT NOT NULL
);
CREATE INDEX chunks_by_place ON chunks (document, ord);
CREATE INDEX chunks_by_message ON chunks (message, kind) WHERE message IS NOT NULL;
CREATE INDEX chunks_by_key ON chunks (key);
CREATE INDEX chunks_by_date ON chunks (date) WHERE date IS NOT NULL;
CREATE INDEX chunks_of_chats ON chunks (chat) WHERE chat IS NOT NULL;
CREATE INDEX chunks_for_all ON chunks (for_all) WHERE for_all = 1;

-- In which chunks a word stands. It holds words as `index::terms` cuts them, which FTS5 only has to tell apart. A word of a heading
-- or of who speaks is a token of its own (`index::terms::WordPlace`): to ask for one column, FTS5 would have to read the places of all.
CREATE VIRTUAL TABLE postings USING fts5 (
    words, content = '', contentless_delete = 1, detail = none, tokenize = 'ascii'
);

-- In how many chunks each word's stem stands; and words by their spelling, for those that are misspelt.
CREATE TABLE words (id INTEGER PRIMARY KEY, word TEXT NOT NULL UNIQUE, chunks INTEGER NOT NULL);
CREATE VIRTUAL TABLE spellings USING fts5 (word, content = 'words', content_rowid = 'id', tokenize = 'trigram');

-- Sentence embeddings, by model: eight bits a dimension, and one bit in blocks that are read at once.
CREATE TABLE models (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, dims INTEGER NOT NULL);
CREATE TABLE codes (
    model INTEGER NOT NULL,
    key   INTEGER NOT NULL,
    code  BLOB NOT NULL,
    PRIMARY KEY (model, key)
) WITHOUT ROWID;
CREATE TABLE refused (                           -- texts that a model doesn't take
    model INTEGER NOT NULL,
    key   INTEGER NOT NULL,
    PRIMARY KEY (model, key)
) WITHOUT ROWID;
CREATE TABLE blocks (
    model INTEGER NOT NULL,
    block INTEGER NOT NULL,
    keys  BLOB NOT NULL,
    bits  BLOB NOT NULL,
    PRIMARY KEY (model, block)
) WITHOUT ROWID;
