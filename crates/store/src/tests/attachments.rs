//! The way of a file: what its message waits for and says, what is tried when, and what an edit, a restart or a second try
//! doesn't undo.

use reveille_base::types::ChatRef;
use reveille_media::Transcript;

use super::*;
use crate::{Batch, FileState, NO_SPEECH_MODEL, NewAttachment, NewIncoming};

fn file(kind: &str) -> NewAttachment {
    NewAttachment { kind: kind.to_owned(), file_id: format!("id-{kind}"), ..NewAttachment::default() }
}

fn words(text: &str) -> Transcript {
    Transcript { text: text.to_owned(), language: Some("en".to_owned()), confidence: 0.9, ..Transcript::default() }
}

impl World {
    /// A message in chat 7 with files of these kinds.
    fn receive_files(&mut self, update_id: i64, text: &str, kinds: &[&str]) -> i64 {
        self.receive_files_in(ChatRef::from_telegram(7), update_id, text, kinds)
    }

    fn receive_files_in(&mut self, chat: ChatRef, update_id: i64, text: &str, kinds: &[&str]) -> i64 {
        let message = NewIncoming {
            chat,
            text: text.to_owned(),
            kind: kinds[0].to_owned(),
            channel_message_id: Some(update_id),
            update_id: Some(update_id),
            attachments: kinds.iter().map(|kind| file(kind)).collect(),
            ..NewIncoming::default()
        };
        let batch = Batch { bot_id: 99, next_offset: update_id + 1, messages: vec![message], ..Batch::default() };
        self.store.inbox_mut().accept_batch(&batch, at(0)).unwrap().stored[0]
    }

    /// The one file of a message.
    fn file_of(&self, message: i64) -> Attachment {
        self.store.attachments().list_message_attachments(&[message]).unwrap().remove(0)
    }

    /// The text of the oldest queued message, and whether it waits for its files.
    fn first(&self) -> (String, bool) {
        let message = self.store.inbox().list_queued_messages().unwrap().remove(0);
        (message.text, message.awaits_files)
    }

    fn notices(&self) -> i64 {
        self.value("SELECT count(*) FROM outgoing_messages")
    }
}

#[test]
fn a_chat_that_sends_many_files_has_no_more_turns_than_the_others() {
    let mut world = World::new();
    for n in 1..=30 {
        world.receive_files(n, "[voice]", &["voice"]);
    }
    world.receive_files_in(ChatRef::from_telegram(8), 31, "[voice]", &["voice"]);
    world.receive_files_in(ChatRef::from_telegram(8), 32, "[voice]", &["voice"]);
    world.receive_files_in(ChatRef::from_telegram(9), 33, "[voice]", &["voice"]);
    let mut fetched = Vec::new();
    for n in 0..7 {
        let next = world.store.attachments().find_next_wanted_file(at(n)).unwrap().unwrap();
        fetched.push(next.chat);
        world.store.attachments_mut().record_kept_file(next.id, "files/1.ogg", 12, at(n)).unwrap();
    }
    assert_eq!(fetched, [7, 8, 9, 7, 8, 7, 7].map(ChatRef::from_telegram));
    let mut heard = Vec::new();
    for n in 7..14 {
        let next = world.store.attachments().find_next_recording(at(n)).unwrap().unwrap();
        heard.push(next.chat);
        world.store.attachments_mut().save_transcript(&next, &words("tea"), at(n)).unwrap();
    }
    assert_eq!(heard, [7, 8, 9, 7, 8, 7, 7].map(ChatRef::from_telegram));
}

