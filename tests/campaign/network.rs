//! Layer 4: between the programs and Telegram, Claude and the git remote stands a network that fails at one request, once or for
//! the whole run. Then it has to be as if nothing had happened, but for what was told and what was in doubt.

mod fault;
mod proxy;
mod told;

use std::{
    fs,
    path::PathBuf,
    process::{Child, Stdio},
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal};
use serde_json::Value;

use self::{
    fault::{Fault, Knowledge, Target},
    proxy::{Exchange, Guard, Order, Proxy, START},
};
use super::{
    layer::{Layer, Recovery, Share},
    world::{Allowed, Story, World, files},
};
use crate::support::{
    claude::API_KEY,
    env::{CHAT, Ran, TestEnv, eventually},
    git_http::GitHttp,
    http::Request,
    telegram::TOKEN,
};

/// Trials mostly wait.
const WORKERS: usize = 8;
/// How long a lasting fault lasts where a program goes on by itself, from its first effect.
const LASTING: Duration = Duration::from_millis(1_500);
/// Nothing that a trial waits for takes longer.
const PATIENCE: Duration = Duration::from_secs(60);
/// How often is looked whether it has come.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// The longest back-off that one run can leave.
const BACK_OFF_MIN: u32 = 10;
/// The remote's password, and as it goes over the network.
const PASSWORD: &str = "hunter2-PassWord";
const PASSWORD_BASE64: &str = "YW5uOmh1bnRlcjItUGFzc1dvcmQ=";
/// The first of the bot's updates.
const FIRST_UPDATE: i64 = 2_000;
/// Texts that the bot story's wakes send at least.
const BOT_SENDS: usize = 3;

/// Which programs run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Play {
    /// One `wake --once` with Claude for a mind.
    Wake,
    /// A `bot` that polls twice and starts wakes.
    Bot,
}

/// One trial.
#[derive(Debug, Clone)]
struct Trial {
    play: Play,
    target: Target,
    order: Order,
}

/// The network's faults in two stories.
pub(crate) struct Network {
    wake: Story,
    bot: Story,
    trials: Vec<Trial>,
}

impl Network {
    pub(crate) fn open() -> Self {
        let wake = Story::talk();
        let bot = Story::day(|world| {
            live_with_bot(world, None).unwrap();
        });
        let mut network = Self { wake, bot, trials: Vec::new() };
        let trials = [Play::Wake, Play::Bot].into_iter().flat_map(|play| network.trials_of(play)).collect();
        network.trials = trials;
        network
    }

    /// Each request of an undisturbed run with each fault, once and lasting.
    fn trials_of(&self, play: Play) -> Vec<Trial> {
        let mut scene = Scene::open(self.story(play), play);
        scene.play(None).unwrap();
        let mut trials = Vec::new();
        for (target, proxy) in scene.proxies() {
            let exchanges = proxy.exchanges();
            if exchanges.is_empty() {
                assert!(play == Play::Bot && target == Target::Claude, "{play:?} never asked {target:?}");
                continue;
            }
            let mut points: Vec<(String, usize, usize)> = exchanges
                .into_iter()
                .filter(|exchange| play == Play::Wake || is_sure_of_bot(target, exchange))
                .map(|exchange| (exchange.label, exchange.nth, exchange.events))
                .collect();
            points.sort();
            let at_points = points.into_iter().flat_map(|(label, nth, events)| {
                let faults = Fault::all(target, &label, events).into_iter();
                faults.map(move |fault| (fault, label.clone(), nth)).collect::<Vec<_>>()
            });
            for (fault, label, nth) in [(Fault::Closed, START.to_owned(), 0)].into_iter().chain(at_points) {
                let order = |lasts| Order { fault, label: label.clone(), nth, lasts };
                trials.extend([false, true].map(|lasts| Trial { play, target, order: order(lasts) }));
            }
        }
        trials
    }

    fn story(&self, play: Play) -> &Story {
        match play {
            Play::Wake => &self.wake,
            Play::Bot => &self.bot,
        }
    }
}

/// Requests that come in every run of the bot's story, however its wakes share out the work. What its wakes ask of the remote
/// is the other story's.
fn is_sure_of_bot(target: Target, exchange: &Exchange) -> bool {
    target == Target::Telegram
        && match exchange.label.as_str() {
            "getMe" | "setMyCommands" => true,
            "getUpdates" => exchange.nth < 2,
            "sendMessage" => exchange.nth < BOT_SENDS,
            _ => false,
        }
}

impl Layer for Network {
    fn space(&self) -> Option<u64> {
        Some(self.trials.len() as u64)
    }

