use super::*;
use chrono::TimeDelta;

fn at(second: i64) -> DateTime<Utc> {
    parse_time("2026-11-26T08:00:00.000Z").unwrap() + TimeDelta::seconds(second)
}

fn name(name: &str) -> AssistantName {
    name.parse().unwrap()
}

fn registry() -> (tempfile::TempDir, FleetRegistry) {
    let dir = tempfile::tempdir().unwrap();
    let registry = FleetRegistry::open(&dir.path().join("fleet.db").into()).unwrap();
    (dir, registry)
}

fn claim(registry: &mut FleetRegistry, worker: &str, second: i64) -> Option<TurnClaim> {
    registry.claim_turn(worker, at(second), at(second + 60)).unwrap()
}

fn ends(second: i64) -> TurnEnd {
    TurnEnd { due_at: at(second), trouble: None }
}

#[test]
fn who_waited_longest_is_first_and_one_has_one_turn_at_a_time() {
    let (_dir, mut registry) = registry();
    for (second, who) in ["noisy", "ana", "ben"].into_iter().enumerate() {
        assert!(registry.add(&name(who), at(second as i64)).unwrap());
    }
    assert!(!registry.add(&name("ana"), at(9)).unwrap());
    let noisy = claim(&mut registry, "w", 10).unwrap();
    assert_eq!(noisy.name, name("noisy"));
    // It is due again at once, and behind the others all the same.
    registry.wake_assistant(&noisy.name, at(11)).unwrap();
    registry.give_back("w", &noisy, &ends(3600), at(12)).unwrap();
    let order: Vec<String> =
        (13..17).filter_map(|second| claim(&mut registry, "w", second)).map(|claim| claim.name.to_string()).collect();
    assert_eq!(order, ["ana", "ben", "noisy"]);
}

#[test]
fn what_comes_during_a_turn_makes_another_one() {
    let (_dir, mut registry) = registry();
    let ana = name("ana");
    registry.add(&ana, at(0)).unwrap();
    let turn = claim(&mut registry, "w", 1).unwrap();
    registry.give_back("w", &turn, &ends(3600), at(2)).unwrap();
    assert_eq!(claim(&mut registry, "w", 3), None);
    assert_eq!(registry.find_next_turn_time().unwrap(), Some(at(3600)));
    assert_eq!(registry.find_next_due_time(at(3)).unwrap(), Some(at(3600)));
    assert_eq!(registry.find_next_due_time(at(3600)).unwrap(), None);
    registry.wake_assistant(&ana, at(4)).unwrap();
    let turn = claim(&mut registry, "w", 5).unwrap();
    registry.wake_assistant(&ana, at(6)).unwrap();
    assert_eq!(claim(&mut registry, "other", 7), None, "it has its turn");
    registry.give_back("w", &turn, &ends(3600), at(8)).unwrap();
    assert!(claim(&mut registry, "other", 8).is_some());
}

#[test]
fn a_worker_that_is_gone_keeps_nobody_from_their_turn_and_gives_nothing_back() {
    let (_dir, mut registry) = registry();
    registry.add(&name("ana"), at(0)).unwrap();
    let lost = claim(&mut registry, "gone", 1).unwrap();
    assert_eq!(claim(&mut registry, "w", 60), None);
    // Who doesn't say that it holds a turn doesn't keep it.
    registry.renew_turns("gone", &BTreeSet::new(), at(200)).unwrap();
    registry.renew_turns("gone", &[name("ana")].into(), at(100)).unwrap();
    assert_eq!(claim(&mut registry, "w", 61), None);
    let taken = claim(&mut registry, "w", 100).unwrap();
    registry.give_back("gone", &lost, &ends(9000), at(101)).unwrap();
    assert!(registry.list_members(at(101)).unwrap()[0].is_at_work);
    registry.give_back("w", &taken, &ends(7200), at(102)).unwrap();
    assert_eq!(registry.list_members(at(103)).unwrap()[0].due_at, at(7200));
}

#[test]
fn failures_are_counted_until_a_turn_succeeds() {
    let (_dir, mut registry) = registry();
    registry.add(&name("ana"), at(0)).unwrap();
    for failures in 0..2 {
        let turn = claim(&mut registry, "w", 1).unwrap();
        assert_eq!(turn.failures, failures);
        let end = TurnEnd { trouble: Some("no disk".to_owned()), ..ends(0) };
        registry.give_back("w", &turn, &end, at(1)).unwrap();
    }
    let member = registry.list_members(at(2)).unwrap().remove(0);
    assert_eq!((member.failures, member.trouble.as_deref()), (2, Some("no disk")));
    let turn = claim(&mut registry, "w", 3).unwrap();
    registry.give_back("w", &turn, &ends(9), at(3)).unwrap();
    assert_eq!(registry.list_members(at(4)).unwrap()[0].failures, 0);
}

#[test]
fn who_left_isnt_received_for() {
    let (_dir, mut registry) = registry();
    let ana = name("ana");
    registry.add(&ana, at(0)).unwrap();
    assert_eq!(registry.secret_hash(&ana).unwrap(), None);
    registry.set_secret_hash(&ana, Some("ab")).unwrap();
    assert_eq!(registry.secret_hash(&ana).unwrap().as_deref(), Some("ab"));
    assert!(registry.remove(&ana).unwrap() && !registry.remove(&ana).unwrap());
    assert_eq!(registry.secret_hash(&ana).unwrap(), None);
    registry.wake_assistant(&ana, at(1)).unwrap();
    assert!(registry.list_members(at(2)).unwrap().is_empty());
}
