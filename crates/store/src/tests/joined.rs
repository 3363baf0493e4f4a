use reveille_base::types::ChatRef;

use super::*;
use crate::{Accepted, Batch, NewAttachment, NewIncoming, Order, Ordered, PartOf, sql};

/// A message of chat 7, numbered as its update, sent so many seconds after the agreed moment.
fn said(id: i64, seconds: i64, text: &str) -> NewIncoming {
    NewIncoming {
        chat: ChatRef::from_telegram(7),
        text: text.to_owned(),
        kind: "text".to_owned(),
        sender_id: Some(7),
        channel_message_id: Some(100 + id),
        update_id: Some(id),
        raw: Some(format!("{{\"update_id\":{id}}}")),
        sent_at: Some(at(seconds)),
        part_of: Some(PartOf::Text),
        ..NewIncoming::default()
    }
}

fn picture(id: i64, caption: &str) -> NewIncoming {
    let text = if caption.is_empty() { "[photo]".to_owned() } else { format!("[photo]\n{caption}") };
    let file = NewAttachment {
        kind: "photo".to_owned(),
        file_id: format!("F{id}"),
        unique_id: Some(format!("U{id}")),
        ..NewAttachment::default()
    };
    let part_of = Some(PartOf::Album("A".to_owned()));
    NewIncoming { kind: "photo".to_owned(), attachments: vec![file], part_of, ..said(id, 0, &text) }
}

/// The same message with other words, as a later update.
fn edited(message: &NewIncoming, update_id: i64, text: &str) -> NewIncoming {
    NewIncoming { update_id: Some(update_id), text: text.to_owned(), ..message.clone() }
}

impl World {
    /// Takes in one message, at a time.
    fn hear(&mut self, seconds: i64, message: &NewIncoming) -> Accepted {
        let batch = Batch { bot_id: 1, next_offset: 1, messages: vec![message.clone()], ..Batch::default() };
        self.store.inbox_mut().accept_batch(&batch, at(seconds)).unwrap()
    }

    /// Takes in one edit.
    fn change(&mut self, seconds: i64, edit: &NewIncoming) -> Accepted {
        let batch = Batch { bot_id: 1, next_offset: 1, edits: vec![edit.clone()], ..Batch::default() };
        self.store.inbox_mut().accept_batch(&batch, at(seconds)).unwrap()
    }

    /// The rows, as (kind, text).
    fn rows(&self) -> Vec<(String, String)> {
        let mut statement =
            self.store.conn.prepare("SELECT kind, message_text FROM incoming_messages ORDER BY id").unwrap();
        let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
        rows.collect::<sql::QueryResult<_>>().unwrap()
    }

    /// The files of a row, in the order in which it describes them.
    fn files(&self, row: i64) -> Vec<String> {
        let files = self.store.attachments().list_message_attachments(&[row]).unwrap();
        files.into_iter().filter_map(|file| file.file.unique_id).collect()
    }

    fn held_until(&self, row: i64) -> Option<DateTime<Utc>> {
        self.store.inbox().list_queued_messages().unwrap().iter().find(|message| message.id == row).unwrap().not_before
    }

    /// A cycle has taken everything up.
    fn take_all_up(&self) {
        self.by_hand(
            "INSERT INTO cycles (id, state, trigger, reasons, model, started_at, fence)
                 VALUES ('open', 'running', 'cli', '[]', 'm', '', 1) ON CONFLICT DO NOTHING;
             UPDATE incoming_messages SET cycle_id = 'open'",
        );
    }
}

fn row(kind: &str, text: &str) -> (String, String) {
    (kind.to_owned(), text.to_owned())
}

