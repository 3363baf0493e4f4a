//! Histories of machines that look, swap, crash, pause and lose answers, with clocks of different pace. At no true time do two machines
//! believe that they hold the lease.

use proptest::prelude::*;

use crate::lease::protocol::*;

const TERM: Duration = Duration::from_millis(1_000);
const MACHINES: usize = 3;

fn note(machine: &str, fence: u64, is_held: bool) -> LeaseNote {
    LeaseNote {
        machine: machine.to_owned(),
        name: machine.to_owned(),
        fence,
        term_ms: to_millis(TERM),
        is_held,
        renewal: 0,
        since: String::new(),
        nonce: String::new(),
        handled: Vec::new(),
    }
}

fn seen(id: &str, note: LeaseNote) -> SeenLease {
    SeenLease::Note { id: id.to_owned(), note }
}

fn at(ms: u64) -> BootTime<'static> {
    BootTime { boot: "boot", at: Duration::from_millis(ms) }
}

fn look(seen: &SeenLease, mine: &[String], watch: Option<&LeaseWatch>, now: BootTime<'_>) -> LeaseStep {
    decide_step(seen, mine, watch, 3, now, TERM)
}

#[test]
fn a_term_is_over_when_no_whole_millisecond_of_it_is_left() {
    let tenure = Tenure::begin(note("desk", 1, true), "id".to_owned(), Duration::from_micros(1_700));
    let end = TERM + Duration::from_millis(1);
    assert!(tenure.is_running(end.saturating_sub(Duration::from_nanos(1))));
    assert!(!tenure.is_running(end));
}

#[test]
fn a_free_absent_or_own_lease_is_taken_at_once() {
    let take = |old: Option<&str>, fence| LeaseStep::Take { old: old.map(str::to_owned), fence };
    assert_eq!(look(&SeenLease::Absent, &[], None, at(0)), take(None, 4), "an emptied place begins no lower");
    assert_eq!(look(&seen("a", note("desk", 7, false)), &[], None, at(0)), take(Some("a"), 8));
    assert_eq!(look(&seen("a", note("desk", 7, true)), &["a".to_owned()], None, at(0)), take(Some("a"), 8));
    assert_eq!(look(&SeenLease::Foreign, &[], None, at(0)), LeaseStep::Foreign);
}

#[test]
fn a_note_unchanged_for_a_term_and_a_margin_has_expired() {
    let held = seen("a", note("desk", 7, true));
    let LeaseStep::Wait { watch, left } = look(&held, &[], None, at(100)) else { panic!("it is held") };
    assert_eq!(left, TERM + TERM / 4);
    let later = |ms| look(&held, &[], watch.as_ref(), at(ms));
    assert!(matches!(later(1_349), LeaseStep::Wait { left, .. } if left == Duration::from_millis(1)));
    assert_eq!(later(1_350), LeaseStep::Take { old: Some("a".to_owned()), fence: 8 });
    // A renewal, another boot and a clock that went back each restart the wait.
    let whole = |step| matches!(step, LeaseStep::Wait { left, .. } if left == TERM + TERM / 4);
    assert!(whole(look(&seen("b", note("desk", 7, true)), &[], watch.as_ref(), at(1_350))));
    assert!(whole(look(&held, &[], watch.as_ref(), BootTime { boot: "another", ..at(1_350) })));
    assert!(whole(look(&held, &[], watch.as_ref(), at(50))));
    assert!(whole(look(&SeenLease::Moving, &[], watch.as_ref(), at(1_350))));
}

#[test]
fn no_note_claims_more_than_the_longest_term() {
    let greedy = LeaseNote { term_ms: u64::MAX, ..note("desk", 7, true) };
    assert_eq!(greedy.term(), Duration::from_secs(MAX_TERM_S));
}

