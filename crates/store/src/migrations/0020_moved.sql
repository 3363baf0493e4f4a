-- Groups that became supergroups: Telegram gave them another id. What was to be sent to the old one is sent to the new one, once a
-- person has listed that.
CREATE TABLE moved_chats (
    from_id    INTEGER PRIMARY KEY,
    to_id      INTEGER NOT NULL,
    at         TEXT    NOT NULL,
    is_listed  INTEGER NOT NULL          -- whether the settings list the new id
);