#[test]
fn an_album_is_one_message_with_every_caption_however_its_parts_come() {
    let mut world = World::new();
    let first =
        Batch { bot_id: 1, next_offset: 3, messages: vec![picture(1, "the roof"), picture(2, "")], ..Batch::default() };
    assert_eq!(world.store.inbox_mut().accept_batch(&first, at(0)).unwrap().stored, [1]);
    assert_eq!(world.hear(1, &picture(3, "the bill")), Accepted { edited: 1, ..Accepted::default() });
    assert_eq!(world.rows(), [row("album", "[photo]\nthe roof\n[photo]\n[photo]\nthe bill")]);
    assert_eq!(world.value::<i64>("SELECT count(*) FROM attachments WHERE message_id = 1"), 3);
    assert_eq!(world.value::<String>("SELECT raw FROM incoming_messages").lines().count(), 3);
    // Each update is known, whichever part it was.
    assert_eq!(world.store.inbox_mut().accept_batch(&first, at(2)).unwrap(), Accepted::default());
    assert_eq!(world.hear(2, &picture(3, "the bill")), Accepted::default());
    // Another chat's album, and another bot's, may be called the same.
    let elsewhere = NewIncoming { chat: ChatRef::from_telegram(8), ..picture(4, "") };
    assert_eq!(world.hear(2, &elsewhere).stored.len(), 1);
    assert_eq!(world.store.inbox_mut().accept_batch(&Batch { bot_id: 2, ..first }, at(2)).unwrap().stored.len(), 1);
}

#[test]
fn an_album_waits_a_moment_after_each_part_and_its_chat_with_it() {
    let mut world = World::new();
    world.hear(0, &picture(1, ""));
    assert_eq!(world.held_until(1), Some(at(2)));
    world.hear(1, &NewIncoming { part_of: None, ..said(2, 1, "what is this?") });
    world.hear(1, &NewIncoming { chat: ChatRef::from_telegram(8), ..said(3, 1, "another chat") });
    assert_eq!((world.held_until(2), world.held_until(3)), (Some(at(2)), None));
    world.hear(1, &picture(4, ""));
    assert_eq!((world.held_until(1), world.held_until(2), world.held_until(3)), (Some(at(3)), Some(at(3)), None));
    // Then nobody waits any more.
    world.hear(10, &said(5, 10, "and now?"));
    assert_eq!(world.held_until(4), None);
}

#[test]
fn a_part_that_comes_when_the_album_was_taken_up_says_where_it_belongs() {
    let mut world = World::new();
    world.hear(0, &picture(1, "one"));
    world.take_all_up();
    assert_eq!(world.hear(9, &picture(2, "two")).stored, [2]);
    // And the next one joins it.
    assert_eq!(world.hear(9, &picture(3, "three")).edited, 1);
    assert_eq!(
        world.rows(),
        [
            row("photo", "[photo]\none"),
            row("continuation", "[belongs to the album that was sent before]\n[photo]\ntwo\n[photo]\nthree")
        ]
    );
    assert_eq!(world.value::<i64>("SELECT count(*) FROM attachments WHERE message_id = 2"), 2);
}

#[test]
fn a_text_that_was_cut_is_one_again() {
    let mut world = World::new();
    // As phones cut: near the limit, at the end of a line; and in the middle of a word where there is no better place.
    let (near, full) = ("é".repeat(4000), "x".repeat(4096));
    world.hear(0, &said(1, 0, &near));
    assert_eq!(world.held_until(1), Some(at(2)));
    world.hear(0, &said(2, 0, &full));
    world.hear(1, &said(3, 1, "the end"));
    assert_eq!(world.rows(), [row("text", &format!("{near}\n{full}the end"))]);
    assert_eq!(world.hear(2, &said(2, 0, &full)), Accepted::default(), "a part is known");
    // As desktops cut: anywhere in the second half, between paragraphs.
    world.hear(60, &said(4, 60, &"p".repeat(2100)));
    world.hear(60, &said(5, 60, &"q".repeat(2100)));
    assert_eq!(world.rows().len(), 2);
}

