//! What runs in a sandbox ends with us, whatever ends us.

use std::{
    io::Read as _,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use reveille_base::process::Leashed;

use super::world::World;

/// Names what the keeper starts, so that it is found outside.
const TOKEN: &str = "REVEILLE_TEST_SLEEP";
/// How long the end of all may take on a machine that is busy with other tests.
const PATIENCE: Duration = Duration::from_secs(20);

/// Not a test of its own: a program of ours that has a sandbox at work, for the other one to kill.
#[test]
#[ignore = "a part of the next test, which starts it"]
fn keeper() {
    #[expect(clippy::disallowed_methods, reason = "what the test that starts it hands over")]
    let seconds = std::env::var(TOKEN).unwrap();
    let world = World::new();
    let script = format!("setsid sleep {seconds} & (sleep {seconds} &) & echo at work; sleep {seconds}");
    let (_leashed, mut pipes) = Leashed::start_with_pipes(&world.confined(&script).spec).unwrap();
    let mut said = [0; 7];
    pipes.stdout.read_exact(&mut said).unwrap();
    println!("at work");
    std::thread::sleep(PATIENCE * 3);
}

#[test]
fn all_that_runs_inside_dies_when_we_are_killed() {
    // Nobody else sleeps for so long.
    let seconds = format!("{}{}", 7_000_000, std::process::id());
    #[expect(clippy::disallowed_methods, reason = "this test's own program, to be killed")]
    let mut keeper = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "sandbox::leash::keeper", "--ignored", "--nocapture"])
        .env(TOKEN, &seconds)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let count = || {
        let processes = std::fs::read_dir("/proc").unwrap().flatten();
        let lines = processes.filter_map(|process| std::fs::read_to_string(process.path().join("cmdline")).ok());
        lines.filter(|line| line.split('\0').any(|word| word == seconds)).count()
    };
    let within = |wanted: &dyn Fn(usize) -> bool| {
        let start = Instant::now();
        while !wanted(count()) {
            assert!(start.elapsed() < PATIENCE, "{} sleepers", count());
            std::thread::sleep(Duration::from_millis(10));
        }
    };
    within(&|sleepers| sleepers == 3);
    keeper.kill().unwrap();
    keeper.wait().unwrap();
    within(&|sleepers| sleepers == 0);
}