#[test]
fn a_photo_is_waited_for_until_it_is_kept() {
    let mut world = World::new();
    let message = world.receive_files(1, "[photo]", &["photo"]);
    assert!(world.first().1);
    let wanted = world.store.attachments().find_next_wanted_file(at(0)).unwrap().unwrap();
    assert_eq!((wanted.message_id, wanted.file.file_id.as_str()), (message, "id-photo"));
    world.store.attachments_mut().record_kept_file(wanted.id, "files/1.jpg", 12, at(1)).unwrap();
    assert_eq!(world.first(), ("[photo]".to_owned(), false));
    assert_eq!(world.store.attachments().find_next_wanted_file(at(9)).unwrap(), None);
    assert_eq!(world.store.attachments().find_next_recording(at(9)).unwrap(), None, "nobody listens to a photo");
    assert_eq!(
        world.store.attachments().attachments_of_chat(ChatRef::from_telegram(7), 9).unwrap()[0].path.as_deref(),
        Some("files/1.jpg")
    );
    assert!(world.store.attachments().attachments_of_chat(ChatRef::from_telegram(8), 9).unwrap().is_empty());
}

#[test]
fn a_voice_note_is_waited_for_until_it_is_heard_and_an_edit_keeps_its_words() {
    let mut world = World::new();
    let message = world.receive_files(1, "[voice note, 3 s]\nlisten", &["voice"]);
    let note = world.file_of(message);
    world.store.attachments_mut().record_kept_file(note.id, "voice/1.ogg", 12, at(1)).unwrap();
    assert!(world.first().1, "kept is not heard");
    assert_eq!(world.store.attachments_mut().begin_transcription(note.id, 5, at(30), at(1)).unwrap(), 1);
    world.store.attachments_mut().save_transcript(&note, &words("hello there"), at(2)).unwrap();
    let heard = "[voice note, 3 s, machine transcript, en, 90 % sure]\nhello there\n[caption]\nlisten";
    assert_eq!(world.first(), (heard.to_owned(), false));
    // A second listener that comes late changes nothing.
    world.store.attachments_mut().save_transcript(&note, &words("something else"), at(3)).unwrap();
    world
        .store
        .attachments_mut()
        .give_up_file(&note, "late", &outgoing(ChatRef::from_telegram(7), "late"), at(3))
        .unwrap();
    assert_eq!((world.first().0.as_str(), world.notices()), (heard, 0));
    let edit = NewIncoming {
        chat: ChatRef::from_telegram(7),
        channel_message_id: Some(1),
        text: "[voice note, 3 s]\nhear".to_owned(),
        ..NewIncoming::default()
    };
    world
        .store
        .inbox_mut()
        .accept_batch(&Batch { bot_id: 99, next_offset: 3, edits: vec![edit], ..Batch::default() }, at(4))
        .unwrap();
    assert_eq!(world.first().0, heard.replace("listen", "hear"));
}

fn failed(why: &str, until: i64) -> FailedFetch<'_> {
    FailedFetch { why, not_before: at(until), delays_all: false, counts: false }
}

#[test]
fn a_late_file_waits_as_long_as_it_was_told_and_a_rate_limit_is_for_all() {
    let mut world = World::new();
    let first = world.receive_files(1, "[photo]", &["photo"]);
    let second = world.receive_files(2, "[photo]", &["photo"]);
    let id = world.file_of(first).id;
    world.store.attachments_mut().record_failed_fetch(id, &failed("no network", 30), at(0)).unwrap();
    assert_eq!(world.store.attachments().find_next_wanted_file(at(1)).unwrap().unwrap().message_id, second);
    let id = world.file_of(second).id;
    world
        .store
        .attachments_mut()
        .record_failed_fetch(id, &FailedFetch { delays_all: true, ..failed("slow down", 100) }, at(1))
        .unwrap();
    assert_eq!(world.store.attachments().find_next_wanted_file(at(99)).unwrap(), None);
    assert_eq!(world.store.attachments().find_file_step_time(at(1)).unwrap(), Some(at(100)));
    assert_eq!(world.store.attachments().find_next_wanted_file(at(100)).unwrap().unwrap().attempts, 1);
    // What a wrong clock wrote isn't sat out.
    assert!(world.store.attachments().find_next_wanted_file(at(-30 * 86_400)).unwrap().is_some());
}