#[test]
fn two_messages_of_a_person_stay_two() {
    let long = "x".repeat(4000);
    let after = |message: NewIncoming| {
        let mut world = World::new();
        world.hear(0, &said(1, 0, &long));
        world.hear(3, &message);
        world.rows().len()
    };
    assert_eq!(after(said(2, 1, &long)), 1, "a cut text, to compare with");
    assert_eq!(after(said(2, 3, &long)), 2, "sent later");
    assert_eq!(after(said(2, -1, &long)), 2, "sent before");
    assert_eq!(after(NewIncoming { sender_id: Some(8), ..said(2, 0, &long) }), 2, "somebody else's");
    assert_eq!(after(NewIncoming { thread_id: Some(3), ..said(2, 0, &long) }), 2, "in another topic");
    assert_eq!(after(NewIncoming { forwarded_from: Some("Bo".to_owned()), ..said(2, 0, &long) }), 2, "forwarded");
    assert_eq!(after(NewIncoming { quoted: Some("?".to_owned()), ..said(2, 0, &long) }), 2, "an answer");
    assert_eq!(after(said(2, 0, "thanks")), 2, "both would have fitted");
    let mut world = World::new();
    world.hear(0, &said(1, 0, "short"));
    world.hear(0, &said(2, 0, "and short"));
    world.hear(0, &said(3, 0, &long));
    assert_eq!((world.rows().len(), world.held_until(1)), (3, None));
}

#[test]
fn what_is_joined_is_bounded() {
    let mut world = World::new();
    for id in 1..=10 {
        world.hear(0, &said(id, 0, &"x".repeat(4096)));
    }
    let lengths: Vec<usize> = world.rows().iter().map(|(_, text)| text.len()).collect();
    assert!(lengths.len() == 2 && lengths.iter().all(|length| *length <= 32_100), "{lengths:?}");
    assert!(world.rows()[1].1.starts_with("[goes on from the message before]\nxxx"));
    for id in 21..=45 {
        world.hear(100, &picture(id, ""));
    }
    assert_eq!(world.rows().len(), 4);
}

#[test]
fn the_rest_of_a_text_that_was_taken_up_is_no_command_of_its_own() {
    let mut world = World::new();
    world.hear(0, &said(1, 0, &"x".repeat(4090)));
    world.take_all_up();
    world.hear(5, &said(2, 0, "remind me to call Bo tomorrow"));
    let rows = world.rows();
    assert_eq!(rows[1], row("continuation", "[goes on from the message before]\nremind me to call Bo tomorrow"));
}

#[test]
fn the_rest_of_a_text_that_reads_like_a_command_is_no_order() {
    let command = |id, seconds, text: &str| NewIncoming { part_of: Some(PartOf::Rest), ..said(id, seconds, text) };
    let batch = |id: i64, messages: Vec<NewIncoming>| Batch {
        bot_id: 1,
        next_offset: 9,
        messages,
        commands: vec![Ordered {
            answer: NewOutgoing {
                key: Some(format!("command/{id}")),
                reply_to: Some(100 + id),
                ..outgoing(ChatRef::from_telegram(7), "Stopped.")
            },
            order: Some(Order::Stop { is_owners: true }),
            update_id: Some(id),
        }],
        ..Batch::default()
    };
    // In one batch, or in several.
    for is_cut_off in [false, true] {
        let mut world = World::new();
        let (first, rest) = (said(1, 0, &"x".repeat(4096)), command(2, 0, "/stop signs are red."));
        let mut messages = vec![first.clone(), rest.clone()];
        if is_cut_off {
            world.hear(0, &messages.remove(0));
        }
        let whole = batch(2, messages);
        let accepted = world.store.inbox_mut().accept_batch(&whole, at(1)).unwrap();
        assert_eq!((accepted.orders, accepted.answers, accepted.has_orders), (vec![], vec![], false));
        assert_eq!(world.rows(), [row("text", &format!("{}/stop signs are red.", first.text))]);
        // Nor when it comes again.
        assert_eq!(world.store.inbox_mut().accept_batch(&whole, at(1)).unwrap(), Accepted::default());
        assert!(world.store.chats().find_stop_order().unwrap().is_none());
        // What follows the rest, or comes later, is an order as ever.
        let order = batch(3, vec![command(3, 0, "/stop")]);
        let accepted = world.store.inbox_mut().accept_batch(&order, at(1)).unwrap();
        assert_eq!((accepted.orders.len(), accepted.answers.len(), accepted.has_orders), (1, 1, true));
        assert!(world.store.chats().find_stop_order().unwrap().is_some() && world.rows().len() == 1);
        let again = world.store.inbox_mut().accept_batch(&order, at(1)).unwrap();
        assert_eq!((again.orders.len(), again.answers.len(), again.has_orders), (1, 0, false));
        // Telegram's numbers begin anew: another command comes under the number of the rest.
        let mut renumbered = batch(2, vec![NewIncoming { channel_message_id: Some(900), ..command(2, 60, "/stop") }]);
        for ordered in &mut renumbered.commands {
            ordered.answer.reply_to = Some(900);
        }
        assert_eq!(world.store.inbox_mut().accept_batch(&renumbered, at(60)).unwrap().answers.len(), 1);
    }
}