    fn trials(&self, share: Share) -> u64 {
        match share {
            Share::Sample => 80,
            Share::Nightly => self.trials.len() as u64,
        }
    }

    fn workers(&self) -> usize {
        WORKERS
    }

    fn trial(&self, id: u64) -> Result<Recovery, String> {
        let trial = usize::try_from(id).ok().and_then(|id| self.trials.get(id)).ok_or("there is no such trial")?;
        let story = self.story(trial.play);
        let mut scene = Scene::open(story, trial.play);
        play(&mut scene, story, trial).map_err(|why| format!("{trial:?}: {why}"))
    }
}

/// Plays a trial and looks at what it leaves.
fn play(scene: &mut Scene, story: &Story, trial: &Trial) -> Result<Recovery, String> {
    let ran = scene.play(Some(trial))?;
    let is_met = scene.proxies().map(|(_, proxy)| proxy.mend()).iter().all(|met| *met);
    if !is_met {
        return Err("its request never came".to_owned());
    }
    if let Some(pid) = survivor(&scene.world.env) {
        return Err(format!("process {pid} has outlived the run"));
    }
    if trial.play == Play::Wake {
        told::check_first_run(&ran, scene, trial)?;
    }
    scene.check_waits(trial)?;
    scene.world.pass(BACK_OFF_MIN);
    let took = scene.world.recover().map_err(|why| format!("{why}\nafter {}", brief(&ran)))?;
    let sends = told::sends(&scene.telegram.exchanges())?;
    told::check_turns(&scene.claude.exchanges(), &scene.world.env)?;
    let problems = scene.telegram.problems();
    if !problems.is_empty() {
        return Err(problems.join("; "));
    }
    let notice = |text: &str| told::is_notice(trial.target, text);
    let allowed = Allowed { notice: &notice, refused: sends.lost, regrouped: trial.play == Play::Bot };
    story.check_but(&scene.world, allowed).map_err(|why| format!("{why}\nafter {}", brief(&ran)))?;
    scene.check_secrets(&ran)?;
    if let Some(pid) = survivor(&scene.world.env) {
        return Err(format!("process {pid} is left"));
    }
    Ok(Recovery(Some(took)))
}

/// A story's world whose every server is behind a proxy.
struct Scene {
    // Before the world: what they pass on to goes last.
    telegram: Proxy,
    claude: Proxy,
    git: Proxy,
    _git_server: GitHttp,
    world: World,
    play: Play,
}

impl Scene {
    fn open(story: &Story, play: Play) -> Self {
        let mut world = story.open();
        let git_server = GitHttp::start(world.env.root(), "ann", PASSWORD);
        let git = Proxy::start(Target::Git, &format!("http://127.0.0.1:{}", git_server.port()), None);
        let origin = git.url().replace("://", &format!("://ann:{PASSWORD}@"));
        world.env.unset("REPO_URL").git(&["remote", "set-url", "origin", &format!("{origin}/remote.git")]);
        world.env.git_in(&world.env.path("remote.git"), &["config", "http.receivepack", "true"]);
        let telegram = Proxy::start(Target::Telegram, &world.telegram.url(), Some(guard(&world.env)));
        world.env.set("TELEGRAM_API_URL", &telegram.url());
        let upstream = world.claude.as_ref().map_or_else(|| world.telegram.url(), |claude| claude.url());
        let claude = Proxy::start(Target::Claude, &upstream, None);
        world.env.set("ANTHROPIC_BASE_URL", &claude.url());
        Self { telegram, claude, git, _git_server: git_server, world, play }
    }

    fn proxies(&self) -> [(Target, &Proxy); 3] {
        [(Target::Telegram, &self.telegram), (Target::Claude, &self.claude), (Target::Git, &self.git)]
    }

    fn proxy(&self, target: Target) -> &Proxy {
        match target {
            Target::Telegram => &self.telegram,
            Target::Claude => &self.claude,
            Target::Git => &self.git,
        }
    }

    /// Runs the story's programs, with a fault if there is one.
    fn play(&mut self, trial: Option<&Trial>) -> Result<Ran, String> {
        if let Some(trial) = trial {
            self.proxy(trial.target).order(trial.order.clone());
        }
        let ran = match self.play {
            Play::Wake => self.world.env.wake(&["--once", "--no-console", "--json"]),
            Play::Bot => live_with_bot(&mut self.world, Some(&self.telegram))?,
        };
        if !matches!(ran.code, 0 | 1) || ran.stderr.contains("panicked") {
            return Err(format!("a run that ended badly: {}", brief(&ran)));
        }
        Ok(ran)
    }