#[test]
fn a_file_that_will_not_come_is_told_of_once_and_holds_nothing_up() {
    let mut world = World::new();
    let message = world.receive_files(1, "[photo]\nlook", &["photo"]);
    let photo = world.file_of(message);
    for _ in 0..2 {
        world
            .store
            .attachments_mut()
            .give_up_file(&photo, "gone", &outgoing(ChatRef::from_telegram(7), "It is gone."), at(1))
            .unwrap();
    }
    assert_eq!(world.first(), ("[photo: not fetched (gone)]\nlook".to_owned(), false));
    assert_eq!((world.notices(), world.file_of(message).state), (1, FileState::Failed));
}

#[test]
fn nothing_to_listen_with_is_told_once_a_chat_and_made_good_later() {
    let mut world = World::new();
    let kept = |world: &mut World, n: i64| {
        let message = world.receive_files(n, "[voice note, 3 s]", &["voice"]);
        let note = world.file_of(message);
        world.store.attachments_mut().record_kept_file(note.id, "voice/1.ogg", 12, at(1)).unwrap();
        note
    };
    let (first, second) = (kept(&mut world, 1), kept(&mut world, 2));
    world
        .store
        .attachments_mut()
        .give_up_without_speech_model(&first, None, &outgoing(ChatRef::from_telegram(7), "No model."), at(1))
        .unwrap();
    world
        .store
        .attachments_mut()
        .give_up_without_speech_model(
            &second,
            Some("a wrong path"),
            &outgoing(ChatRef::from_telegram(7), "No model."),
            at(1),
        )
        .unwrap();
    assert_eq!(world.notices(), 1);
    assert_eq!(world.first(), (format!("[voice note, 3 s: not transcribed ({NO_SPEECH_MODEL})]"), false));

    // The first was answered meanwhile, the second kept for a better model.
    world.by_hand(
        "UPDATE incoming_messages SET processed = 1 WHERE id = 1; UPDATE incoming_messages SET held_for = 'offline'",
    );
    assert_eq!(world.store.attachments_mut().retry_unheard_recordings(at(2)).unwrap(), 1);
    assert_eq!(world.store.attachments_mut().retry_unheard_recordings(at(2)).unwrap(), 0);
    let due = world.store.attachments().find_next_recording(at(2)).unwrap().unwrap();
    assert_eq!(due.id, second.id);
    world.store.attachments_mut().save_transcript(&due, &words("at last"), at(3)).unwrap();
    assert_eq!(world.first().0, "[voice note, 3 s, machine transcript, en, 90 % sure]\nat last");
    assert_eq!(world.value::<Option<String>>("SELECT held_for FROM incoming_messages WHERE id = 2"), None);
    let third = kept(&mut world, 3);
    world
        .store
        .attachments_mut()
        .give_up_without_speech_model(&third, None, &outgoing(ChatRef::from_telegram(7), "No model."), at(4))
        .unwrap();
    assert_eq!(world.notices(), 2, "another stretch");
}

#[test]
fn a_file_is_wanted_while_its_message_is_and_known_to_be_gone_after() {
    let mut world = World::new();
    let message = world.receive_files(1, "[photo]", &["photo"]);
    let photo = world.file_of(message);
    world.store.attachments_mut().record_kept_file(photo.id, "files/77.jpg", 12, at(1)).unwrap();
    assert!(world.store.retention().is_file_wanted("77.jpg").unwrap());
    assert!(world.store.attachments().files_on_disk().unwrap()[0].is_wanted);
    world.held(at(2)).attachments_mut().record_missing_file(photo.id).unwrap();
    assert!(world.first().1, "it is fetched again");
    world.store.attachments_mut().record_kept_file(photo.id, "files/77.jpg", 12, at(3)).unwrap();
    world.by_hand("UPDATE incoming_messages SET processed = 1, outcome = 'answered'");
    assert!(!world.store.retention().is_file_wanted("77.jpg").unwrap());
    world.held(at(0)).attachments_mut().forget_files(&["files/77.jpg".to_owned()]).unwrap();
    let gone = world.file_of(message);
    assert_eq!((gone.path, gone.state), (None, FileState::Kept));
    assert!(world.store.attachments().files_on_disk().unwrap().is_empty());
}

