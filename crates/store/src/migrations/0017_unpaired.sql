-- Who was unpaired and isn't in the settings: nothing leaves for them any more, whatever a cycle that was under way still writes.
CREATE TABLE unpaired (
    user_id  INTEGER PRIMARY KEY,
    at       TEXT    NOT NULL
);