/// An event and its machine.
#[derive(Debug, Clone, Copy)]
enum Happens {
    /// Time passes for all.
    Passes(u64),
    /// Looks, and begins a swap if allowed.
    Acquires,
    /// Begins to renew.
    Renews,
    /// Begins to release.
    Releases,
    /// The machine's oldest swap reaches the place.
    Lands,
    /// The machine learns the result of its swap.
    Learns,
    /// The machine never learns the result.
    Forgets,
    /// The machine's process is killed, and another one starts.
    Dies,
}

fn happens() -> impl Strategy<Value = (usize, Happens)> {
    let what = prop_oneof![
        4 => (1..700_u64).prop_map(Happens::Passes),
        4 => Just(Happens::Acquires),
        3 => Just(Happens::Renews),
        1 => Just(Happens::Releases),
        6 => Just(Happens::Lands),
        6 => Just(Happens::Learns),
        1 => Just(Happens::Forgets),
        1 => Just(Happens::Dies),
    ];
    (0..MACHINES, what)
}

#[derive(Debug, Clone)]
struct Swap {
    old: Option<String>,
    id: String,
    note: LeaseNote,
    began: Duration,
    is_first: bool,
    /// The place's answer.
    done: Option<bool>,
}

#[derive(Debug, Default)]
struct Machine {
    /// The clock's pace in percent of true time.
    pace: u64,
    tenure: Option<Tenure>,
    mine: Vec<String>,
    watch: Option<LeaseWatch>,
    fence: u64,
    /// The swap in flight, which the process waits for.
    swap: Option<Swap>,
    /// Swaps in flight without a waiting process.
    stray: Vec<Swap>,
}

#[derive(Debug, Default)]
struct World {
    machines: Vec<Machine>,
    place: Option<(String, LeaseNote)>,
    now_ms: u64,
    ids: u64,
    fences: Vec<u64>,
}

impl World {
    fn clock(&self, which: usize) -> Duration {
        Duration::from_millis(self.now_ms * self.machines[which].pace / 100)
    }

    fn id(&mut self) -> String {
        self.ids += 1;
        self.ids.to_string()
    }

    fn begin(&mut self, which: usize, old: Option<String>, note: LeaseNote, is_first: bool) {
        let (id, began) = (self.id(), self.clock(which));
        let machine = &mut self.machines[which];
        machine.mine.push(id.clone());
        machine.swap = Some(Swap { old, id, note, began, is_first, done: None });
    }

    fn apply(&mut self, swap: &mut Swap) {
        let is_there = self.place.as_ref().map(|(id, _)| id) == swap.old.as_ref();
        if is_there {
            if swap.is_first {
                self.fences.push(swap.note.fence);
            }
            self.place = Some((swap.id.clone(), swap.note.clone()));
        }
        swap.done = Some(is_there);
    }

    fn happen(&mut self, which: usize, what: Happens) {
        let now = self.clock(which);
        match what {
            Happens::Passes(ms) => self.now_ms += ms,
            Happens::Acquires => {
                let machine = &self.machines[which];
                if machine.swap.is_some() || machine.tenure.as_ref().is_some_and(|tenure| tenure.is_running(now)) {
                    return;
                }
                let seen = self.place.as_ref().map_or(SeenLease::Absent, |(id, note)| seen(id, note.clone()));
                let present = BootTime { boot: "boot", at: now };
                let (mine, watch) = (&machine.mine, machine.watch.as_ref());
                match decide_step(&seen, mine, watch, machine.fence, present, TERM) {
                    LeaseStep::Take { old, fence } => {
                        self.machines[which].tenure = None;
                        self.begin(which, old, note(&which.to_string(), fence, true), true);
                    }
                    LeaseStep::Wait { watch, .. } => self.machines[which].watch = watch,
                    LeaseStep::Foreign => unreachable!("nobody else writes there"),
                }
            }
            Happens::Renews | Happens::Releases => {
                let machine = &self.machines[which];
                let tenure = machine.tenure.as_ref().filter(|tenure| tenure.is_running(now) && machine.swap.is_none());
                if let Some(tenure) = tenure.cloned() {
                    let is_held = matches!(what, Happens::Renews);
                    let next = LeaseNote { is_held, ..tenure.next(String::new(), Vec::new()) };
                    self.begin(which, Some(tenure.id), next, false);
                    // A machine that releases no longer holds the lease, regardless of the swap's result.
                    self.machines[which].tenure.take_if(|_| !is_held);
                }
            }
            Happens::Lands => {
                if let Some(mut swap) = self.machines[which].swap.take_if(|swap| swap.done.is_none()) {
                    self.apply(&mut swap);
                    self.machines[which].swap = Some(swap);
                } else if let Some(mut swap) = self.machines[which].stray.pop() {
                    self.apply(&mut swap);
                }
            }
            Happens::Learns => self.learn(which),
            Happens::Forgets => {
                if let Some(swap) = self.machines[which].swap.take() {
                    if let Some(tenure) = &mut self.machines[which].tenure {
                        tenure.record_doubt(swap.id.clone());
                    }
                    if swap.done.is_none() {
                        self.machines[which].stray.push(swap);
                    }
                }
            }
            Happens::Dies => {
                let machine = &mut self.machines[which];
                machine.tenure = None;
                let lost = machine.swap.take().filter(|swap| swap.done.is_none());
                machine.stray.extend(lost);
            }
        }
    }