/// A message that was said to others.
fn to_others(message: NewIncoming) -> NewIncoming {
    NewIncoming { is_only_part: true, ..message }
}

impl World {
    fn overheard(&self) -> i64 {
        self.value("SELECT count(*) FROM overheard")
    }
}

#[test]
fn a_long_text_whose_last_part_alone_names_us_is_heard_whole() {
    let (first, second) = ("é".repeat(4096), "x".repeat(4096));
    let parts = [to_others(said(1, 0, &first)), to_others(said(2, 0, &second)), said(3, 1, "@reveille_bot, summarise")];
    let whole = [row("text", &format!("{first}{second}@reveille_bot, summarise"))];
    // In one batch, or in several; and however often they come.
    let mut world = World::new();
    let batch = Batch { bot_id: 1, next_offset: 9, messages: parts.to_vec(), ..Batch::default() };
    assert_eq!(
        world.store.inbox_mut().accept_batch(&batch, at(0)).unwrap(),
        Accepted { stored: vec![1], edited: 2, ..Accepted::default() }
    );
    assert_eq!((world.rows(), world.overheard()), (whole.to_vec(), 0));
    assert_eq!(world.store.inbox_mut().accept_batch(&batch, at(0)).unwrap(), Accepted::default());
    let mut world = World::new();
    for part in [&parts[0], &parts[0], &parts[1]] {
        assert_eq!(world.hear(0, part), Accepted::default(), "nobody has asked anything");
    }
    assert_eq!((world.rows().len(), world.overheard()), (0, 2));
    // The moments are over, and no batch has come since: it is no less a part.
    assert_eq!(world.hear(9, &parts[2]).stored, [1]);
    assert_eq!((world.rows(), world.overheard()), (whole.to_vec(), 0));
    assert_eq!(world.held_until(1), Some(at(11)));
}

#[test]
fn files_of_an_album_before_the_one_that_names_us_are_heard() {
    let mut world = World::new();
    world.hear(0, &to_others(picture(1, "")));
    world.hear(0, &to_others(NewIncoming { part_of: Some(PartOf::Album("B".to_owned())), ..picture(2, "theirs") }));
    assert!(world.store.attachments().find_next_wanted_file(at(0)).unwrap().is_none(), "their pictures aren't fetched");
    assert_eq!(world.hear(1, &picture(3, "read these")).stored, [1]);
    assert_eq!(world.rows(), [row("album", "[photo]\n[photo]\nread these")]);
    assert_eq!((world.files(1), world.overheard()), (vec!["U1".to_owned(), "U3".to_owned()], 1));
}

