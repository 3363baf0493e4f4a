//! A story's world behind the network: its proxies with their guards, and the checks of the requests' times and of secrets.

use std::{
    fs,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use serde_json::Value;

use super::{
    EDIT, FIRST_UPDATE, Play, QUESTION, TYPING, Trial,
    bots::{live_with_bot, live_with_files, live_with_question, live_with_webhook, look_with_bot},
    fault::{Knowledge, Target},
    proxy::{Exchange, Guard, Proxy},
    wire::{DOWNLOAD, LINE},
};
use crate::{
    support::{
        claude::API_KEY,
        env::{ProgramOutput, TestEnv},
        git_http::GitHttp,
        http::Request,
        telegram::TOKEN,
    },
    world::{Story, World, files},
};

/// The remote's password, plain and as sent over the network.
const PASSWORD: &str = "hunter2-PassWord";
const PASSWORD_BASE64: &str = "YW5uOmh1bnRlcjItUGFzc1dvcmQ=";
/// The time limits for a sign of progress and for a change of the progress line.
const SIGN_WITHIN: Duration = Duration::from_secs(40);
const CHANGE_WITHIN: Duration = Duration::from_secs(4);
/// The form of messages in a request.
const SHOWN: &str = r"<messages>\n<message id";

/// A story's world with every server behind a proxy.
pub(super) struct Scene {
    // Declared before the world, so the servers behind the proxies are dropped last.
    pub(super) telegram: Proxy,
    pub(super) claude: Proxy,
    git: Proxy,
    _git_server: GitHttp,
    pub(super) world: World,
    play: Play,
    /// Set when the model needn't wait any more.
    is_played: Arc<AtomicBool>,
}

impl Scene {
    /// Opens a scene. `label`: the request that will fail.
    pub(super) fn open(story: &Story, play: Play, label: Option<&str>) -> Self {
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

    pub(super) fn proxies(&self) -> [(Target, &Proxy); 3] {
        [(Target::Telegram, &self.telegram), (Target::Claude, &self.claude), (Target::Git, &self.git)]
    }

    fn proxy(&self, target: Target) -> &Proxy {
        match target {
            Target::Telegram => &self.telegram,
            Target::Claude => &self.claude,
            Target::Git => &self.git,
        }
    }

    /// Runs the story's programs, with the trial's fault if there is one.
    pub(super) fn play(&mut self, trial: Option<&Trial>) -> Result<ProgramOutput, String> {
        if let Some(trial) = trial {
            self.proxy(trial.target).order(trial.order.clone());
        }
        let ran = match self.play {
            Play::Wake => self.world.env.wake(&["--once", "--no-console", "--json"]),
            Play::Bot => live_with_bot(&mut self.world, Some(&self.telegram))?,
            Play::Webhook => live_with_webhook(&mut self.world, &self.telegram)?,
            Play::Files | Play::Long => live_with_files(&mut self.world, Some(&self.telegram))?,
            Play::Question => live_with_question(&mut self.world, &self.telegram)?,
        };
        self.is_played.store(true, Ordering::Relaxed);
        if !matches!(ran.code, 0 | 1) || ran.notices().contains("panicked") {
            return Err(format!("a run that ended badly: {}", brief(&ran)));
        }
        Ok(ran)
    }

    /// Checks that a server which asked for a pause isn't asked again within it, by the same run or the next.
    pub(super) fn check_waits(&mut self, trial: &Trial) -> Result<(), String> {
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
        // The other methods are repeated by a running bot, within its run.
        let is_kept = matches!(label.as_str(), "sendMessage" | LINE | QUESTION);
        if !is_kept && trial.target == Target::Telegram && !is_of_files {
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
        // Forms have random boundaries, so no two have the same bytes.
        let is_any_its = trial.target == Target::Claude || is_of_files || label == QUESTION;
        let is_early = asked.iter().any(|exchange| is_any_its || exchange.body == body);
        if is_early { Err(format!("{label} came again before its time: {}", brief(&ran))) } else { Ok(()) }
    }

    /// Checks that no file except git's own configuration, no message, no commit and no output holds the servers' secrets. The faults
    /// echo them wherever they can.
    pub(super) fn check_secrets(&self, ran: &ProgramOutput) -> Result<(), String> {
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

/// Checks that a poll confirms only stored updates.
fn guard(env: &TestEnv, play: Play) -> Guard {
    const MESSAGE: &str = "SELECT EXISTS (SELECT 1 FROM incoming_messages WHERE update_id = ?1)";
    const COMMAND: &str = "SELECT EXISTS (SELECT 1 FROM outgoing_messages WHERE key LIKE '%/' || ?1)";
    const PRESS: &str = "SELECT EXISTS (SELECT 1 FROM approvals WHERE state <> 'pending' AND ?1 > 0)";
    let updates: &[(i64, &str)] = match play {
        Play::Question => &[(0, MESSAGE), (1, PRESS)],
        Play::Files => &[(0, MESSAGE), (1, MESSAGE), (2, MESSAGE)],
        Play::Long => &[(0, MESSAGE)],
        // The third update is a stranger's.
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

/// Makes the model think until people see a sign of it, and each turn last until the next sign.
fn patience(play: Play, label: Option<&str>, telegram: &Proxy, is_over: Arc<AtomicBool>) -> Option<Guard> {
    // If sending the line itself fails, the line may never be changed.
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
            // A person's commit alone shows no sign.
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
        Play::Wake | Play::Bot | Play::Webhook | Play::Question => None,
    }
}

/// A run's own report, without long answers.
pub(super) fn brief(ran: &ProgramOutput) -> String {
    let stdout: String = ran.stdout.chars().take(200).collect();
    format!("exit code {}: {stdout} …\n{}", ran.code, ran.notices())
}

/// A process that was started in this world and still runs, where the system shows that (Linux).
pub(super) fn survivor(env: &TestEnv) -> Option<String> {
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
