//! Random histories of the outbox: senders that claim, settle, die and are recovered from, in any order.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

#[derive(Debug, Clone)]
enum Act {
    /// Plan a message for a chat, of one part or of two.
    Plan { chat: i64, is_long: bool },
    /// A living sender takes a part; what became of it is settled at once.
    Send(How),
    /// A sender takes a part and dies, with the part delivered or not.
    Die { has_arrived: bool },
    /// Time goes on, in seconds.
    Pass(i64),
    /// A new wake begins.
    Recover,
}

#[derive(Debug, Clone, Copy)]
enum How {
    Sent,
    Later,
    Failed,
    Unknown { has_arrived: bool },
}

fn how() -> impl Strategy<Value = How> {
    prop_oneof![
        4 => Just(How::Sent),
        1 => Just(How::Later),
        1 => Just(How::Failed),
        1 => any::<bool>().prop_map(|has_arrived| How::Unknown { has_arrived }),
    ]
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        3 => (7..9_i64, any::<bool>()).prop_map(|(chat, is_long)| Act::Plan { chat, is_long }),
        6 => how().prop_map(Act::Send),
        2 => any::<bool>().prop_map(|has_arrived| Act::Die { has_arrived }),
        1 => (1..20_i64).prop_map(Act::Pass),
        2 => Just(Act::Recover),
    ]
}

/// What the other side saw, and what was promised about it.
#[derive(Default)]
struct Seen {
    /// Parts that arrived, in order: chat, message, part, whether it was marked.
    arrived: Vec<(i64, i64, i64, bool)>,
    /// Ambiguous ends of attempts, by part.
    doubts: BTreeMap<(i64, i64), usize>,
    /// Parts that a living sender was told were refused, or left in doubt twice.
    now_s: i64,
}

impl Seen {
    fn arrive(&mut self, claimed: &Claimed) {
        let key = (claimed.chat_id, claimed.outgoing_id, claimed.part, claimed.is_repeat);
        self.arrived.push(key);
    }
}

fn play(world: &mut World, seen: &mut Seen, act: &Act) {
    let now = at(seen.now_s);
    match act {
        Act::Plan { chat, is_long } => {
            let text = if *is_long { "word ".repeat(900) } else { "short".to_owned() };
            world.plan(*chat, &text);
        }
        Act::Pass(seconds) => seen.now_s += seconds,
        Act::Recover => {
            world.store.recover_outbox(world.fence, now).unwrap();
        }
        Act::Die { has_arrived } => {
            if let Some(claimed) = world.store.claim_part(None, &dead(), now).unwrap() {
                *seen.doubts.entry((claimed.outgoing_id, claimed.part)).or_default() += 1;
                if *has_arrived {
                    seen.arrive(&claimed);
                }
            }
        }
        Act::Send(how) => {
            let Some(claimed) = world.store.claim_part(None, &me(), now).unwrap() else {
                return;
            };
            // Whoever claims while it is under way gets another chat's part, or none.
            if let Some(other) = world.store.claim_part(None, &me(), now).unwrap() {
                assert_ne!(other.chat_id, claimed.chat_id, "two parts of one chat under way");
                let put_back = PartOutcome::Later { not_before: now, why: "put back".to_owned() };
                world.store.settle_part(&other, &put_back, now).unwrap();
            }
            let outcome = match how {
                How::Sent => {
                    seen.arrive(&claimed);
                    PartOutcome::Sent(1)
                }
                How::Later => PartOutcome::Later { not_before: at(seen.now_s + 5), why: "wait".to_owned() },
                How::Failed => PartOutcome::Failed("refused".to_owned()),
                How::Unknown { has_arrived } => {
                    *seen.doubts.entry((claimed.outgoing_id, claimed.part)).or_default() += 1;
                    if *has_arrived {
                        seen.arrive(&claimed);
                    }
                    PartOutcome::Unknown("reset".to_owned())
                }
            };
            world.store.settle_part(&claimed, &outcome, now).unwrap();
        }
    }
}

/// What holds of what arrived, whatever happened.
fn check(seen: &Seen) {
    let mut last: BTreeMap<i64, (i64, i64)> = BTreeMap::new();
    let mut times: BTreeMap<(i64, i64), usize> = BTreeMap::new();
    for (chat, message, part, is_marked) in &seen.arrived {
        let times = times.entry((*message, *part)).or_default();
        *times += 1;
        assert!(*times == 1 || *is_marked, "part {message}/{part} came again without a mark");
        assert!(*times <= 2, "part {message}/{part} came {times} times");
        let before = last.insert(*chat, (*message, *part));
        assert!(before.is_none_or(|before| before <= (*message, *part)), "{before:?} before {message}/{part}");
    }
    for (part, times) in times {
        let doubts = seen.doubts.get(&part).copied().unwrap_or_default();
        assert!(times <= 1 + doubts, "{part:?} came {times} times with {doubts} doubts");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn every_history_ends_with_each_part_settled_and_none_sent_more_often_than_allowed(
        acts in prop::collection::vec(act(), 1..60)
    ) {
        let mut world = World::new();
        let mut seen = Seen::default();
        for act in &acts {
            play(&mut world, &mut seen, act);
        }
        // A wake that nothing disturbs settles whatever was left.
        for _ in 0..2 {
            seen.now_s += 100;
            play(&mut world, &mut seen, &Act::Recover);
            while world.store.has_deliverable(at(seen.now_s)).unwrap() {
                play(&mut world, &mut seen, &Act::Send(How::Sent));
            }
        }
        check(&seen);
        let open: i64 = world.value("SELECT count(*) FROM outgoing_parts WHERE state IN ('planned', 'attempting')");
        prop_assert_eq!(open, 0);
        let lost: i64 = world.value(
            "SELECT count(*) FROM outgoing_messages o WHERE sent_at IS NULL AND NOT EXISTS (
                 SELECT 1 FROM outgoing_parts WHERE outgoing_id = o.id AND state IN ('failed', 'unknown'))",
        );
        prop_assert_eq!(lost, 0);
        prop_assert_eq!(world.store.integrity().unwrap(), Ok(()));
    }
}