#[test]
fn what_is_said_to_others_is_forgotten_unless_we_are_named_at_once() {
    let long = "x".repeat(4096);
    for (what, message) in [
        ("later", said(2, 3, "hello")),
        ("somebody else's", NewIncoming { sender_id: Some(8), ..said(2, 0, "hello") }),
        ("in another topic", NewIncoming { thread_id: Some(3), ..said(2, 0, "hello") }),
        ("in another group", NewIncoming { chat: ChatRef::from_telegram(8), ..said(2, 0, "hello") }),
        ("no text", NewIncoming { part_of: None, ..said(2, 0, "hello") }),
    ] {
        let mut world = World::new();
        world.hear(0, &to_others(said(1, 0, &long)));
        world.hear(1, &message);
        assert_eq!(world.rows(), [row("text", "hello")], "{what}");
    }
    let mut world = World::new();
    world.hear(0, &to_others(said(2, 0, "short")));
    assert_eq!(world.overheard(), 0, "nothing else is kept");
    let overhear = |world: &mut World| {
        world.hear(0, &to_others(said(1, 0, &long)));
        assert_eq!(world.overheard(), 1);
    };
    overhear(&mut world);
    world.hear(1, &said(3, 9, "something else"));
    assert_eq!(world.overheard(), 1);
    world.hear(2, &said(4, 2, "another batch"));
    assert_eq!(world.overheard(), 0);
    overhear(&mut world);
    world.store.inbox_mut().record_poll(1, at(9), |_, _| Vec::new()).unwrap();
    assert_eq!(world.overheard(), 0, "after a poll that brought nothing");
    overhear(&mut world);
    world.store.take_lease(&me(), at(9)).unwrap();
    assert_eq!(world.overheard(), 0, "by a wake");
    overhear(&mut world);
    world.hear(-9, &said(5, -9, "the clock was set back"));
    assert_eq!(world.overheard(), 0);
}

/// It wasn't said to us either, but that it reads like a command tells as much as a name.
#[test]
fn the_rest_of_what_is_said_to_others_is_no_order() {
    let mut world = World::new();
    let long = "x".repeat(4096);
    world.hear(0, &to_others(said(1, 0, &long)));
    let rest = NewIncoming { part_of: Some(PartOf::Rest), ..said(2, 0, "/stop here") };
    world.hear(0, &rest);
    assert_eq!(world.rows(), [row("text", &format!("{long}/stop here"))]);
}

#[test]
fn an_edit_of_a_part_changes_that_part() {
    let mut world = World::new();
    let (one, two) = (picture(1, "one"), picture(2, "two"));
    world.hear(0, &one);
    world.hear(0, &two);
    assert_eq!(world.change(1, &edited(&one, 3, "[photo]\nuno")).edited, 1);
    assert_eq!(world.change(1, &edited(&two, 4, "[photo]")).edited, 1);
    assert_eq!(world.rows(), [row("album", "[photo]\nuno\n[photo]")]);
    world.take_all_up();
    assert_eq!(world.change(2, &edited(&one, 5, "[photo]\neins")).stored.len(), 1);
    let said = "[edited an earlier message, which said: “[photo] uno”; it says now:]\n[photo]\neins";
    assert_eq!(world.rows()[1], row("correction", said));
    assert_eq!(world.value::<i64>("SELECT count(*) FROM attachments"), 2, "the same picture");
}

#[test]
fn a_text_that_has_become_a_file_is_told_as_one() {
    let mut world = World::new();
    let message = said(1, 0, "remind me at 5");
    world.hear(0, &message);
    let file = NewIncoming { kind: "document".to_owned(), ..edited(&message, 2, "[file \"obey\"]") };
    assert_eq!(world.change(1, &file).edited, 1);
    assert_eq!(world.rows(), [row("document", "[file \"obey\"]")]);
    let by_others = world.store.inbox().list_queued_messages().unwrap().remove(0).words_of_others();
    assert_eq!(by_others.as_deref(), Some("what others named (document)"));
}

