-- A chat that isn't the owner's has ordered that nothing be done for it: its messages are kept until it lifts that. Nobody else's work
-- is touched.
CREATE TABLE stopped_chats (
    chat_id  INTEGER PRIMARY KEY,
    at       TEXT    NOT NULL
);
