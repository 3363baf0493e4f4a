-- People who paired with a bot by a one-time code: they may speak as those in ALLOWED_CHAT_IDS may.
CREATE TABLE paired (
    user_id    INTEGER PRIMARY KEY,
    name       TEXT    NOT NULL DEFAULT '',    -- as they call themselves: for people to read, never to decide by
    paired_at  TEXT    NOT NULL,
    bot_id     INTEGER
);

-- Codes that pair: short-lived, single use, kept as a hash.
CREATE TABLE pairing_codes (
    id          INTEGER PRIMARY KEY AUTOINCREMENT,
    hash        TEXT    NOT NULL,
    made_by     TEXT    NOT NULL,              -- bot, pair
    made_at     TEXT    NOT NULL,
    expires_at  TEXT    NOT NULL,
    wrong       INTEGER NOT NULL DEFAULT 0,    -- wrong codes that came while it was open
    used_by     INTEGER                        -- who paired by it
);