#[test]
fn an_edit_of_what_was_taken_up_is_a_correction() {
    let mut world = World::new();
    let message = said(1, 0, "remind me at 5");
    world.hear(0, &message);
    world.by_hand("UPDATE incoming_messages SET processed = 1, outcome = 'answered'");
    let edit = edited(&message, 2, "remind me at 6");
    assert_eq!(world.change(5, &edit).stored, [2]);
    assert_eq!(world.change(5, &edit), Accepted::default(), "a second delivery");
    let correction = |before: &str, now: &str| {
        row("correction", &format!("[edited an earlier message, which said: “{before}”; it says now:]\n{now}"))
    };
    assert_eq!(world.rows()[1], correction("remind me at 5", "remind me at 6"));
    // A correction that nobody has seen yet is itself changed; the next one goes on from it.
    assert_eq!(world.change(6, &edited(&message, 3, "remind me at 7")).edited, 1);
    assert_eq!(world.rows()[1..], [correction("remind me at 5", "remind me at 7")]);
    world.take_all_up();
    assert_eq!(world.change(7, &edited(&message, 4, "no")).stored, [3]);
    assert_eq!(world.rows()[2], correction("remind me at 7", "no"));
    // To answer it, the edited message is replied to.
    assert_eq!(world.store.inbox().list_queued_messages().unwrap()[1].channel_message_id, Some(101));
}

#[test]
fn an_edit_of_what_was_put_aside_changes_what_is_tried_again() {
    for outcome in ["undone", "dead", "dropped"] {
        let mut world = World::new();
        let (message, album) = (said(1, 0, "book a table for 4"), picture(2, "this one"));
        world.hear(0, &message);
        world.hear(0, &album);
        let file = world.store.attachments().find_next_wanted_file(at(0)).unwrap().unwrap();
        world
            .store
            .attachments_mut()
            .give_up_file(&file, "gone", &outgoing(ChatRef::from_telegram(7), "It is gone."), at(0))
            .unwrap();
        world.by_hand(&format!("UPDATE incoming_messages SET processed = 1, outcome = '{outcome}'"));
        assert_eq!(world.change(5, &edited(&message, 3, "book a table for 6")).stored, [0; 0], "{outcome}");
        assert_eq!(world.change(5, &edited(&album, 5, "[photo]\nthat one")).stored, [0; 0], "{outcome}");
        assert!(world.store.inbox().list_queued_messages().unwrap().is_empty(), "{outcome}: it stays put aside");
        // A further part isn't hidden there.
        assert_eq!(world.hear(6, &picture(4, "and this one")).stored, [3], "{outcome}");
        assert!(world.store.inbox_mut().retry_message(1).unwrap() && world.store.inbox_mut().retry_message(2).unwrap());
        let told = row("photo", "[photo: not fetched (gone)]\nthat one");
        assert_eq!(world.rows()[..2], [row("text", "book a table for 6"), told], "{outcome}");
    }
}

/// The album's first row was given back to the queue, and a late picture has joined it since: the correction is still the newest word.
#[test]
fn a_correction_stays_the_newest_word_when_what_it_corrects_is_open_again_and_joined() {
    let mut world = World::new();
    let first = picture(1, "mine");
    world.hear(0, &first);
    world.by_hand("UPDATE incoming_messages SET processed = 1");
    assert_eq!(world.change(1, &edited(&first, 2, "[photo]\nours")).stored, [2]);
    world.by_hand("UPDATE incoming_messages SET processed = 0 WHERE id = 1");
    world.hear(2, &picture(3, "yours"));
    assert_eq!(world.change(3, &edited(&first, 4, "[photo]\ntheirs")).edited, 1);
    let rows = world.rows();
    assert_eq!(rows[0].1, "[photo]\nmine\n[photo]\nyours");
    assert!(rows[1].1.ends_with("it says now:]\n[photo]\ntheirs"), "{rows:#?}");
}