    /// Whoever asked to be left alone for a time is not asked within it, neither by the same run nor by the next.
    fn check_waits(&mut self, trial: &Trial) -> Result<(), String> {
        let label = &trial.order.label;
        let of_it = |scene: &Self| -> Vec<Exchange> {
            let exchanges = scene.proxy(trial.target).exchanges();
            exchanges.into_iter().filter(|exchange| exchange.label == *label).collect()
        };
        let exchanges = of_it(self);
        for pair in exchanges.windows(2) {
            let Some(Knowledge::NotDone { retry_after: Some(seconds) }) = pair[0].known else { continue };
            let is_other = trial.target == Target::Telegram && pair[0].body != pair[1].body && label == "sendMessage";
            if !is_other && pair[1].at - pair[0].at < Duration::from_secs(seconds) {
                return Err(format!(
                    "{label} came again {:?} after it was told to wait {seconds} s",
                    pair[1].at - pair[0].at
                ));
            }
        }
        let last = exchanges.last().and_then(|exchange| exchange.known);
        let Some(Knowledge::NotDone { retry_after: Some(seconds) }) = last else { return Ok(()) };
        if label == "getUpdates" {
            return Ok(());
        }
        let (minutes, seconds) = ((seconds - 1) / 60, (seconds - 1) % 60);
        self.world.env.at(&format!("2026-11-21T14:{:02}:{seconds:02}Z", 10 + minutes));
        let ran = self.world.env.wake(&["--once", "--no-console", "--json"]);
        let asked: Vec<Exchange> = of_it(self).split_off(exchanges.len());
        let body = exchanges.last().map(|exchange| exchange.body.clone()).unwrap_or_default();
        let is_early = asked.iter().any(|exchange| trial.target == Target::Claude || exchange.body == body);
        if is_early { Err(format!("{label} came again before its time: {}", brief(&ran))) } else { Ok(()) }
    }

    /// No file but git's own configuration, no message, no commit and nothing printed holds what only servers may know. The
    /// faults repeat it wherever they can.
    fn check_secrets(&self, ran: &Ran) -> Result<(), String> {
        let env = &self.world.env;
        let secrets = [TOKEN.split_once(':').map_or(TOKEN, |(_, secret)| secret), API_KEY, PASSWORD, PASSWORD_BASE64];
        let shown = [
            format!("{ran:?}"),
            format!("{:?}", self.world.telegram.sent()),
            env.git(&["log", "--all", "-p", "--format=%B"]),
        ];
        if let Some(text) = shown.iter().find(|text| secrets.iter().any(|secret| text.contains(secret))) {
            return Err(format!("a secret was shown: {text}"));
        }
        let config = env.brain().join(".git/config");
        for path in files(env.root()).into_iter().filter(|path| *path != config) {
            let bytes = fs::read(&path).unwrap_or_default();
            let holds = |secret: &str| bytes.windows(secret.len()).any(|piece| piece == secret.as_bytes());
            if secrets.iter().any(|secret| holds(secret)) {
                return Err(format!("a secret is in {}", path.display()));
            }
        }
        Ok(())
    }
}

/// What a person and a stranger write in two batches, and what runs until all of it is stored, confirmed and answered.
fn live_with_bot(world: &mut World, network: Option<&Proxy>) -> Result<Ran, String> {
    let stored = |env: &TestEnv| env.query::<i64>("SELECT count(*) FROM incoming_messages");
    let before = stored(&world.env);
    world.telegram.number_updates_from(FIRST_UPDATE);
    world.telegram.push_text(CHAT, CHAT, "remember that Anna has a dog");
    world.telegram.push_text(CHAT, CHAT, "/help");
    world.telegram.push_text(666, 666, "hello?");
    let mut bot = Bot::start(&world.env);
    let (begun, mut is_all_said) = (Instant::now(), false);
    while !is_all_said || stored(&world.env) < before + 2 || !is_all_done(world) {
        if begun.elapsed() > PATIENCE {
            return Err(format!("not all was stored, confirmed and answered: {:#?}", bot.kill()));
        }
        if network.and_then(Proxy::met_for).is_some_and(|time| time > LASTING) {
            network.map(Proxy::mend);
        }
        if bot.has_ended() {
            network.map(Proxy::mend);
            let ended = bot.end()?;
            // Telegram didn't know the token, which only a person can mend.
            if ended.code != 78 || !ended.stderr.contains("TELEGRAM_BOT_TOKEN") {
                return Err(format!("the bot ended by itself: {ended:#?}"));
            }
            bot = Bot::start(&world.env);
        }
        if !is_all_said && stored(&world.env) > before {
            is_all_said = true;
            world.telegram.push_text(CHAT, CHAT, "remember that Bob has a cat");
        }
        std::thread::sleep(LOOK_EVERY);
    }
    bot.signal(Signal::TERM);
    let ran = bot.end()?;
    // A wake that it started may end after it.
    eventually("its wakes have ended", || survivor(&world.env).is_none());
    Ok(ran)
}

