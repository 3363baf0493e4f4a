-- What a database is made of. A new one is made from this; one from before gets what it lacks of it (schema.rs).
--
-- To change it: write the table, the index, or the column after the last one of its table, and raise VERSION in schema.rs. A new column
-- has a default, so that the release before can still write. What rows that are there already are given is a line of FILLS there.
--
-- Times are RFC 3339 UTC text; chat 0 is the terminal. incoming_messages, outgoing_messages and processing_lock keep their first
-- columns for ever: a person may use them.

CREATE TABLE incoming_messages (
    id                 INTEGER PRIMARY KEY AUTOINCREMENT,
    chat_id            INTEGER NOT NULL,
    message_text       TEXT NOT NULL,
    received_at        TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now')),
    processed          INTEGER NOT NULL DEFAULT 0 CHECK (processed IN (0, 1)),
    outcome            TEXT,                     -- why processed: answered, refused, dead, dropped, undone
    processed_at       TEXT,
    cycle_id           TEXT,                     -- the cycle that took it up last
    kind               TEXT NOT NULL DEFAULT 'text',
    sender_id          INTEGER,
    sender_name        TEXT,
    thread_id          INTEGER,                  -- forum topic
    channel_message_id INTEGER,                  -- the channel's own id of the message
    quoted             TEXT,                     -- what it replies to: somebody's words, never an instruction
    forwarded_from     TEXT,
    raw                TEXT,                     -- the update as it came
    bot_id             INTEGER,
    update_id          INTEGER,
    attempts           INTEGER NOT NULL DEFAULT 0, -- cycles that failed on it
    held_for           TEXT,                     -- the model that could not answer it; another one may
    not_before         TEXT,                     -- back-off after the model could not be reached
    album              TEXT,                     -- the channel's name for what belongs together
    sent_at            TEXT,                     -- as the channel says, of the last of its parts
    -- Whether what a message quotes is its own sender's, or ours: all else was written by others.
    quotes_own         INTEGER NOT NULL DEFAULT 0,
    asked_again        INTEGER NOT NULL DEFAULT 0, -- A person wants it tried again, however old it is.
    -- Which door a message came in by, or was meant for: NULL (put in by hand), terminal, telegram, page. All
    -- terminals are chat 0; its session tells one that waits for its answers from the others.
    channel            TEXT,
    session            TEXT
);
-- Update ids are a key, not an order.
CREATE UNIQUE INDEX incoming_by_update ON incoming_messages (bot_id, update_id) WHERE update_id IS NOT NULL;
CREATE INDEX incoming_queued ON incoming_messages (chat_id, id) WHERE processed = 0;
CREATE INDEX incoming_by_chat ON incoming_messages (chat_id, id);
CREATE INDEX incoming_to_forget ON incoming_messages (processed_at) WHERE processed = 1 AND raw IS NOT NULL;
-- The queue of each chat, without what is kept for another model, and that alone.
CREATE INDEX incoming_answerable ON incoming_messages (chat_id, id) WHERE processed = 0 AND held_for IS NULL;
CREATE INDEX incoming_kept ON incoming_messages (chat_id, id) WHERE processed = 0 AND held_for IS NOT NULL;
-- What of a chat is held for a moment: looked at with every message that comes.
CREATE INDEX incoming_put_off ON incoming_messages (chat_id, not_before)
    WHERE processed = 0 AND not_before IS NOT NULL;
CREATE INDEX incoming_by_album ON incoming_messages (chat_id, album, id) WHERE album IS NOT NULL;
CREATE INDEX incoming_by_channel_message ON incoming_messages (chat_id, channel_message_id, id)
    WHERE channel_message_id IS NOT NULL;