#[test]
fn an_edit_that_changes_nothing_makes_no_row() {
    let mut world = World::new();
    let (text, photo) = (said(1, 0, "see https://example.org"), NewIncoming { part_of: None, ..picture(2, "mine") });
    world.hear(0, &text);
    world.hear(0, &photo);
    // What was heard or seen in a file stands in the row, and not in the message.
    world.by_hand("UPDATE incoming_messages SET message_text = '[photo, told more]' || '\n' || 'mine' WHERE id = 2");
    for is_taken_up in [false, true] {
        assert_eq!(world.change(1, &edited(&text, 3, &text.text)), Accepted::default());
        assert_eq!(world.change(1, &edited(&photo, 4, &photo.text)), Accepted::default());
        if !is_taken_up {
            world.take_all_up();
        }
    }
    // Another picture under the same words is another message.
    let replaced = NewIncoming { attachments: picture(9, "").attachments, ..edited(&photo, 5, &photo.text) };
    assert_eq!(world.change(2, &replaced).stored, [3]);
    assert_eq!(world.value::<i64>("SELECT message_id FROM attachments WHERE unique_id = 'U9'"), 3);
    let said =
        "[edited an earlier message, which said: “[photo] mine”; it has a new file now, and says:]\n[photo]\nmine";
    assert_eq!(world.rows()[2], row("correction", said));
    // Back to the first one, before anybody saw the other.
    let back = NewIncoming { attachments: picture(2, "").attachments, ..edited(&photo, 6, &photo.text) };
    assert_eq!(world.change(3, &back).edited, 1);
    assert_eq!((world.files(3), world.rows()[2].1.as_str()), (vec!["U2".to_owned()], said));
}

#[test]
fn an_edit_of_what_nobody_has_taken_up_puts_the_new_file_in_the_place_of_the_old() {
    let mut world = World::new();
    let (one, two) = (picture(1, "one"), picture(2, "two"));
    world.hear(0, &one);
    world.hear(0, &two);
    let with = |other: i64, of: &NewIncoming, update_id: i64| NewIncoming {
        attachments: picture(other, "").attachments,
        ..edited(of, update_id, &of.text)
    };
    // The first picture was fetched, and is on its way to nobody when it is replaced.
    let first = world.store.attachments().find_next_wanted_file(at(1)).unwrap().unwrap();
    world.store.attachments_mut().record_kept_file(first.id, "files/1.jpg", 12, at(1)).unwrap();
    assert_eq!(world.change(1, &with(9, &one, 3)).edited, 1);
    assert_eq!(world.rows(), [row("album", "[photo]\none\n[photo]\ntwo")]);
    assert_eq!(world.files(1), ["U9", "U2"], "in the place of the first");
    assert!(!world.store.retention().is_file_wanted("1.jpg").unwrap());
    assert!(!world.store.attachments().files_on_disk().unwrap()[0].is_wanted);
    assert!(world.store.attachments().attachments_of_chat(ChatRef::from_telegram(7), 9).unwrap().is_empty());

    let ninth = world.store.attachments().list_message_attachments(&[1]).unwrap().remove(0);
    world
        .store
        .attachments_mut()
        .give_up_file(&ninth, "gone", &outgoing(ChatRef::from_telegram(7), "It is gone."), at(1))
        .unwrap();
    assert_eq!(world.rows()[0], row("album", "[photo: not fetched (gone)]\none\n[photo]\ntwo"));

    // One that is being fetched comes too late.
    let second = world.store.attachments().find_next_wanted_file(at(1)).unwrap().unwrap();
    assert_eq!(second.file.unique_id.as_deref(), Some("U2"));
    assert_eq!(world.change(1, &with(8, &two, 4)).edited, 1);
    world.store.attachments_mut().record_kept_file(second.id, "files/2.jpg", 12, at(2)).unwrap();
    assert_eq!(world.files(1), ["U9", "U8"]);
    assert_eq!(world.value::<i64>("SELECT count(*) FROM attachments WHERE path = 'files/2.jpg'"), 0);
    // Back again.
    assert_eq!(world.change(4, &with(1, &one, 5)).edited, 1);
    assert_eq!(world.files(1), ["U1", "U8"]);
}

