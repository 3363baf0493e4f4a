//! The sandbox, attacked: each attempt is an act that is first seen to succeed outside, and then has to fail inside. Beside them
//! what has to work inside, and the broken variants that the attempts are seen to notice.

mod attempts;
mod inside;
mod kernel;
mod leash;
mod network;
mod processes;
mod proxy;
mod reading;
mod variants;
pub(crate) mod world;
mod writing;

use attempts::{Attempt, all_fail};
use world::World;

/// Each act is one attempt; fewer than this would be less than what is promised.
const PROMISED: usize = 200;

#[test]
fn nothing_that_is_out_of_reach_can_be_read() {
    let world = World::new();
    all_fail(&world, &reading::attempts(&world));
}

#[test]
fn nothing_can_be_written_but_the_scratch_and_what_is_granted() {
    let world = World::new();
    all_fail(&world, &writing::attempts(&world));
}

#[test]
fn no_other_process_can_be_seen_or_touched_and_no_secret_variable_comes_along() {
    let world = World::new();
    all_fail(&world, &processes::attempts(&world));
}

#[test]
fn the_kernel_is_asked_for_nothing_that_leads_out() {
    let world = World::new();
    all_fail(&world, &kernel::attempts(&world));
}

#[test]
fn nobody_can_be_spoken_to() {
    let world = World::new();
    let listeners = network::Listeners::start(&world);
    all_fail(&world, &network::attempts(&world, &listeners));
}

#[test]
fn there_are_as_many_attempts_as_are_promised_on_any_machine() {
    let world = World::new();
    let listeners = network::Listeners::start(&world);
    let all = [
        reading::attempts(&world),
        writing::attempts(&world),
        processes::attempts(&world),
        kernel::attempts(&world),
        network::attempts(&world, &listeners),
    ];
    let all: Vec<Attempt> = all.into_iter().flatten().collect();
    let for_everybody = all.iter().filter(|attempt| !attempt.needs_root).count() + proxy::TRICKS.len();
    assert!(for_everybody >= PROMISED, "{for_everybody} attempts that need no root");
    let mut names: Vec<&str> = all.iter().map(|attempt| attempt.name.as_str()).collect();
    names.sort_unstable();
    let count = names.len();
    names.dedup();
    assert_eq!(names.len(), count, "two attempts of one name");
}
