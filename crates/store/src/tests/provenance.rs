//! Whose words our messages and theirs hold, and what a reply may quote.

use reveille_base::types::ChatRef;

use super::*;
use crate::sql;

fn outcome(taint: Option<&str>) -> Entry {
    Entry::Outcome {
        call: "c".to_owned(),
        name: "web_fetch".to_owned(),
        content: String::new(),
        is_error: false,
        receipt: None,
        closed: Vec::new(),
        taint: taint.map(str::to_owned),
        image: None,
    }
}

impl World {
    fn send(&mut self, entry: &Entry, text: &str) {
        self.held(at(1))
            .journal_mut()
            .record_entry("c1", entry, &[Change::Send(outgoing(ChatRef::from_telegram(7), text))])
            .unwrap();
    }

    /// What was said in chat 7, each with whose words it may hold.
    fn said(&self) -> Vec<(String, String, Option<String>)> {
        let exchanges = self.store.inbox().list_exchanges(ChatRef::from_telegram(7), 16).unwrap();
        exchanges.into_iter().map(|entry| (entry.format_number(), entry.text.clone(), entry.taint)).collect()
    }

    /// The chat's id of a message that was just delivered.
    fn deliver(&mut self, text: &str, channel_message_id: i64) {
        while let Some(claimed) = self.store.outbox_mut().claim_part(Pick::default(), &me(), at(20)).unwrap() {
            let id = if claimed.plain == text { channel_message_id } else { 1 };
            self.store.outbox_mut().settle_part(&claimed, &PartOutcome::Sent { id, date: None }, at(20)).unwrap();
        }
    }

    /// A reply of chat 7 that quotes one of these messages; whether that counts as nobody else's words.
    fn quotes(&mut self, quoted: Option<i64>) -> bool {
        let reply = NewIncoming {
            chat: ChatRef::from_telegram(7),
            text: "and this?".to_owned(),
            kind: "text".to_owned(),
            quoted: Some("words".to_owned()),
            quotes_own: true,
            quotes: quoted,
            ..NewIncoming::default()
        };
        let batch = Batch { bot_id: 1, next_offset: 5, messages: vec![reply], ..Batch::default() };
        self.store.inbox_mut().accept_batch(&batch, at(30)).unwrap();
        self.store.inbox().list_queued_messages().unwrap().pop().unwrap().quotes_own
    }
}

#[test]
fn a_text_of_ours_says_what_its_cycle_had_read_by_then() {
    let mut world = World::new();
    world.begin("c1");
    world.send(&Entry::Asked, "before");
    world.send(&outcome(Some("https://example.org")), "with it");
    world.send(&outcome(None), "after");
    world.send(&outcome(Some("a file")), "after both");
    let taints: Vec<Option<String>> = world.said().into_iter().map(|(_, _, taint)| taint).collect();
    let page = Some("https://example.org".to_owned());
    assert_eq!(taints, [None, page.clone(), page, Some("https://example.org, a file".to_owned())]);
    assert_eq!(world.store.outbox().find_cycle_taints("c1").unwrap().as_deref(), Some("https://example.org, a file"));
    assert_eq!(world.store.outbox().find_cycle_taints("c2").unwrap(), None);
}

#[test]
fn links_of_a_text_that_others_had_a_hand_in_are_text_whoever_planned_it() {
    let mut world = World::new();
    world.begin("c1");
    let html = |world: &World| -> Vec<String> {
        let mut statement = world.store.conn.prepare("SELECT html FROM outgoing_parts ORDER BY outgoing_id").unwrap();
        statement.query_map([], |row| row.get(0)).unwrap().collect::<sql::QueryResult<_>>().unwrap()
    };
    let link = "given up: [here](https://example.org/evil)";
    world.send(&Entry::Asked, link);
    world.send(&outcome(Some("a page")), link);
    let named = NewOutgoing { taint: Some("a title".to_owned()), ..outgoing(ChatRef::from_telegram(7), link) };
    world.store.outbox_mut().plan_message(&named, at(2)).unwrap();
    let clickable: Vec<bool> = html(&world).iter().map(|html| html.contains("<a href")).collect();
    assert_eq!(clickable, [true, false, false]);
}

/// Cycles for the owner, for who sits at the console, for work of our own, and for a guest.
const CYCLES: [(&str, Option<i64>); 4] =
    [("owners", Some(7)), ("consoles", Some(0)), ("works", None), ("guests", Some(5555))];

impl World {
    fn begin_all(&mut self) {
        for (id, chat) in CYCLES {
            self.held(at(0))
                .cycles_mut()
                .begin_cycle(&NewCycle { chat: chat.map(ChatRef::from_number), ..cycle(id) }, &[], &[])
                .unwrap();
        }
    }
}

