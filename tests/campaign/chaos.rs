//! Layer 6: real programs, killed, stopped and started at random moments, several at once, while clocks jump and machines reboot. The
//! result must be as if nothing had happened.
//!
//! A seed fixes the story, the acts and their delays. The program's state at each moment depends on the machine, so a failing trial may
//! pass when it is replayed, unlike in other layers.

use std::{
    fs,
    os::unix::process::ExitStatusExt as _,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::OnceLock,
    time::{Duration, Instant},
};

use fastrand::Rng;
use rustix::process::{Pid, Signal};

use reveille_base::process::{self, Identity};
use reveille_store::wake_lock;

use super::{
    layer::{Layer, Recovery, Share},
    world::{Story, Word, World},
};

/// The maximum of kills in one trial; a cycle that crashes more often is rightly given up and reported.
const MAX_KILLS: u32 = 3;
/// The maximum of acts in one trial.
const MAX_ACTS: u32 = 5;
/// Time allowed for programs to end by themselves; children of killed ones end much sooner.
const PATIENCE: Duration = Duration::from_secs(30);
const LOOK_EVERY: Duration = Duration::from_millis(5);
/// The time of the stories, and of the recovery.
const NOW: &str = "2026-11-21T14:10:00Z";
/// The targets of clock jumps: on the same day, since messages name it, and before a reminder counts as late.
const CLOCKS: [&str; 4] = ["2026-11-21T09:00:00Z", "2026-11-21T14:04:59Z", NOW, "2026-11-21T14:14:30Z"];

/// The chaos of three stories.
pub(crate) struct Chaos {
    wake: Story,
    bot: Story,
    asks: Story,
    /// The duration of an undisturbed wake on this machine; each act comes before it has passed. Measured by the first trial, while the
    /// others wait.
    latest: OnceLock<Duration>,
}

impl Chaos {
    pub(crate) fn new() -> Self {
        Self { wake: Story::wake(), bot: Story::bot(), asks: Story::asks(Word::Yes), latest: OnceLock::new() }
    }

    fn latest(&self) -> Duration {
        *self.latest.get_or_init(|| self.wake.open().recover().unwrap())
    }
}

/// One disturbance.
#[derive(Debug, Clone, Copy)]
enum Act {
    /// Starts this many programs at once and kills them after a while.
    Kill(u32),
    /// Starts this many at once and lets each end.
    Race(u32),
    /// Stops one program midway and starts another.
    Stop(Stopped),
    /// Sets the clock.
    Jump(&'static str),
    /// Makes the records of dead programs name another boot; or this boot, with a process ID that is in use again.
    Reboot {
        /// Names another boot.
        is_other_boot: bool,
    },
}

/// The fate of a stopped program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stopped {
    /// It continues.
    GoesOn,
    /// It is killed while it is stopped.
    Dies,
    /// It stays stopped past its lease: the other program ends it, if it holds the lock, and takes over.
    IsReplaced,
}

impl Layer for Chaos {
    fn trials(&self, share: Share) -> u64 {
        match share {
            Share::Sample => 8,
            Share::Nightly => 1_000,
        }
    }

    fn trial(&self, id: u64) -> Result<Recovery, String> {
        self.latest();
        let random = &mut Rng::with_seed(id);
        let (story, program) = match random.u32(0..6) {
            0..2 => (&self.bot, Program::Bot),
            2 => (&self.asks, Program::Asking),
            _ => (&self.wake, Program::Wake),
        };
        let acts = acts(program, random);
        let told = |why: String| format!("{program:?}, {acts:?}: {why}");
        let mut world = story.open();
        world.env.at(NOW);
        let bystander = Bystander::start(&world);
        for act in &acts {
            // The person answers as soon as they are asked, during any act.
            world.decide();
            self.play(*act, program, &mut world, &bystander, random).map_err(told)?;
        }
        wait_until_deserted(&world, &bystander).map_err(told)?;
        world.env.at(NOW);
        if random.bool() {
            world.examine().map_err(told)?;
        }
        let took = world.recover().map_err(told)?;
        story.check(&world).map_err(told)?;
        bystander.check().map_err(told)?;
        Ok(Recovery(Some(took)))
    }
}

