-- Which task each number stood for in the list that a chat was shown last: a number that is said later means that one.
CREATE TABLE shown_tasks (
    chat_id INTEGER NOT NULL,
    number  INTEGER NOT NULL,            -- as it was shown, from 1
    path    TEXT    NOT NULL,            -- the document it stood in
    title   TEXT    NOT NULL,            -- its heading
    PRIMARY KEY (chat_id, number)
) WITHOUT ROWID;