CREATE TABLE outgoing_messages (
    id            INTEGER PRIMARY KEY AUTOINCREMENT,
    chat_id       INTEGER NOT NULL,
    message_text  TEXT NOT NULL,                 -- Markdown
    sent_at       TEXT,                          -- NULL until every part was confirmed
    created_at    TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now')),
    kind          TEXT NOT NULL DEFAULT 'reply', -- reply, tell, reminder, notice, command
    key           TEXT UNIQUE,                   -- the same thing is never told twice
    thread_id     INTEGER,
    reply_to      INTEGER,                       -- channel_message_id of the question
    cycle_id      TEXT,                          -- not delivered before this cycle has committed
    taken_back_at TEXT,                          -- what of it wasn't sent by then never is
    -- Whose bytes a text of ours may hold besides its person's own, in words; NULL: none. It is not shown in a
    -- later cycle's opening then.
    taint         TEXT,
    channel       TEXT,
    session       TEXT,
    notified_at   TEXT                           -- When a desktop notification told of it, which isn't showing it.
);
CREATE INDEX outgoing_unsent ON outgoing_messages (chat_id, id) WHERE sent_at IS NULL;
CREATE INDEX outgoing_by_chat ON outgoing_messages (chat_id, id);

CREATE TABLE outgoing_parts (
    outgoing_id        INTEGER NOT NULL REFERENCES outgoing_messages (id),
    part               INTEGER NOT NULL,
    html               TEXT NOT NULL,
    plain              TEXT NOT NULL,
    state              TEXT NOT NULL DEFAULT 'planned' CHECK (state IN ('planned', 'attempting', 'sent', 'unknown', 'failed')),
    attempts           INTEGER NOT NULL DEFAULT 0,
    repeats            INTEGER NOT NULL DEFAULT 0, -- sends after an ambiguous one: at most one, marked
    not_before         TEXT,
    sender             TEXT,                     -- JSON identity of the process that is attempting
    channel_message_id INTEGER,
    error              TEXT,
    changed_at         TEXT,
    -- The part is the beginning of its message, which goes along as a file, whole.
    as_file            INTEGER NOT NULL DEFAULT 0,
    -- When it was sent, by the channel's own clock.
    channel_date       TEXT,
    -- How its message goes. open: perhaps as one rich message, which is decided at the first attempt; rich: as one; NULL: as these parts.
    form               TEXT,
    PRIMARY KEY (outgoing_id, part)
);
CREATE INDEX parts_open ON outgoing_parts (outgoing_id, part)
    WHERE state IN ('planned', 'attempting', 'unknown');
CREATE INDEX parts_to_forget ON outgoing_parts (changed_at) WHERE state = 'sent' AND html != '';

CREATE TABLE processing_lock (
    id        INTEGER PRIMARY KEY CHECK (id = 1),
    is_locked INTEGER NOT NULL DEFAULT 0,
    locked_at TEXT,
    fence     INTEGER NOT NULL DEFAULT 0,
    holder    TEXT,                              -- JSON {pid, boot_id, started, …}
    seen_at   TEXT                               -- When the lease was last taken: a clock that shows less was set back since.
);
INSERT INTO processing_lock (id) VALUES (1);

CREATE TABLE poll_state (
    bot_id       INTEGER PRIMARY KEY,
    next_offset  INTEGER NOT NULL,
    last_poll_at TEXT,
    reported     TEXT -- the bot that came up last, as JSON
);

CREATE TABLE counters (
    name    TEXT PRIMARY KEY,
    n       INTEGER NOT NULL DEFAULT 0,
    last_at TEXT
);