impl Chaos {
    fn play(
        &self,
        act: Act,
        program: Program,
        world: &mut World,
        bystander: &Bystander,
        random: &mut Rng,
    ) -> Result<(), String> {
        match act {
            Act::Kill(count) => {
                let mut running: Vec<Running> = (0..count).map(|_| Running::start(world, program)).collect();
                for program in &mut running {
                    self.wait(random);
                    program.signal(Signal::KILL);
                }
                running.into_iter().try_for_each(|program| program.end(true).map(drop))?;
                wait_until_deserted(world, bystander)
            }
            Act::Race(count) => {
                let running: Vec<Running> = (0..count).map(|_| Running::start(world, Program::Wake)).collect();
                running.into_iter().try_for_each(|wake| wake.end(false).map(drop))
            }
            Act::Stop(then) => {
                let mut stopped = Running::start(world, Program::Wake);
                if then == Stopped::IsReplaced {
                    stopped.wait_until_it_holds(&lock_path(world));
                }
                self.wait(random);
                stopped.signal(Signal::STOP);
                let must_die = then == Stopped::IsReplaced
                    && outlast_lease(&lock_path(world), stopped.child.id())
                    && world.has_unanswered();
                // It has begun nothing yet and blocks all others, so the next program ends it.
                let is_unnamed = process::holding_flock(&lock_path(world)).contains(&stopped.child.id())
                    && wake_lock::read_holder(&lock_path(world)).is_none_or(|holder| holder.pid != stopped.child.id());
                Running::start(world, Program::Wake).end(false)?;
                stopped.signal(if then == Stopped::Dies { Signal::KILL } else { Signal::CONT });
                let was_killed = stopped.end(is_unnamed || then != Stopped::GoesOn)?;
                if must_die && !was_killed {
                    return Err("a wake that stood still past its lease, holding the lock, was let live".to_owned());
                }
                Ok(())
            }
            Act::Jump(now) => {
                world.env.at(now);
                Ok(())
            }
            Act::Reboot { is_other_boot } => {
                wait_until_deserted(world, bystander)?;
                reboot(world, is_other_boot, bystander)
            }
        }
    }

    fn wait(&self, random: &mut Rng) {
        let micros = u64::try_from(self.latest().as_micros()).unwrap_or(u64::MAX);
        // The start of a run is as busy as all the rest.
        let bound = if random.bool() { micros } else { micros / 5 };
        std::thread::sleep(Duration::from_micros(random.u64(0..=bound)));
    }
}

/// The program the acts affect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Program {
    Wake,
    /// A wake with a question, and the following ones.
    Asking,
    Bot,
}

fn acts(program: Program, random: &mut Rng) -> Vec<Act> {
    // Telegram refuses two bots with one token at the same time.
    let at_once = if program == Program::Bot { 1 } else { MAX_KILLS };
    // In the story of a question all acts affect one cycle, which is given up at the third crash.
    let mut kills = u32::from(program == Program::Asking);
    let mut acts = Vec::new();
    for _ in 0..random.u32(1..=MAX_ACTS) {
        let may_kill = kills < MAX_KILLS;
        let act = match random.u32(0..12) {
            0..5 if may_kill => Act::Kill(random.u32(1..=at_once.min(MAX_KILLS - kills))),
            5..7 => Act::Race(random.u32(2..=3)),
            7..9 if may_kill => Act::Stop(
                random.choice([Stopped::GoesOn, Stopped::Dies, Stopped::IsReplaced]).unwrap_or(Stopped::GoesOn),
            ),
            7..9 => Act::Stop(Stopped::GoesOn),
            9..10 => Act::Reboot { is_other_boot: random.bool() },
            _ => Act::Jump(CLOCKS[random.usize(0..CLOCKS.len())]),
        };
        kills += match act {
            Act::Kill(count) => count,
            Act::Stop(then) => u32::from(then != Stopped::GoesOn),
            _ => 0,
        };
        acts.push(act);
    }
    acts
}

/// A running program. Dropping the value kills it.
struct Running {
    child: Child,
    program: Program,
    /// Outside the world, since the messages on stderr aren't part of the harm.
    log: tempfile::NamedTempFile,
}

impl Running {
    fn start(world: &World, program: Program) -> Self {
        let log = tempfile::NamedTempFile::new().unwrap();
        let mut command = match program {
            Program::Wake | Program::Asking => {
                world.env.command(env!("CARGO_BIN_EXE_wake"), &["--once", "--no-console"])
            }
            Program::Bot => {
                world.env.command(env!("CARGO_BIN_EXE_bot"), &["run", "--wake", env!("CARGO_BIN_EXE_wake")])
            }
        };
        let child = command.stdout(Stdio::null()).stderr(log.reopen().unwrap()).spawn().unwrap();
        Self { child, program, log }
    }

    /// Sends a signal; no effect on an ended program.
    fn signal(&mut self, signal: Signal) {
        if self.child.try_wait().unwrap().is_none() {
            rustix::process::kill_process(pid(&self.child), signal).ok();
        }
    }

