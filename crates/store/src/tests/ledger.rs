use reveille_base::types::Usage;

use super::*;

const CYCLE: (&str, &str) = ("c1", "m");

fn day(usd: f64) -> SpendCap {
    SpendCap { cap: Cap::Day, since: at(0), usd }
}

fn month(usd: f64) -> SpendCap {
    SpendCap { cap: Cap::Month, since: at(-86_400), usd }
}

fn used(cost_usd: f64) -> Spent {
    Spent { tokens: Usage { input: 10, output: 3, cache_read: 7, cache_write: 1 }, cost_usd }
}

impl World {
    fn reserve(&mut self, most_usd: f64, caps: &[SpendCap], second: i64) -> std::result::Result<Reservation, Cap> {
        self.held(at(second)).ledger_mut().reserve_cost(CYCLE, most_usd, caps).unwrap()
    }

    fn settle(&mut self, reservation: Reservation, spent: &Spent) {
        self.held(at(9)).ledger_mut().settle_reservation("c1", &Settlement::kept(reservation, *spent), &[]).unwrap();
    }
}

fn world() -> World {
    let mut world = World::new();
    world.held(at(0)).cycles_mut().begin_cycle(&cycle("c1"), &[], &[]).unwrap();
    world
}

#[test]
fn what_is_set_aside_counts_as_spent_until_it_is_replaced() {
    let mut world = world();
    let reservation = world.reserve(0.5, &[day(5.0)], 1).unwrap();
    assert_eq!(world.store.journal().read_journal("c1").unwrap(), [Entry::Asked]);
    assert_eq!(
        (
            world.store.ledger().spent_since(at(0)).unwrap().cost_usd,
            world.store.ledger().reserved_since(at(0)).unwrap()
        ),
        (0.5, 0.5)
    );
    let first = used(0.25);
    world.settle(reservation, &first);
    assert_eq!(
        (world.store.ledger().sum_cycle_cost("c1").unwrap(), world.store.ledger().reserved_since(at(0)).unwrap()),
        (first, 0.0)
    );
    // Once it is settled, it is.
    world.settle(reservation, &used(9.0));
    assert_eq!(world.store.ledger().sum_cycle_cost("c1").unwrap(), first);
    assert_eq!(world.store.ledger().spent_since(at(2)).unwrap(), Spent::default());
    assert_eq!(world.store.ledger().sum_cycle_cost("nobody").unwrap(), Spent::default());
}

#[test]
fn what_is_set_aside_follows_what_is_known_until_it_is_settled() {
    let mut world = world();
    let reservation = world.reserve(0.5, &[], 1).unwrap();
    for most in [used(0.1), used(0.2)] {
        world.held(at(0)).ledger_mut().bring_along(reservation, &most).unwrap();
        assert_eq!(
            (world.store.ledger().sum_cycle_cost("c1").unwrap(), world.store.ledger().reserved_since(at(0)).unwrap()),
            (most, most.cost_usd)
        );
    }
    world.settle(reservation, &used(0.15));
    assert_eq!(
        (world.store.ledger().sum_cycle_cost("c1").unwrap(), world.store.ledger().reserved_since(at(0)).unwrap()),
        (used(0.15), 0.0)
    );
    // Once it is settled, it is.
    world.held_by(world.fence, at(0)).ledger_mut().bring_along(reservation, &used(9.0)).unwrap();
    assert_eq!(world.store.ledger().sum_cycle_cost("c1").unwrap(), used(0.15));
}

#[test]
fn what_was_not_used_leaves_no_row() {
    let mut world = world();
    let reservation = world.reserve(0.5, &[], 1).unwrap();
    world.settle(reservation, &Spent::default());
    assert_eq!(world.value::<i64>("SELECT count(*) FROM ledger"), 0);
}

#[test]
fn no_two_requests_pass_a_cap_together() {
    let mut world = world();
    let caps = [month(10.0), day(1.0)];
    let first = world.reserve(0.6, &caps, 1).unwrap();
    assert_eq!(world.reserve(0.6, &caps, 2), Err(Cap::Day), "the first isn't settled yet");
    assert_eq!(world.store.journal().read_journal("c1").unwrap().len(), 1, "what isn't sent isn't journalled");
    world.settle(first, &used(0.3));
    assert!(world.reserve(0.7, &caps, 3).is_ok(), "up to the cap to the cent");
    assert_eq!(world.reserve(0.01, &caps, 4), Err(Cap::Day));
}

#[test]
fn the_month_bounds_days_that_have_room() {
    let mut world = world();
    let yesterday = world.reserve(0.8, &[], -100).unwrap();
    world.settle(yesterday, &used(0.8));
    assert_eq!(world.reserve(0.3, &[month(1.0), day(5.0)], 1), Err(Cap::Month));
    assert!(world.reserve(0.3, &[day(5.0)], 1).is_ok(), "without a bound for the month");
}