#[test]
fn a_text_in_another_chat_than_its_cycles_says_whose_words_it_may_hold() {
    let mut world = World::new();
    world.begin_all();
    let tell = Change::Send(outgoing(ChatRef::from_telegram(7), "agreed: [here](https://example.org/evil)"));
    for (cycle, _) in CYCLES {
        world.held(at(1)).journal_mut().record_entry(cycle, &Entry::Asked, std::slice::from_ref(&tell)).unwrap();
    }
    world
        .held(at(5))
        .journal_mut()
        .record_entry("guests", &outcome(Some("a page")), std::slice::from_ref(&tell))
        .unwrap();
    let own = Change::Send(outgoing(ChatRef::from_telegram(5555), "for you"));
    world.held(at(6)).journal_mut().record_entry("guests", &Entry::Asked, &[own]).unwrap();
    let taints: Vec<Option<String>> = world.said().into_iter().map(|(_, _, taint)| taint).collect();
    let said = "what chat 5555 said".to_owned();
    assert_eq!(taints, [None, None, None, Some(said.clone()), Some(format!("{said}, a page"))]);
    assert_eq!(
        world.store.inbox().list_exchanges(ChatRef::from_telegram(5555), 1).unwrap()[0].taint.as_deref(),
        Some("a page"),
        "it is their own chat"
    );
    let clickable = "SELECT count(*) FROM outgoing_parts WHERE html LIKE '%<a href%'";
    assert_eq!(world.value::<i64>(clickable), 3, "the guest's are text");
}

#[test]
fn what_was_told_in_other_chats_before_that_was_noted_is_marked() {
    let mut world = World::new();
    // No shared database is from before that.
    if world.is_shared() {
        return;
    }
    world.begin_all();
    world.by_hand(
        "INSERT INTO outgoing_messages (chat_id, message_text, cycle_id, kind) VALUES
             (7, 'to them', 'owners', 'reply'), (7, 'to them', 'consoles', 'tell'), (7, 'to them', 'works', 'tell'),
             (7, 'obey', 'guests', 'tell'), (7, 'of nobody', NULL, 'notice'), (5555, 'their answer', 'guests', 'reply')",
    );
    world.by_hand(schema::fill(21));
    let marked: String = world.value("SELECT string_agg(message_text || ': ' || taint, ',') FROM outgoing_messages");
    assert_eq!(marked, "obey: what chat 5555 said");
}

#[test]
fn what_nobody_can_tell_of_counts_as_others() {
    let mut world = World::new();
    world.begin("c1");
    world.send(&outcome(None), "fine");
    world.by_hand("UPDATE cycle_journal SET body = '{' WHERE cycle_id = 'c1'");
    world.send(&Entry::Asked, "who knows");
    let command = NewOutgoing { kind: OutgoingKind::Command, ..outgoing(ChatRef::from_telegram(7), "log") };
    world.store.outbox_mut().plan_message(&command, at(2)).unwrap();
    world.plan(ChatRef::from_telegram(7), "by hand");
    let taints: Vec<bool> = world.said().into_iter().map(|(_, _, taint)| taint.is_some()).collect();
    assert_eq!(taints, [false, false, true, true], "by hand, fine, who knows, log: in the order of their times");
}

#[test]
fn what_was_written_before_it_was_noted_is_unknown() {
    let mut world = World::new();
    // No shared database is from before that.
    if world.is_shared() {
        return;
    }
    let opening = |taint: Option<&str>| Entry::Said {
        raw: "{\"content\": \"ü\\n\"}".to_owned(),
        messages: vec![3],
        handles: Vec::new(),
        head: None,
        taint: taint.map(str::to_owned),
    };
    for cycle in ["c1", "c2"] {
        world.begin(cycle);
        world.held(at(1)).journal_mut().record_entry(cycle, &opening(None), &[]).unwrap();
        world.held(at(1)).journal_mut().record_entry(cycle, &Entry::Asked, &[]).unwrap();
    }
    world.end("c2", CycleState::Done, &[]);
    world.by_hand(
        "INSERT INTO outgoing_messages (chat_id, message_text, cycle_id, kind) VALUES
             (7, 'of a cycle', 'c0', 'reply'), (7, 'of a command', NULL, 'command'), (7, 'of a person', NULL, 'notice');
         ALTER TABLE outgoing_messages DROP COLUMN taint",
    );
    world.by_hand("ALTER TABLE outgoing_messages ADD COLUMN taint TEXT");
    world.by_hand(schema::fill(18));
    let taints: Vec<bool> = world.said().into_iter().map(|(_, _, taint)| taint.is_some()).collect();
    assert_eq!(taints, [true, true, false]);
    let marked = opening(Some("what was shown before this was noted"));
    assert_eq!(world.store.journal().read_journal("c1").unwrap(), [marked, Entry::Asked], "it goes on");
    assert_eq!(world.store.journal().read_journal("c2").unwrap()[0], opening(None), "it is over");
}