    /// Waits until the program is named as the lock's holder, or has ended.
    fn wait_until_it_holds(&mut self, path: &Path) {
        let holds = |pid: u32| wake_lock::read_holder(path).is_some_and(|holder| holder.pid == pid);
        while self.child.try_wait().unwrap().is_none() && !holds(self.child.id()) {
            std::thread::sleep(LOOK_EVERY);
        }
    }

    /// Waits for the end, which must be a success unless it `may_be_killed`. Returns whether it was killed.
    fn end(mut self, may_be_killed: bool) -> Result<bool, String> {
        let begun = Instant::now();
        let status = loop {
            match self.child.try_wait().unwrap() {
                Some(status) => break status,
                None if begun.elapsed() > PATIENCE => {
                    return Err(format!("{:?} doesn't end: {}", self.program, self.said()));
                }
                None => std::thread::sleep(LOOK_EVERY),
            }
        };
        let was_killed = status.signal() == Some(Signal::KILL.as_raw());
        let is_right = status.success() || may_be_killed && was_killed;
        if is_right { Ok(was_killed) } else { Err(format!("{:?} ended with {status}: {}", self.program, self.said())) }
    }

    fn said(&self) -> String {
        fs::read_to_string(self.log.path()).unwrap_or_default()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// An unrelated process with the process ID of a dead one.
struct Bystander(Child);

impl Bystander {
    fn start(world: &World) -> Self {
        let mut command: Command = world.env.command("sleep", &["600"]);
        Self(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
    }

    fn check(mut self) -> Result<(), String> {
        match self.0.try_wait().unwrap() {
            None => Ok(()),
            Some(status) => Err(format!("somebody else's process was ended: {status}")),
        }
    }
}

impl Drop for Bystander {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

fn lock_path(world: &World) -> PathBuf {
    world.env.workspace().join(".wake-lock")
}

/// Makes the holder with this process ID look silent since boot. False if it no longer holds the lock.
fn outlast_lease(path: &Path, pid: u32) -> bool {
    let Some(holder) = wake_lock::read_holder(path).filter(|holder| holder.pid == pid) else { return false };
    let silent = wake_lock::Holder { alive_at_s: Some(0), ..holder };
    fs::write(path, serde_json::to_string(&silent).unwrap()).unwrap();
    wake_lock::is_held(path)
}

/// Waits until no process works in the world: the children of killed programs are gone, or end by themselves.
fn wait_until_deserted(world: &World, bystander: &Bystander) -> Result<(), String> {
    let begun = Instant::now();
    loop {
        let left = working_in(world.env.root(), bystander.0.id());
        if left.is_empty() {
            return Ok(());
        }
        if begun.elapsed() > PATIENCE {
            return Err(format!("still at work: {left:?}"));
        }
        std::thread::sleep(LOOK_EVERY);
    }
}

/// The command lines of the processes working beneath `root`.
fn working_in(root: &Path, but: u32) -> Vec<String> {
    let root = root.canonicalize().unwrap();
    let processes = fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path());
    let here = processes.filter(|process| {
        !process.ends_with(but.to_string())
            && fs::read_link(process.join("cwd")).is_ok_and(|directory| directory.starts_with(&root))
    });
    here.map(|process| fs::read_to_string(process.join("cmdline")).unwrap_or_default().replace('\0', " ")).collect()
}

/// Makes every named holder and sender belong to another boot, or have the bystander's process ID.
fn reboot(world: &World, is_other_boot: bool, bystander: &Bystander) -> Result<(), String> {
    let boot = if is_other_boot { "another boot".to_owned() } else { Identity::current().boot_id };
    let pid = bystander.0.id();
    let path = world.env.workspace().join(".wake-lock");
    let text = fs::read_to_string(&path).unwrap_or_default();
    if !text.trim().is_empty() {
        let mut holder: serde_json::Value =
            serde_json::from_str(&text).map_err(|error| format!("{error} in {text}"))?;
        holder["boot_id"] = boot.clone().into();
        holder["pid"] = pid.into();
        fs::write(&path, holder.to_string()).unwrap();
    }
    for (table, column) in [("processing_lock", "holder"), ("outgoing_parts", "sender")] {
        world.env.execute(&format!(
            "UPDATE {table} SET {column} = json_set({column}, '$.pid', {pid}, '$.boot_id', '{boot}') WHERE {column} IS NOT NULL"
        ));
    }
    Ok(())
}

fn pid(child: &Child) -> Pid {
    Pid::from_child(child)
}