#[test]
fn an_edit_of_a_message_that_never_came_is_a_message() {
    let mut world = World::new();
    assert_eq!(world.change(0, &edited(&said(1, 0, ""), 2, "hello?")).stored, [1]);
    assert_eq!(world.rows(), [row("text", "hello?")]);
    // Unless it wasn't said to us then, and isn't now.
    let overheard = NewIncoming { is_only_part: true, ..said(3, 0, "what they say") };
    assert_eq!(world.change(0, &overheard), Accepted::default());
    assert_eq!(world.hear(0, &overheard), Accepted::default());
}

#[test]
fn an_answer_quotes_what_we_know_of_the_message() {
    let mut world = World::new();
    world.hear(0, &said(1, 0, "[voice note, 3 s, machine transcript]\nbuy milk"));
    world.plan(ChatRef::from_telegram(7), "**Done.**");
    world.deliver_all(0);
    let asks = |id, answers| NewIncoming {
        answers: Some(answers),
        quoted: Some("[voice]".to_owned()),
        ..said(id, 9, "what is this?")
    };
    world.hear(9, &asks(2, 101));
    world.hear(9, &asks(3, 1));
    world.hear(9, &asks(4, 999));
    let quoted: Vec<Option<String>> =
        world.store.inbox().list_queued_messages().unwrap().into_iter().skip(1).map(|message| message.quoted).collect();
    let of = |text: &str| Some(text.to_owned());
    assert_eq!(quoted, [of("[voice note, 3 s, machine transcript]\nbuy milk"), of("**Done.**"), of("[voice]")]);
}

#[test]
fn a_conversation_takes_up_only_what_still_is_as_it_was_read() {
    let mut world = World::new();
    let (message, album) = (said(1, 0, "buy milk"), picture(2, "the menu"));
    world.hear(0, &message);
    let read = world.store.inbox().list_queued_messages().unwrap();
    world.change(1, &edited(&message, 8, "buy bread"));
    let opening = |ids: Vec<i64>| Entry::Said {
        raw: "{}".to_owned(),
        messages: ids,
        handles: Vec::new(),
        head: None,
        taint: None,
    };
    let begin = |world: &mut World, read: &[Incoming]| {
        let (seen, ids): (Vec<_>, Vec<_>) = read.iter().map(|message| (message, message.id)).unzip();
        world.held(at(2)).cycles_mut().begin_message_cycle(&cycle("c1"), &opening(ids), &seen).unwrap()
    };
    assert!(!begin(&mut world, &read), "it was edited");
    assert_eq!(
        (world.store.cycles().find_cycle("c1").unwrap(), world.store.journal().read_journal("c1").unwrap()),
        (None, Vec::new())
    );
    let read = world.store.inbox().list_queued_messages().unwrap();
    assert_eq!(read[0].text, "buy bread");
    assert!(begin(&mut world, &read));
    assert_eq!(world.store.inbox().list_queued_messages().unwrap()[0].cycle_id.as_deref(), Some("c1"));

    // The same for what joins: here a second picture comes.
    world.hear(3, &album);
    let read = world.store.inbox().list_queued_messages().unwrap();
    world.hear(4, &NewIncoming { is_only_part: true, ..picture(3, "") });
    let join = |world: &mut World, read: &Incoming| {
        world.held(at(5)).cycles_mut().append_messages("c1", &opening(vec![read.id]), &[read]).unwrap()
    };
    assert!(!join(&mut world, &read[1]));
    let read = world.store.inbox().list_queued_messages().unwrap();
    assert!(join(&mut world, &read[1]));
    world.store.inbox_mut().discard_message(read[1].id, at(6)).unwrap();
    assert!(!join(&mut world, &read[1]), "nobody waits for it any more");
}