#[test]
fn a_failure_that_is_not_the_files_own_does_not_count_against_it() {
    let mut world = World::new();
    let message = world.receive_files(1, "[photo]", &["photo"]);
    let id = world.file_of(message).id;
    for counts in [false, false, true] {
        world
            .store
            .attachments_mut()
            .record_failed_fetch(id, &FailedFetch { counts, ..failed("late", 30) }, at(0))
            .unwrap();
    }
    let file = world.file_of(message);
    assert_eq!((file.attempts, file.faults), (3, 1));
}

#[test]
fn only_the_try_of_a_listener_that_was_ended_in_order_is_taken_back() {
    let mut world = World::new();
    let notes = [1, 2].map(|n| {
        let message = world.receive_files(n, "[voice note, 3 s]", &["voice"]);
        let note = world.file_of(message);
        world.store.attachments_mut().record_kept_file(note.id, "voice/1.ogg", 12, at(1)).unwrap();
        note
    });
    // The first one's listener died, the second one's is ended.
    world.store.attachments_mut().begin_transcription(notes[0].id, 5, at(30), at(1)).unwrap();
    world.store.attachments_mut().begin_transcription(notes[1].id, 6, at(30), at(1)).unwrap();
    assert_eq!(world.store.attachments().find_next_recording(at(2)).unwrap(), None);
    assert!(world.store.attachments_mut().undo_listener_attempt(6, at(2)).unwrap());
    let due = world.store.attachments().find_next_recording(at(2)).unwrap().unwrap();
    assert_eq!((due.id, due.attempts, due.error), (notes[1].id, 0, None));
    assert_eq!(world.file_of(notes[0].message_id).attempts, 1);
    // A try that came to an end of its own is nobody's any more.
    world.store.attachments_mut().begin_transcription(notes[1].id, 7, at(30), at(3)).unwrap();
    world.store.attachments_mut().record_failed_transcription(notes[1].id, "noise", at(4)).unwrap();
    assert!(!world.store.attachments_mut().undo_listener_attempt(7, at(5)).unwrap());
    assert_eq!(world.file_of(notes[1].message_id).attempts, 1);
}

#[test]
fn however_many_messages_wait_for_files_later_ones_are_seen() {
    let mut world = World::new();
    let stuck: Vec<i64> = (1..=150).map(|n| world.receive_files(n, "[photo]", &["photo"])).collect();
    world.by_hand("UPDATE incoming_messages SET held_for = 'offline' WHERE id <= 20");
    let later = world.store.inbox_mut().queue_message(ChatRef::from_telegram(7), "are you there?", at(1)).unwrap();
    let queued = world.store.inbox().list_queued_messages().unwrap();
    assert!(queued.iter().any(|message| message.id == later && !message.awaits_files));
    let seen: Vec<i64> = queued.iter().filter(|message| message.awaits_files).map(|message| message.id).collect();
    assert_eq!(seen, stuck, "what waits is seen, too: later messages wait behind it for a while");
    world.by_hand("UPDATE attachments SET state = 'kept'");
    let queued = world.store.inbox().list_queued_messages().unwrap();
    assert_eq!((queued.len(), queued.iter().filter(|message| message.held_for.is_some()).count()), (120, 20));
}

#[test]
fn a_rate_limit_holds_for_files_that_come_while_it_lasts() {
    let mut world = World::new();
    let first = world.receive_files(1, "[photo]", &["photo"]);
    let id = world.file_of(first).id;
    world
        .store
        .attachments_mut()
        .record_failed_fetch(id, &FailedFetch { delays_all: true, ..failed("slow down", 400) }, at(0))
        .unwrap();
    world.receive_files(2, "[photo]", &["photo"]);
    assert_eq!(world.store.attachments().find_next_wanted_file(at(1)).unwrap(), None);
    assert_eq!(world.store.attachments().find_file_step_time(at(1)).unwrap(), Some(at(400)));
    assert!(world.store.attachments().find_next_wanted_file(at(400)).unwrap().is_some());
    // What a wrong clock wrote isn't sat out.
    assert!(world.store.attachments().find_next_wanted_file(at(-30 * 86_400)).unwrap().is_some());
}
