use super::*;
use crate::{MAX_RECORDINGS, NewRecording, RecordedCall};

fn recording(cycle: &str, chat: Option<ChatRef>, request: &str, taint: Option<&str>) -> NewRecording {
    NewRecording {
        cycle_id: cycle.to_owned(),
        chat,
        request: request.to_owned(),
        words: request.split(' ').map(str::to_owned).collect(),
        calls: vec![RecordedCall {
            tool: "remember".to_owned(),
            input: "{}".to_owned(),
            did: "Remembered".to_owned(),
            is_after_others: taint.is_some(),
        }],
        narrative: "Remembered.".to_owned(),
        taint: taint.map(str::to_owned),
        rounds: 2,
    }
}

fn end(world: &mut World, recording: &NewRecording) {
    let (fence, clock) = (world.fence, FixedClock(at(5)));
    let mut store = FencedStore::new(&mut world.store, fence, &clock);
    let end = CycleEnd { recording: Some(recording), ..CycleEnd::new(CycleState::Done) };
    store.cycles_mut().end_cycle(&recording.cycle_id, &end).unwrap();
}

fn requests(world: &World) -> Vec<String> {
    world.store.recordings().list_recordings().unwrap().into_iter().map(|recording| recording.kept.request).collect()
}

#[test]
fn a_cycle_leaves_one_recording_and_the_newest_of_the_same_request_stands_for_all() {
    let mut world = World::new();
    let chat = Some(ChatRef::from_telegram(7));
    for (cycle, request, taint) in [
        ("a", "feed cat", None),
        ("a", "water plants", None),
        ("b", "feed cat", None),
        ("c", "feed cat", Some("a page")),
    ] {
        end(&mut world, &recording(cycle, chat, request, taint));
    }
    end(&mut world, &recording("d", None, "feed cat", None));
    let cycles: Vec<String> = world
        .store
        .recordings()
        .list_recordings()
        .unwrap()
        .into_iter()
        .map(|recording| recording.kept.cycle_id)
        .collect();
    assert_eq!(cycles, ["d", "c", "b"]);
    assert_eq!(
        world.store.recordings().list_recordings().unwrap()[1].kept,
        recording("c", chat, "feed cat", Some("a page"))
    );
}

#[test]
fn of_each_chat_the_newest_are_kept_and_a_flood_pushes_out_no_other_s() {
    let mut world = World::new();
    end(&mut world, &recording("owner", Some(ChatRef::from_telegram(7)), "mine", None));
    for n in 0..MAX_RECORDINGS + 3 {
        end(&mut world, &recording(&format!("g{n}"), Some(ChatRef::from_telegram(8)), &format!("theirs {n}"), None));
    }
    let all = requests(&world);
    assert_eq!(all.len(), MAX_RECORDINGS as usize + 1);
    assert!(all.contains(&"mine".to_owned()) && !all.contains(&"theirs 2".to_owned()));
    let theirs = world.store.recordings().recorded_requests(&[Some(ChatRef::from_telegram(8))], None).unwrap();
    assert_eq!(
        (theirs.len(), &theirs[0].words),
        (MAX_RECORDINGS as usize, &vec!["theirs".to_owned(), "502".to_owned()])
    );
}

#[test]
fn vectors_are_kept_by_their_encoder() {
    let mut world = World::new();
    end(&mut world, &recording("a", None, "feed cat", None));
    let (id, text) = world.store.recordings().requests_without_vector("m", 9, EncoderPlace::Here).unwrap().remove(0);
    assert_eq!(text, "feed cat");
    let (fence, clock) = (world.fence, FixedClock(at(5)));
    FencedStore::new(&mut world.store, fence, &clock)
        .recordings_mut()
        .put_request_vectors("m", &[(id, vec![0.5, -1.0])])
        .unwrap();
    assert!(world.store.recordings().requests_without_vector("m", 9, EncoderPlace::Here).unwrap().is_empty());
    assert_eq!(world.store.recordings().requests_without_vector("n", 9, EncoderPlace::Here).unwrap().len(), 1);
    let vector = |encoder| world.store.recordings().recorded_requests(&[None], encoder).unwrap().remove(0).vector;
    assert_eq!((vector(Some("m")), vector(Some("n")), vector(None)), (Some(vec![0.5, -1.0]), None, None));
}
