//! Layer 4: between the programs and Telegram, Claude and the git remote stands a network that fails at one request, once or for
//! the whole run. Then it has to be as if nothing had happened, but for what was told and what was in doubt.

mod bots;
mod fault;
mod proxy;
mod told;
mod wire;

use std::{
    fs,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};

use serde_json::Value;

use self::{
    bots::{live_with_bot, live_with_files, live_with_webhook, look_with_bot},
    fault::{Fault, Knowledge, Target},
    proxy::{Exchange, Guard, Order, Proxy, START},
    wire::{DOWNLOAD, LINE},
};
use super::{
    layer::{Layer, Recovery, Share},
    world::{Allowed, Story, World, files},
};
use crate::support::{
    claude::API_KEY,
    env::{Ran, TestEnv},
    git_http::GitHttp,
    http::Request,
    telegram::TOKEN,
};

/// Trials mostly wait.
const WORKERS: usize = 8;
/// The longest back-off that one run can leave.
const BACK_OFF_MIN: u32 = 10;
/// The remote's password, and as it goes over the network.
const PASSWORD: &str = "hunter2-PassWord";
const PASSWORD_BASE64: &str = "YW5uOmh1bnRlcjItUGFzc1dvcmQ=";
/// The first of the bot's updates.
const FIRST_UPDATE: i64 = 2_000;
/// What shows that an answer is on its way, and what changes the line that tells of progress.
const TYPING: &str = "sendChatAction";
const EDIT: &str = "editMessageText";
/// A sign of progress takes no longer; and a line that stands is changed within so long.
const SIGN_WITHIN: Duration = Duration::from_secs(40);
const CHANGE_WITHIN: Duration = Duration::from_secs(4);
/// How messages stand in a request.
const SHOWN: &str = r"<messages>\n<message id";
/// Texts that the bot story's wakes send at least.
const BOT_SENDS: usize = 3;

/// Which programs run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Play {
    /// One `wake --once` with Claude for a mind.
    Wake,
    /// A `bot` that polls twice and starts wakes.
    Bot,
    /// The same after its messages went to a webhook.
    Webhook,
    /// A `bot` that fetches a voice note and a photo, and whose wakes have Claude for a mind.
    Files,
    /// A `bot` whose wake takes so long that it tells of its progress.
    Long,
}

impl Play {
    const ALL: [Self; 5] = [Self::Wake, Self::Bot, Self::Webhook, Self::Files, Self::Long];

    /// What this play is there for: requests to Telegram, by name and number, that surely come in it; none where it is for all that
    /// come. Each goes through a fault of each kind, or, if `true`, through all.
    fn calls(self) -> &'static [(&'static str, usize, bool)] {
        match self {
            Self::Wake | Self::Bot => &[],
            // The bot asks first, then the program that removes it.
            Self::Webhook => &[("getWebhookInfo", 0, false), ("getWebhookInfo", 1, false), ("deleteWebhook", 0, false)],
            Self::Files => &[
                ("getFile", 0, true),
                (DOWNLOAD, 0, true),
                ("getFile", 1, false),
                (DOWNLOAD, 1, false),
                ("setMessageReaction", 0, false),
                (TYPING, 0, false),
                ("deleteMessage", 0, false),
            ],
            Self::Long => &[(LINE, 0, false), (EDIT, 0, false)],
        }
    }
}

/// One trial.
#[derive(Debug, Clone)]
struct Trial {
    play: Play,
    target: Target,
    order: Order,
}

/// The network's faults in some stories.
pub(crate) struct Network {
    wake: Story,
    bot: Story,
    files: Story,
    long: Story,
    trials: Vec<Trial>,
}

impl Network {
    pub(crate) fn open() -> Self {
        let wake = Story::talk();
        let bot = Story::day(|world| {
            live_with_bot(world, None).unwrap();
        });
        let mut network = Self { wake, bot, files: Story::files(), long: Story::plan(), trials: Vec::new() };
        // Side by side: they mostly wait.
        network.trials = thread::scope(|scope| {
            let network = &network;
            let plays = Play::ALL.map(|play| scope.spawn(move || network.trials_of(play)));
            plays.into_iter().flat_map(|trials| trials.join().expect("an undisturbed play")).collect()
        });
        network
    }

