-- A model that couldn't be asked, or refused, isn't asked again before its time: a row while it is in trouble. Once `not_before` is over
-- the next request tries it (half-open), and an answer takes the row away.
CREATE TABLE model_breakers (
    model       TEXT PRIMARY KEY,
    fault       TEXT NOT NULL,            -- outage | account | missing
    failures    INTEGER NOT NULL,         -- in a row
    since       TEXT NOT NULL,            -- when the first of them was
    not_before  TEXT,                     -- not to be asked before; NULL: it may be
    error       TEXT NOT NULL             -- the last one, without secrets
);