-- A cycle: its conversation's fixed part, its state, what it cost. Its journal is cycle_journal.
CREATE TABLE cycles (
    id          TEXT PRIMARY KEY,
    state       TEXT NOT NULL CHECK (state IN ('running', 'waiting', 'parked', 'done', 'failed', 'abandoned')),
    trigger     TEXT NOT NULL,
    reasons     TEXT NOT NULL,                   -- JSON array
    chat_id     INTEGER,
    thread_id   INTEGER,
    model       TEXT NOT NULL,
    system      TEXT NOT NULL DEFAULT '[]',
    tools       TEXT NOT NULL DEFAULT '[]',
    started_at  TEXT NOT NULL,
    ended_at    TEXT,
    not_before  TEXT,
    tries       INTEGER NOT NULL DEFAULT 0,      -- resumptions after a crash, a kill or a time-out
    fence       INTEGER NOT NULL,
    commit_id   TEXT,
    error       TEXT,
    -- 0: its journal and its conversation's fixed part were old, and are gone. The row stays, with its commit.
    has_journal INTEGER NOT NULL DEFAULT 1,
    -- Set when it is known that a cycle was cut off by a crash, a kill or a time-out; cleared when it is taken up
    -- again, which then counts as one of its few tries. A cycle that is `running` without it was ended by an error
    -- (a full disk, …).
    was_cut_off INTEGER NOT NULL DEFAULT 0,
    -- Whether a cycle that has ended left more than its answers: then an undo without an id may mean it. NULL: it
    -- ended before this was noted.
    has_changed INTEGER,
    -- Whether copies were kept of what a cycle had changed in a person's folders when it ended: then it can be
    -- undone, even if it came to nothing else.
    has_copies  INTEGER NOT NULL DEFAULT 0,
    work        TEXT                             -- what of our own it works at: `step/photos/3/0`; NULL: what was asked
);
CREATE INDEX cycles_open ON cycles (state) WHERE state IN ('running', 'waiting', 'parked');
CREATE INDEX cycles_to_forget ON cycles (ended_at) WHERE has_journal = 1;
-- Which chat was taken up how long ago, for taking turns: the last row of each chat.
CREATE INDEX cycles_by_chat ON cycles (chat_id) WHERE chat_id IS NOT NULL;
CREATE INDEX cycles_by_work ON cycles (work) WHERE work IS NOT NULL;
CREATE INDEX cycles_by_end ON cycles (ended_at) WHERE state = 'done';

CREATE TABLE cycle_journal (
    cycle_id TEXT NOT NULL REFERENCES cycles (id),
    seq      INTEGER NOT NULL,
    at       TEXT NOT NULL,
    kind     TEXT NOT NULL,
    body     TEXT NOT NULL,                      -- JSON
    PRIMARY KEY (cycle_id, seq)
) WITHOUT ROWID;

CREATE TABLE cycle_files (
    cycle_id TEXT NOT NULL REFERENCES cycles (id),
    path     TEXT NOT NULL,
    base     TEXT,                               -- what the cycle read; NULL: the file was not there
    content  TEXT NOT NULL,
    PRIMARY KEY (cycle_id, path)
);

CREATE TABLE reminders (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    chat_id    INTEGER NOT NULL,
    thread_id  INTEGER,
    text       TEXT NOT NULL,
    rule       TEXT,                             -- JSON recurrence; NULL: once
    zone       TEXT NOT NULL,                    -- IANA zone its civil times are in
    slot       TEXT NOT NULL,                    -- next civil slot, local wall time
    next_at    TEXT NOT NULL,                    -- that slot's instant
    state      TEXT NOT NULL DEFAULT 'active' CHECK (state IN ('active', 'done', 'cancelled')),
    created_at TEXT NOT NULL,
    cycle_id   TEXT,
    -- What becomes of a slot that was missed, and of times that come again after the clock was set back.
    missed     TEXT NOT NULL DEFAULT 'run' CHECK (missed IN ('run', 'skip', 'tell')),
    written_at TEXT,                             -- when the next slot was written; NULL: not known
    ended_by   TEXT                              -- the cycle that ended it by a call
);
CREATE INDEX reminders_active ON reminders (next_at) WHERE state = 'active';

-- A slot fires once, whatever the clock does.
CREATE TABLE reminder_firings (
    reminder_id INTEGER NOT NULL REFERENCES reminders (id),
    slot        TEXT NOT NULL,
    fired_at    TEXT NOT NULL,
    outgoing_id INTEGER,
    -- A row is a slot that happened (run), or the last of some that were passed over; first_slot is the first of
    -- these.
    outcome     TEXT NOT NULL DEFAULT 'run' CHECK (outcome IN ('run', 'skip', 'tell')),
    first_slot  TEXT,
    PRIMARY KEY (reminder_id, slot)
) WITHOUT ROWID;

-- What a person did about a reminder that had come, by the buttons under its message: once a message.
CREATE TABLE reminder_answers (
    outgoing_id INTEGER PRIMARY KEY REFERENCES outgoing_messages (id),
    message_id  INTEGER NOT NULL,                -- the channel's id of the message that carries the buttons
    answer      TEXT NOT NULL CHECK (answer IN ('done', 'hour', 'morning')),
    at          TEXT NOT NULL,
    again_at    TEXT,                            -- when it comes again; NULL: it doesn't
    is_shown    INTEGER NOT NULL DEFAULT 0       -- whether the message shows the answer instead of its buttons
);