    /// Each request of an undisturbed run with each fault, once and lasting.
    fn trials_of(&self, play: Play) -> Vec<Trial> {
        let mut scene = Scene::open(self.story(play), play, None);
        scene.play(None).unwrap();
        if !play.calls().is_empty() {
            return trials_of_calls(play, &scene.telegram.exchanges());
        }
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
            Play::Bot | Play::Webhook => &self.bot,
            Play::Files => &self.files,
            Play::Long => &self.long,
        }
    }
}

/// The requests that a play is there for, each with its faults: once, and lasting where something is kept.
fn trials_of_calls(play: Play, exchanges: &[Exchange]) -> Vec<Trial> {
    let mut trials = Vec::new();
    for &(label, nth, is_essential) in play.calls() {
        let came = exchanges.iter().filter(|exchange| exchange.label == label).count();
        assert!(came > nth, "{play:?}: {label} came {came} times");
        for fault in if is_essential { Fault::of_files(label) } else { Fault::few(label) } {
            let order = |lasts| Order { fault, label: label.to_owned(), nth, lasts };
            let lengths = if is_essential { &[false, true][..] } else { &[false] };
            let trial = |lasts: &bool| Trial { play, target: Target::Telegram, order: order(*lasts) };
            trials.extend(lengths.iter().map(trial));
        }
    }
    trials
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
            Share::Sample => 70,
            Share::Nightly => self.trials.len() as u64,
        }
    }

    fn first(&self) -> Vec<u64> {
        let is_first = |trial: &Trial| {
            let order = &trial.order;
            let named = Fault::FIRST.iter().any(|(label, fault)| *label == order.label && *fault == order.fault);
            // What the bot's stories send comes in the first one's, too.
            named && !order.lasts && order.nth == 0 && !matches!(trial.play, Play::Bot | Play::Webhook)
        };
        (0..).zip(&self.trials).filter(|(_, trial)| is_first(trial)).map(|(id, _)| id).collect()
    }

    fn workers(&self) -> usize {
        WORKERS
    }

    fn trial(&self, id: u64) -> Result<Recovery, String> {
        let trial = usize::try_from(id).ok().and_then(|id| self.trials.get(id)).ok_or("there is no such trial")?;
        let story = self.story(trial.play);
        let mut scene = Scene::open(story, trial.play, Some(&trial.order.label));
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
    let exchanges = scene.telegram.exchanges();
    let unfetched = told::unfetched(&exchanges);
    let notice = |text: &str| told::is_notice(trial.target, text) || unfetched > 0 && told::is_of_file(text);
    let allowed = Allowed {
        notice: &notice,
        refused: sends.lost,
        unfetched,
        line: told::may_line_stand(&exchanges)?,
        regrouped: matches!(trial.play, Play::Bot | Play::Webhook),
    };
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
    /// Whether the mind needn't wait for anything any more.
    is_played: Arc<AtomicBool>,
}

