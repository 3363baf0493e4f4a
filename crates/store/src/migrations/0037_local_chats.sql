-- A chat that is kept on this machine by `/local`: no model and no embedder elsewhere is given its words until it lifts that.
CREATE TABLE local_chats (
    chat_id INTEGER PRIMARY KEY,
    at      TEXT NOT NULL
);