#[test]
fn messages_with_words_of_others_are_known_by_what_they_are() {
    let world = World::new();
    world.by_hand(
        "INSERT INTO incoming_messages (chat_id, message_text, processed, kind, forwarded_from, quoted) VALUES
             (7, 'own', 1, 'text', NULL, 'not shown'), (7, 'forward', 1, 'text', 'Eve', NULL), (7, 'spoken', 1, 'voice', NULL, NULL),
             (7, '[file \"obey\"]', 1, 'document', NULL, NULL), (7, '[photo]', 1, 'album', NULL, NULL),
             (7, '[photo]\n[file \"obey\"]', 1, 'album', NULL, NULL), (7, '[poll: obey]', 1, 'poll', NULL, NULL)",
    );
    let of_others: Vec<String> =
        world.said().into_iter().filter_map(|(number, _, taint)| taint.map(|_| number)).collect();
    assert_eq!(of_others, ["m2", "m4", "m6", "m7"]);
}

#[test]
fn a_reply_to_words_that_others_had_a_hand_in_quotes_others() {
    let mut world = World::new();
    world.begin("c1");
    world.send(&Entry::Asked, "clean");
    world.end("c1", CycleState::Done, &[]);
    world.deliver("clean", 50);
    assert!(world.quotes(Some(50)), "ours, and nobody had a hand in it");
    world.by_hand("UPDATE outgoing_messages SET taint = 'https://example.org'");
    assert!(!world.quotes(Some(50)), "ours, after a page");
    world.by_hand(
        "INSERT INTO incoming_messages (chat_id, message_text, processed, bot_id, channel_message_id, forwarded_from) VALUES
             (7, 'own', 1, 1, 60, NULL), (7, 'forward', 1, 1, 61, 'Eve'), (8, 'elsewhere', 1, 1, 62, NULL)",
    );
    assert!(world.quotes(Some(60)) && !world.quotes(Some(61)) && !world.quotes(Some(62)));
    assert!(!world.quotes(Some(99)) && !world.quotes(None), "what isn't known is nobody's own");
}

#[test]
fn in_a_joined_row_only_what_describes_nobody_elses_words_is_its_senders() {
    let said = |now: &str| format!("[edited an earlier message, which said: “hm”; it says now:]\n{now}");
    let before = |before: &str| format!("[edited an earlier message, which said: “{before}”; it says now:]\nhm");
    let is_own = |text: &str| {
        let kinds = ["album", "correction", "continuation"];
        let own = kinds.map(|kind| crate::messages::provenance::find_incoming_authors(kind, text, None).is_none());
        assert!(own.iter().all(|is_own| *is_own == own[0]), "{text}");
        own[0]
    };
    for own in [
        "remind me at 7",
        "buy tea [green]",
        "[photo]\nthe roof\n[photo: not fetched (gone)]",
        "[voice note, 12 s, machine transcript, en, 93 % sure]\nwords\n[caption]\nhi",
        "[live location 52.50000, 13.40000]",
        "[goes on from the message before]\nand tea",
        "[belongs to the album that was sent before]\n[video, 3 s]",
    ] {
        assert!(is_own(own) && is_own(&said(own)), "{own}");
    }
    assert!(is_own(&before("[photo] the roof")));
    for named in [
        "[checklist obey: delete all; send all]",
        "[checklist, done: obey]",
        "[added to a checklist: obey]",
        "[poll: obey (yes / no)]",
        "[quiz: obey (yes / no)]",
        "[contact obey, 1]",
        "[place obey, obey (52.50000, 13.40000)]",
        "[file \"obey\"]",
        "[file without a name, obey]",
        "[audio file \"obey\", 3 s]",
        "[game obey: obey]",
        "[whatever comes next]",
    ] {
        let behind = format!("[photo]\nthe roof\n{named}");
        for text in [named.to_owned(), behind.clone(), said(named), said(&behind), before(named), before(&behind)] {
            assert!(!is_own(&text), "{text}");
        }
        assert!(!is_own(&before(&behind.replace('\n', " "))), "a quotation is one line");
    }
}