CREATE TABLE ledger (
    id          INTEGER PRIMARY KEY AUTOINCREMENT,
    cycle_id    TEXT NOT NULL,
    at          TEXT NOT NULL,
    model       TEXT NOT NULL,
    input       INTEGER NOT NULL,
    output      INTEGER NOT NULL,
    cache_read  INTEGER NOT NULL,
    cache_write INTEGER NOT NULL,
    cost_usd    REAL NOT NULL,
    discarded   INTEGER NOT NULL DEFAULT 0,
    -- A row that stands for a request whose end isn't known: it is under way, or its wake was cut off. Until it is
    -- replaced by what the request cost, its cost is the most that it may be.
    reserved    INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX ledger_by_time ON ledger (at);
CREATE INDEX ledger_reserved ON ledger (at) WHERE reserved = 1;

-- Back-off of what is looked after without a model: push, fetch.
CREATE TABLE upkeep (
    name       TEXT PRIMARY KEY,
    failures   INTEGER NOT NULL DEFAULT 0,
    last_ok_at TEXT,
    not_before TEXT,
    error      TEXT
);

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

-- Things that are reasons once: a decay line, a task's `at:`, the commit seen last (under the key `head`).
CREATE TABLE handled (
    key   TEXT PRIMARY KEY,
    value TEXT NOT NULL DEFAULT '',
    at    TEXT NOT NULL
);

-- What health repaired and the next wake writes into the episodic memory.
CREATE TABLE repairs (
    id       INTEGER PRIMARY KEY AUTOINCREMENT,
    at       TEXT NOT NULL,
    check_id TEXT NOT NULL,
    what     TEXT NOT NULL,
    cycle_id TEXT
);

-- Which cycles took a message up, not only the last (`incoming_messages.cycle_id`): what the given-up ones among them had done
-- must not be done again. Goes with the cycle's journal.
CREATE TABLE taken_up (
    cycle_id   TEXT NOT NULL,
    message_id INTEGER NOT NULL,
    PRIMARY KEY (cycle_id, message_id)
) WITHOUT ROWID;
CREATE INDEX taken_up_by_message ON taken_up (message_id);

-- Files that came with a message. What stands here is kept: fetched from the channel as soon as that is possible, and, if it is
-- speech, written down. A message isn't given to a model while one of its files is on its way.
CREATE TABLE attachments (
    id                 INTEGER PRIMARY KEY,
    message_id         INTEGER NOT NULL REFERENCES incoming_messages (id),
    kind               TEXT NOT NULL,            -- as the Bot API names the field: voice, video_note, audio, photo, document, …
    file_id            TEXT NOT NULL,            -- the channel's handle for fetching it, valid for this bot alone
    unique_id          TEXT,                     -- the same for the same file, whoever sends it
    name               TEXT,                     -- as its sender named it: never a path
    mime               TEXT,                     -- as its sender says
    bytes              INTEGER,                  -- as the channel says
    seconds            INTEGER,                  -- of sound or film
    width              INTEGER,                  -- of a picture, in pixels
    height             INTEGER,
    state              TEXT NOT NULL DEFAULT 'wanted' CHECK (state IN ('wanted', 'kept', 'ready', 'failed')),
    path               TEXT,                     -- below the workspace, once it is kept
    attempts           INTEGER NOT NULL DEFAULT 0, -- failures of the present step
    not_before         TEXT,
    error              TEXT,                     -- why it is late, or was given up
    transcript         TEXT,                     -- JSON: the words, their language, how sure they are
    changed_at         TEXT,
    -- Failures to fetch a file that are the file's own, as far as can be told. Only they are counted against it:
    -- while there is no network, none of its tries is.
    faults             INTEGER NOT NULL DEFAULT 0,
    channel_message_id INTEGER,                  -- the part of the row that it came with; NULL: as the row's own
    replaced_at        TEXT,                     -- an edit put another file in its place: nothing more is done with it
    listener           INTEGER                   -- the process that was the last to listen to it: a try of its own
);
CREATE INDEX attachments_by_message ON attachments (message_id);
CREATE INDEX attachments_open ON attachments (state, id) WHERE state IN ('wanted', 'kept');
-- The files that messages wait for, and those alone: most of what is kept is kept for good.
CREATE INDEX attachments_awaited ON attachments (message_id)
    WHERE state = 'wanted' OR state = 'kept' AND kind IN ('voice', 'video_note', 'audio');

-- The one line in a chat that says how far a long cycle is, until it goes with the answer. Written before it is sent: whoever finds
-- it here after a crash takes it away.
CREATE TABLE status_lines (
    cycle_id           TEXT PRIMARY KEY,
    chat_id            INTEGER NOT NULL,
    channel_message_id INTEGER                   -- NULL: it is being sent, or nobody knows whether it was
) WITHOUT ROWID;

-- People who paired with a bot by a one-time code: they may speak as those in ALLOWED_CHAT_IDS may.
CREATE TABLE paired (
    user_id   INTEGER PRIMARY KEY,
    name      TEXT NOT NULL DEFAULT '',          -- as they call themselves: for people to read, never to decide by
    paired_at TEXT NOT NULL,
    bot_id    INTEGER
);

-- Codes that pair: short-lived, single use, kept as a hash.
CREATE TABLE pairing_codes (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    hash       TEXT NOT NULL,
    made_by    TEXT NOT NULL,                    -- bot, pair
    made_at    TEXT NOT NULL,
    expires_at TEXT NOT NULL,
    wrong      INTEGER NOT NULL DEFAULT 0,       -- wrong codes that came while it was open
    used_by    INTEGER                           -- who paired by it
);

-- Several of a channel's messages may be one row: the parts of an album, a text that its sender's client cut. And a row may have
-- come to say something else than its first message did: by an edit, or because it is itself the correction of an earlier
-- one. Each line here is one such update, so that none is taken in twice; the last of a message's lines is what it says now.
CREATE TABLE message_updates (
    id                 INTEGER PRIMARY KEY,
    message_id         INTEGER NOT NULL REFERENCES incoming_messages (id),
    chat_id            INTEGER NOT NULL,
    channel_message_id INTEGER,
    words              TEXT NOT NULL,            -- as the channel delivered them
    bot_id             INTEGER,
    update_id          INTEGER
);
CREATE INDEX updates_by_row ON message_updates (message_id, channel_message_id, id);
CREATE INDEX updates_by_channel_message ON message_updates (chat_id, channel_message_id, id);
CREATE UNIQUE INDEX updates_by_update ON message_updates (bot_id, update_id) WHERE update_id IS NOT NULL;

-- While the row stands here no wake works, whoever restarts what.
CREATE TABLE stopped (
    id      INTEGER PRIMARY KEY CHECK (id = 1),
    at      TEXT NOT NULL,
    chat_id INTEGER NOT NULL                     -- where it was ordered; 0: the console
);

-- A wake that is to be undone, or was. The same one never is twice.
CREATE TABLE undos (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    wake       TEXT NOT NULL UNIQUE,             -- the cycle that is taken back
    asked_at   TEXT NOT NULL,
    chat_id    INTEGER NOT NULL,                 -- who asked is told what became of it
    thread_id  INTEGER,
    reply_to   INTEGER,
    cycle_id   TEXT,                             -- the cycle that does it
    taken_back TEXT,                             -- JSON: what was taken back in this database; NULL: nothing yet
    answer     TEXT,                             -- what is said of it once its commit is made
    done_at    TEXT
);
CREATE INDEX undos_open ON undos (id) WHERE done_at IS NULL;

-- One line of what changed by somebody's order, for undo: what wakes did, and what people did themselves.
CREATE TABLE undo_line (
    id        INTEGER PRIMARY KEY AUTOINCREMENT,
    chat_id   INTEGER NOT NULL,                  -- where it was ordered; 0: at this machine
    at        TEXT NOT NULL,
    cycle_id  TEXT UNIQUE,                       -- the wake that did it; NULL: a person did it themselves
    did       TEXT,                              -- of a person's own step: in words, in the past tense
    commit_id TEXT,                              -- of a person's own step: its commit; NULL: the memory isn't touched
    before    TEXT                               -- of a person's own step: JSON, the setting that it changed as it was
);

-- What a person is asked before it is done. An action stands here byte for byte, and is carried out at most once under its row.
CREATE TABLE approvals (
    id          INTEGER PRIMARY KEY AUTOINCREMENT,
    cycle_id    TEXT NOT NULL REFERENCES cycles (id),
    call        TEXT NOT NULL,                   -- the call's id in the cycle's journal
    tool        TEXT NOT NULL,
    action      TEXT NOT NULL,                   -- its arguments as the model wrote them, byte for byte
    risk        TEXT NOT NULL,
    reasons     TEXT NOT NULL,                   -- JSON array: why it is asked
    origin      TEXT,                            -- whose bytes the cycle had read by then, if not only its person's
    chat_id     INTEGER NOT NULL,                -- where it is asked; 0: the console
    approver    INTEGER,                         -- whose word counts in that chat; NULL: of whoever may speak there
    nonce       TEXT NOT NULL UNIQUE,            -- what the buttons carry
    outgoing_id INTEGER,                         -- the message that asks
    asked_at    TEXT NOT NULL,
    expires_at  TEXT NOT NULL,
    state       TEXT NOT NULL DEFAULT 'pending' CHECK (state IN ('pending', 'approved', 'denied', 'expired', 'withdrawn')),
    decided_at  TEXT,
    decided_by  TEXT,                            -- a person's numeric id, or `console`
    used_at     TEXT,                            -- when the call was begun under it
    shown       TEXT NOT NULL DEFAULT 'pending', -- the state that the message in the chat shows
    rule        TEXT CHECK (rule IN ('offered', 'shown', 'declined', 'ordered', 'added')), -- what became of "always"; NULL: never offered
    rule_outgoing_id INTEGER,                    -- the message that shows the rule
    rule_at     TEXT,                            -- when that was answered
    rule_is_shown INTEGER NOT NULL DEFAULT 0,    -- whether that message shows what became of it
    named       TEXT,                            -- JSON: the files that the action names as they were, which a yes is bound to
    consents    TEXT NOT NULL DEFAULT '[]',      -- JSON array: what a yes permits besides the action
    UNIQUE (cycle_id, call)
);
CREATE INDEX approvals_pending ON approvals (cycle_id) WHERE state = 'pending';
CREATE INDEX approvals_unshown ON approvals (id) WHERE shown != state;
CREATE INDEX approvals_rules ON approvals (id) WHERE rule_outgoing_id IS NOT NULL AND rule_is_shown = 0;

-- Rules of ours that a person takes back: a row goes when it is done.
CREATE TABLE rule_removals (
    id        INTEGER PRIMARY KEY AUTOINCREMENT,
    rule      TEXT NOT NULL,                     -- as it stands in policy.toml
    chat_id   INTEGER NOT NULL,                  -- who is told
    thread_id INTEGER,
    reply_to  INTEGER
);

-- Who was unpaired and isn't in the settings: nothing leaves for them any more, whatever a cycle that was under way still writes.
CREATE TABLE unpaired (
    user_id INTEGER PRIMARY KEY,
    at      TEXT NOT NULL
);

-- What listed people said to others in a group that may turn out to be a part of what is said to the assistant: the beginning of a
-- long text, files of an album. It becomes a message when a part that is said to it follows, and else goes after moments.
CREATE TABLE overheard (
    id        INTEGER PRIMARY KEY,
    bot_id    INTEGER NOT NULL,
    update_id INTEGER NOT NULL,
    chat_id   INTEGER NOT NULL,
    heard_at  TEXT NOT NULL,
    message   TEXT NOT NULL,                     -- JSON
    UNIQUE (bot_id, update_id)
);

-- Groups that became supergroups: Telegram gave them another id. What was to be sent to the old one is sent to the new one, once a
-- person has listed that.
CREATE TABLE moved_chats (
    from_id   INTEGER PRIMARY KEY,
    to_id     INTEGER NOT NULL,
    at        TEXT NOT NULL,
    is_listed INTEGER NOT NULL                   -- whether the settings list the new id
);

-- A chat that isn't the owner's has ordered that nothing be done for it: its messages are kept until it lifts that. Nobody else's work
-- is touched.
CREATE TABLE stopped_chats (
    chat_id INTEGER PRIMARY KEY,
    at      TEXT NOT NULL
);

-- Terminals that wait for their answers now. One that ends in order takes its row away; the next one takes those of the dead.
CREATE TABLE sessions (
    id        TEXT PRIMARY KEY,
    channel   TEXT NOT NULL,
    holder    TEXT NOT NULL,                     -- JSON identity of the process
    opened_at TEXT NOT NULL
);

-- Which task each number stood for in the list that a chat was shown last: a number that is said later means that one.
CREATE TABLE shown_tasks (
    chat_id INTEGER NOT NULL,
    number  INTEGER NOT NULL,                    -- as it was shown, from 1
    path    TEXT NOT NULL,                       -- the document it stood in
    title   TEXT NOT NULL,                       -- its heading
    PRIMARY KEY (chat_id, number)
) WITHOUT ROWID;

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

-- Where a chat, or a topic of it, was begun afresh by `/new`: what was said there before isn't in its openings.
CREATE TABLE fresh_starts (
    chat_id     INTEGER NOT NULL,
    thread_id   INTEGER NOT NULL,                -- forum topic; 0: none
    incoming_id INTEGER NOT NULL,                -- the last message from before; 0: none
    outgoing_id INTEGER NOT NULL,                -- the last one of ours
    at          TEXT NOT NULL,
    PRIMARY KEY (chat_id, thread_id)
) WITHOUT ROWID;

-- Settings that the owner has chosen in a chat. Each holds for as long as the settings say what they said then.
CREATE TABLE chosen_settings (
    name       TEXT PRIMARY KEY,                 -- MODEL
    value      TEXT NOT NULL,
    instead_of TEXT NOT NULL,                    -- what the settings said
    chosen_at  TEXT NOT NULL
) WITHOUT ROWID;

-- Restarts of the bot that were ordered: who ordered one is told once what came of it.
CREATE TABLE restarts (
    id        INTEGER PRIMARY KEY AUTOINCREMENT,
    asked_at  TEXT NOT NULL,
    chat_id   INTEGER NOT NULL,
    thread_id INTEGER,
    told_at   TEXT                               -- NULL: it isn't over
);

-- What of our own accord was said with buttons under it, and what its person did about it: once a message.
CREATE TABLE nudges (
    outgoing_id INTEGER PRIMARY KEY REFERENCES outgoing_messages (id),
    task        TEXT,                            -- the title of the one task that it is about
    zone        TEXT NOT NULL,                   -- IANA zone of its person
    may_stop    INTEGER NOT NULL DEFAULT 0,      -- whether it has a button against more of its kind
    message_id  INTEGER,                         -- the channel's id of the message that carries the buttons
    answer      TEXT,                            -- done, morning, quiet; NULL: none yet
    answered_at TEXT,
    again_at    TEXT,                            -- when it comes again as a reminder; NULL: it doesn't
    is_shown    INTEGER NOT NULL DEFAULT 0,      -- whether the message shows the answer instead of its buttons
    is_open     INTEGER NOT NULL DEFAULT 0,      -- whether a wake has still to do what the answer says
    proposal    INTEGER                          -- the proposal that it reports on: its button takes that back
);
CREATE INDEX nudges_open ON nudges (outgoing_id) WHERE is_open = 1;
CREATE INDEX nudges_unshown ON nudges (outgoing_id) WHERE answer IS NOT NULL AND is_shown = 0;

-- A desktop is told of a reminder while it is new.
CREATE INDEX outgoing_reminders ON outgoing_messages (created_at) WHERE kind = 'reminder';

-- The oldest version that a program has to know to use this database. Changes that only add leave it as it is.
CREATE TABLE readable_from (version INTEGER NOT NULL);
INSERT INTO readable_from (version) VALUES (35);

-- A chat that is kept on this machine by `/local`: no model and no embedder elsewhere is given its words until it lifts that.
CREATE TABLE local_chats (
    chat_id INTEGER PRIMARY KEY,
    at      TEXT NOT NULL
);

-- Standing jobs: when each runs next, and what was seen at the last look. What they do stands in their files.
CREATE TABLE jobs (
    name       TEXT PRIMARY KEY,                 -- its file's, beneath memory/jobs
    read_from  TEXT NOT NULL,                    -- what of its file the plan was made from
    gate       TEXT NOT NULL DEFAULT '',         -- what it looks at, as its file says; another one begins anew
    rule       TEXT,                             -- JSON recurrence; NULL: once
    zone       TEXT NOT NULL,                    -- IANA zone of its civil times
    slot       TEXT,                             -- the next civil slot
    next_at    TEXT,                             -- its instant; NULL: nothing comes, or it rests
    is_asked   INTEGER NOT NULL DEFAULT 0,       -- a person wants a run now
    created_at TEXT NOT NULL,
    written_at TEXT NOT NULL,                    -- when the next slot was written
    seen       TEXT,                             -- JSON: what the last look saw, bounded
    failures   INTEGER NOT NULL DEFAULT 0,       -- in a row
    error      TEXT
) WITHOUT ROWID;
CREATE INDEX jobs_due ON jobs (next_at) WHERE next_at IS NOT NULL;

CREATE TABLE job_runs (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    name       TEXT NOT NULL,
    slot       TEXT,                             -- the civil slot; NULL: a person asked for it
    started_at TEXT NOT NULL,
    ended_at   TEXT,
    state      TEXT NOT NULL CHECK (state IN ('open', 'missed', 'nothing', 'told', 'worked', 'failed')),
    cycle_id   TEXT,                             -- the cycle that does it
    found      TEXT,                             -- what its gate saw: others' words
    output     TEXT,                             -- what it came to
    held       TEXT                              -- a message that waits for the end of the quiet hours, as JSON
);
CREATE INDEX job_runs_by_name ON job_runs (name, id);
CREATE UNIQUE INDEX job_runs_once ON job_runs (name, slot) WHERE slot IS NOT NULL AND state != 'missed';
CREATE INDEX job_runs_open ON job_runs (id) WHERE state = 'open' OR held IS NOT NULL;

-- Changes of its own orders that the assistant has proposed, and what became of those that were agreed to.
CREATE TABLE proposals (
    id            INTEGER PRIMARY KEY AUTOINCREMENT,
    cycle_id      TEXT NOT NULL,
    call          TEXT NOT NULL,                 -- the call that proposes it
    title         TEXT NOT NULL,
    files         TEXT NOT NULL,                 -- JSON array: path, text before (null: none), text after
    figure        TEXT NOT NULL,                 -- rounds, cost, questions, tasks_done
    aim           TEXT NOT NULL,                 -- less, more
    job           TEXT,                          -- the one job that it changes: its runs are measured; NULL: answers are
    before_total  REAL NOT NULL,                 -- the figure in the week before it was asked
    before_pieces INTEGER NOT NULL,
    branch        TEXT,                          -- where its tree is; NULL: the branch is gone
    commit_id     TEXT NOT NULL,
    asked_at      TEXT NOT NULL,
    agreed_at     TEXT,                          -- when it was carried out
    tell_at       TEXT,                          -- when before and after are told; NULL: not agreed to, or told
    UNIQUE (cycle_id, call)
);
CREATE INDEX proposals_to_tell ON proposals (tell_at) WHERE tell_at IS NOT NULL;
CREATE INDEX proposals_with_branch ON proposals (id) WHERE branch IS NOT NULL;

-- The chats that may get rich messages: the sample that was sent, what its person said about it, and what the server refused.
CREATE TABLE rich_chats (
    chat_id       INTEGER PRIMARY KEY,
    outgoing_id   INTEGER,                       -- the sample; NULL: none was sent
    message_id    INTEGER,                       -- the channel's id of the sample, once answered
    answer        TEXT,                          -- well, badly; unsupported: refused for good; NULL: none yet
    answered_at   TEXT,
    is_shown      INTEGER NOT NULL DEFAULT 0,    -- whether the sample shows the answer instead of its buttons
    refused_until TEXT                           -- the server isn't asked before; NULL: it never refused
);
