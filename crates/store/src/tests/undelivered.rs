use super::*;

/// Sends the next part, with this end.
fn send(world: &mut World, outcome: &PartOutcome) -> Claimed {
    let claimed = world.store.outbox_mut().claim_part(Pick::default(), &me(), at(0)).unwrap().unwrap();
    world.store.outbox_mut().settle_part(&claimed, outcome, at(0)).unwrap();
    claimed
}

fn doubt(why: &str) -> PartOutcome {
    PartOutcome::Unknown(why.to_owned())
}

fn prospects(world: &World) -> Vec<Prospect> {
    world.store.outbox().list_undelivered_messages().unwrap().iter().map(Undelivered::prospect).collect()
}

#[test]
fn what_was_sent_twice_without_an_answer_is_tried_no_more() {
    let mut world = World::new();
    world.plan(ChatRef::from_telegram(7), "did it arrive?");
    send(&mut world, &doubt("reset"));
    assert_eq!(prospects(&world), [Prospect::Tried], "the next wake repeats it");
    world.held(at(1)).outbox_mut().recover_outbox().unwrap();
    assert_eq!(prospects(&world), [Prospect::Tried]);
    assert!(send(&mut world, &doubt("reset again")).is_repeat);
    assert_eq!(prospects(&world), [Prospect::InDoubt]);
    world.plan(ChatRef::from_telegram(8), "to one who blocked us");
    send(&mut world, &PartOutcome::Failed("blocked".to_owned()));
    assert_eq!(prospects(&world), [Prospect::InDoubt, Prospect::Refused]);
    world.plan(ChatRef::TERMINAL, "hello");
    let outstanding = world.store.outbox().count_outstanding().unwrap();
    assert_eq!(outstanding, Outstanding { tried: 0, in_doubt: 1, refused: 1, console: 1 });
}

#[test]
fn of_several_parts_the_worst_off_tells_all_of_it() {
    let mut world = World::new();
    let id = world
        .plan(ChatRef::from_telegram(7), &(0..3).map(|_| format!("{}\n\n", "word ".repeat(700))).collect::<String>());
    let told = |world: &World| {
        let message = world.store.outbox().undelivered_message(id).unwrap().unwrap();
        (message.state, message.error.unwrap_or_default(), message.attempts)
    };
    assert_eq!(told(&world), (PartState::Planned, String::new(), 0));
    send(&mut world, &PartOutcome::Failed("blocked".to_owned()));
    send(&mut world, &doubt("reset"));
    assert_eq!(told(&world), (PartState::Failed, "blocked".to_owned(), 1), "worse than what may have come");
    let no_other = world.store.outbox().count_outstanding().unwrap();
    assert_eq!(no_other, Outstanding { refused: 1, ..Outstanding::default() }, "a message is counted once");
    world.by_hand("UPDATE outgoing_parts SET state = 'sent' WHERE part = 0");
    assert_eq!(told(&world), (PartState::Unknown, "reset".to_owned(), 1), "worse than what waits");
    world.by_hand("UPDATE outgoing_parts SET state = 'attempting' WHERE part = 2");
    assert_eq!(told(&world).0, PartState::Unknown, "worse than what is under way");
    world.by_hand("UPDATE outgoing_parts SET state = 'sent' WHERE part = 1");
    assert_eq!(told(&world).0, PartState::Attempting);
}

#[test]
fn all_are_counted_and_the_oldest_are_listed() {
    let mut world = World::new();
    let all: Vec<i64> = (0..203).map(|_| world.plan(ChatRef::from_telegram(7), "one more")).collect();
    let listed: Vec<i64> =
        world.store.outbox().list_undelivered_messages().unwrap().iter().map(|message| message.id).collect();
    assert_eq!(listed, all[..200]);
    assert_eq!(world.store.outbox().count_outstanding().unwrap(), Outstanding { tried: 203, ..Outstanding::default() });
    world.by_hand("INSERT INTO outgoing_messages (chat_id, message_text) VALUES (7, 'by hand')");
    assert_eq!(world.store.outbox().count_outstanding().unwrap().total(), 204);
}