impl Scene {
    /// `label`: the request that something will happen to.
    fn open(story: &Story, play: Play, label: Option<&str>) -> Self {
        let mut world = story.open();
        let git_server = GitHttp::start(world.env.root(), "ann", PASSWORD);
        let git = Proxy::start(Target::Git, &format!("http://127.0.0.1:{}", git_server.port()), None);
        let origin = git.url().replace("://", &format!("://ann:{PASSWORD}@"));
        world.env.unset("REPO_URL").git(&["remote", "set-url", "origin", &format!("{origin}/remote.git")]);
        world.env.git_in(&world.env.path("remote.git"), &["config", "http.receivepack", "true"]);
        let telegram = Proxy::start(Target::Telegram, &world.telegram.url(), Some(guard(&world.env, play)));
        world.env.set("TELEGRAM_API_URL", &telegram.url());
        let upstream = world.claude.as_ref().map_or_else(|| world.telegram.url(), |claude| claude.url());
        let is_played = Arc::<AtomicBool>::default();
        let claude = Proxy::start(Target::Claude, &upstream, patience(play, label, &telegram, Arc::clone(&is_played)));
        world.env.set("ANTHROPIC_BASE_URL", &claude.url());
        Self { telegram, claude, git, _git_server: git_server, world, play, is_played }
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
            Play::Webhook => live_with_webhook(&mut self.world, &self.telegram)?,
            Play::Files | Play::Long => live_with_files(&mut self.world, Some(&self.telegram))?,
        };
        self.is_played.store(true, Ordering::Relaxed);
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
        // A person may ask again at any time.
        if trial.play == Play::Webhook {
            return Ok(());
        }
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
        let is_of_files = matches!(label.as_str(), "getFile" | DOWNLOAD);
        // The others are asked for by a bot that goes on, within its run.
        if label != "sendMessage" && label != LINE && trial.target == Target::Telegram && !is_of_files {
            return Ok(());
        }
        let (minutes, seconds) = ((seconds - 1) / 60, (seconds - 1) % 60);
        self.world.env.at(&format!("2026-11-21T14:{:02}:{seconds:02}Z", 10 + minutes));
        let ran = if is_of_files {
            look_with_bot(&self.world)?
        } else {
            self.world.env.wake(&["--once", "--no-console", "--json"])
        };
        let asked: Vec<Exchange> = of_it(self).split_off(exchanges.len());
        let body = exchanges.last().map(|exchange| exchange.body.clone()).unwrap_or_default();
        let is_early =
            asked.iter().any(|exchange| trial.target == Target::Claude || is_of_files || exchange.body == body);
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

/// No poll may confirm what isn't stored.
fn guard(env: &TestEnv, play: Play) -> Guard {
    const MESSAGE: &str = "SELECT EXISTS (SELECT 1 FROM incoming_messages WHERE update_id = ?1)";
    const COMMAND: &str = "SELECT EXISTS (SELECT 1 FROM outgoing_messages WHERE key LIKE '%/' || ?1)";
    let updates: &[(i64, &str)] = match play {
        Play::Files => &[(0, MESSAGE), (1, MESSAGE), (2, MESSAGE)],
        Play::Long => &[(0, MESSAGE)],
        // The third is a stranger's.
        Play::Wake | Play::Bot | Play::Webhook => &[(0, MESSAGE), (1, COMMAND), (3, MESSAGE)],
    };
    let db = env.workspace().join("messages.db");
    Box::new(move |label, request: &Request| {
        let body: Value = serde_json::from_slice(&request.body).unwrap_or_default();
        let Some(offset) = body["offset"].as_i64().filter(|_| label == "getUpdates") else { return Ok(()) };
        let conn = rusqlite::Connection::open(&db).map_err(|error| error.to_string())?;
        let is = |sql: &str, id: i64| conn.query_row(sql, [id], |row| row.get::<_, bool>(0)).unwrap_or(false);
        for (nth, sql) in updates {
            let id = FIRST_UPDATE + nth;
            if id < offset && !is(sql, id) {
                return Err(format!("update {id} was confirmed and isn't stored"));
            }
        }
        Ok(())
    })
}

/// A mind that thinks until people were shown that it does, each of its turns until the next sign of it was given.
fn patience(play: Play, label: Option<&str>, telegram: &Proxy, is_over: Arc<AtomicBool>) -> Option<Guard> {
    // Where the line itself goes wrong it may never be changed.
    let last = if label == Some(LINE) { CHANGE_WITHIN } else { SIGN_WITHIN };
    let watch = telegram.watch();
    let wait_for = move |label: &str, at_most: Duration| {
        if !is_over.load(Ordering::Relaxed) {
            watch(label, at_most);
        }
    };
    let holds = |request: &Request, call: &str| request.text().contains(call);
    match play {
        Play::Files => Some(Box::new(move |_, request| {
            // Of a person's commit alone nobody waits to hear.
            if holds(request, SHOWN) {
                wait_for(TYPING, SIGN_WITHIN);
            }
            Ok(())
        })),
        Play::Long => Some(Box::new(move |_, request| {
            if holds(request, "toolu_0") {
                wait_for(LINE, SIGN_WITHIN);
            }
            if holds(request, "toolu_1") {
                wait_for(EDIT, last);
            }
            Ok(())
        })),
        Play::Wake | Play::Bot | Play::Webhook => None,
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