/// Whether Telegram has nothing to give and nobody is at work.
fn is_all_done(world: &World) -> bool {
    let open = "SELECT (SELECT count(*) FROM incoming_messages WHERE processed = 0)
                + (SELECT is_locked FROM processing_lock)
                + (SELECT count(*) FROM outgoing_parts WHERE state = 'attempting')
                + NOT EXISTS (SELECT 1 FROM outgoing_messages WHERE kind = 'command')";
    world.telegram.unconfirmed() == 0 && world.env.query::<i64>(open) == 0
}

/// No poll may confirm what isn't stored.
fn guard(env: &TestEnv) -> Guard {
    let db = env.workspace().join("messages.db");
    Box::new(move |label, request: &Request| {
        let body: Value = serde_json::from_slice(&request.body).unwrap_or_default();
        let Some(offset) = body["offset"].as_i64().filter(|_| label == "getUpdates") else { return Ok(()) };
        let conn = rusqlite::Connection::open(&db).map_err(|error| error.to_string())?;
        let is = |sql: &str, id: i64| conn.query_row(sql, [id], |row| row.get::<_, bool>(0)).unwrap_or(false);
        let message = "SELECT EXISTS (SELECT 1 FROM incoming_messages WHERE update_id = ?1)";
        let command = "SELECT EXISTS (SELECT 1 FROM outgoing_messages WHERE key LIKE '%/' || ?1)";
        for (id, sql) in [(FIRST_UPDATE, message), (FIRST_UPDATE + 1, command), (FIRST_UPDATE + 3, message)] {
            if id < offset && !is(sql, id) {
                return Err(format!("update {id} was confirmed and isn't stored"));
            }
        }
        Ok(())
    })
}

/// A bot under way, and the file that it and its wakes say things in; killed when it goes.
struct Bot(Child, PathBuf);

impl Bot {
    fn start(env: &TestEnv) -> Self {
        let path = env.path("bot.log");
        let log = fs::File::options().create(true).append(true).open(&path).unwrap();
        let mut command = env.command(env!("CARGO_BIN_EXE_bot"), &["run"]);
        Self(command.stdout(Stdio::null()).stderr(log).spawn().unwrap(), path)
    }

    fn has_ended(&mut self) -> bool {
        self.0.try_wait().unwrap().is_some()
    }

    fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.0.id()).ok().and_then(Pid::from_raw).unwrap();
        rustix::process::kill_process(pid, signal).unwrap();
    }

    fn end(&mut self) -> Result<Ran, String> {
        let begun = Instant::now();
        while !self.has_ended() {
            if begun.elapsed() > PATIENCE {
                return Err(format!("the bot doesn't end: {:#?}", self.kill()));
            }
            std::thread::sleep(LOOK_EVERY);
        }
        Ok(self.kill())
    }

    fn kill(&mut self) -> Ran {
        self.0.kill().ok();
        let code = self.0.wait().unwrap().code().unwrap_or(-1);
        Ran { code, stdout: String::new(), stderr: fs::read_to_string(&self.1).unwrap() }
    }
}

impl Drop for Bot {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

/// What a run says of itself, without the long texts that it may have answered with.
fn brief(ran: &Ran) -> String {
    let stdout: String = ran.stdout.chars().take(200).collect();
    format!("exit code {}: {stdout} …\n{}", ran.code, ran.stderr)
}

/// A process that was started in this world and still runs, where the system says so (Linux).
fn survivor(env: &TestEnv) -> Option<String> {
    let sign = format!("WORKSPACE_DIR={}", env.workspace().display());
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    processes
        .filter(|process| process.file_name().to_string_lossy().bytes().all(|byte| byte.is_ascii_digit()))
        .find(|process| {
            let environ = fs::read(process.path().join("environ")).unwrap_or_default();
            environ.split(|byte| *byte == 0).any(|variable| variable == sign.as_bytes())
        })
        .map(|process| {
            let command = fs::read(process.path().join("cmdline")).unwrap_or_default();
            format!("{} ({})", process.file_name().display(), String::from_utf8_lossy(&command).replace('\0', " "))
        })
}