    fn learn(&mut self, which: usize) {
        let there = self.place.as_ref().map(|(id, _)| id.clone());
        let machine = &mut self.machines[which];
        let Some(swap) = machine.swap.take_if(|swap| swap.done.is_some()) else { return };
        match swap.done {
            Some(true) => {
                machine.fence = swap.note.fence;
                machine.mine = vec![swap.id.clone()];
                machine.watch = None;
                let is_held = swap.note.is_held;
                machine.tenure = is_held.then(|| Tenure::begin(swap.note, swap.id, swap.began));
            }
            _ if swap.is_first => {}
            _ => {
                let fate = machine.tenure.as_mut().map(|tenure| tenure.judge_failed_swap(there.as_deref()));
                if fate == Some(SwapFate::Lost) {
                    machine.tenure = None;
                }
            }
        }
    }

    fn check(&self) -> Result<(), TestCaseError> {
        let holders: Vec<usize> = (0..MACHINES)
            .filter(|which| self.machines[*which].tenure.as_ref().is_some_and(|it| it.is_running(self.clock(*which))))
            .collect();
        prop_assert!(holders.len() <= 1, "{holders:?} hold it at {} ms: {self:#?}", self.now_ms);
        prop_assert!(self.fences.is_sorted_by(|a, b| a < b), "{:?}", self.fences);
        Ok(())
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]

    #[test]
    fn at_most_one_machine_believes_that_it_holds_it(
        paces in prop::array::uniform3(92..=110_u64),
        history in prop::collection::vec(happens(), 1..120),
    ) {
        let machines = paces.map(|pace| Machine { pace, ..Machine::default() }).into();
        let mut world = World { machines, ..World::default() };
        for (which, what) in history {
            world.happen(which, what);
            world.check()?;
        }
    }
}

/// Shows that the histories above reach the interesting case.
#[test]
fn a_machine_that_is_gone_is_followed_after_its_term() {
    let machines = (0..MACHINES).map(|_| Machine { pace: 100, ..Machine::default() }).collect();
    let mut world = World { machines, ..World::default() };
    let take = |world: &mut World, which| {
        for what in [Happens::Acquires, Happens::Lands, Happens::Learns] {
            world.happen(which, what);
        }
        world.machines[which].tenure.is_some()
    };
    assert!(take(&mut world, 0));
    assert!(!take(&mut world, 1));
    world.happen(0, Happens::Passes(1_249));
    assert!(!take(&mut world, 1));
    world.happen(0, Happens::Passes(1));
    assert!(take(&mut world, 1));
    world.happen(1, Happens::Dies);
    assert!(take(&mut world, 1), "its own machine knows at once that it is dead");
    assert_eq!(world.fences, [1, 2, 3]);
}
