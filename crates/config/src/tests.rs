use std::{fs, os::unix::fs::PermissionsExt as _};

use chrono::NaiveTime;

use reveille_base::types::ChatRef;

use super::*;

const TOKEN: &str = "123456789:AAExampleExampleExampleExampleExamp";
const KEY: &str = "sk-ant-example-000000000000";

/// An empty home, workspace and current directory for one test.
struct Place {
    root: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        for dir in ["home", "work", "cwd"] {
            fs::create_dir(root.path().join(dir)).unwrap();
        }
        Self { root }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        path
    }

    /// Reads the settings from exactly this environment plus `HOME`.
    fn bare(&self, env: &[(&str, &str)]) -> Result<Config, ConfigError> {
        let mut all = BTreeMap::from([("HOME".to_owned(), self.path("home").display().to_string())]);
        all.extend(env.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
        Config::from_sources(&all, None, Some("Europe/Berlin"))
    }

    /// Reads the settings from `cwd/.env`, named by `--env-file`, in an empty environment.
    fn named(&self, text: &str) -> Result<Config, ConfigError> {
        let file = self.file("cwd/.env", text);
        let env = BTreeMap::from([("HOME".to_owned(), self.path("home").display().to_string())]);
        Config::from_sources(&env, Some(&file), Some("Europe/Berlin"))
    }

    /// Reads the settings with the workspace `work`.
    fn config(&self, env: &[(&str, &str)]) -> Result<Config, ConfigError> {
        let work = self.path("work").display().to_string();
        let mut all = vec![("WORKSPACE_DIR", work.as_str())];
        all.extend_from_slice(env);
        self.bare(&all)
    }
}

/// The settings with these variables and nothing else.
fn config(env: &[(&str, &str)]) -> Config {
    Place::new().config(env).unwrap()
}

/// Checks that each of these values is refused, and that only this variable is named.
fn refuses(name: &str, values: &[&str]) {
    for value in values {
        let error = Place::new().config(&[(name, value)]).expect_err(value);
        let named: Vec<_> = error.problems.iter().map(|problem| problem.subject.as_str()).collect();
        assert_eq!(named, [name], "{value:?}");
        let text = error.to_string();
        assert!(text.contains("expected") && text.contains("from the environment"), "{text}");
        let shown = types::without_userinfo(value);
        assert!(text.contains(&format!("{shown:?}")) || text.contains("not shown"), "{text}");
    }
}

fn subjects(error: &ConfigError) -> Vec<&str> {
    error.problems.iter().map(|problem| problem.subject.as_str()).collect()
}

#[test]
fn an_empty_environment_gives_a_working_configuration() {
    let place = Place::new();
    let config = place.bare(&[]).unwrap();
    assert_eq!(config.workspace_dir, place.path("home/.local/share/reveille"));
    assert_eq!(config.repo_dir(), config.workspace_dir.join("brain"));
    assert_eq!(config.db_path(), config.workspace_dir.join("messages.db"));
    assert_eq!(config.lock_path(), config.workspace_dir.join(".wake-lock"));
    assert_eq!(config.logs_dir(), config.workspace_dir.join("logs"));
    assert_eq!(config.policy_path(), config.workspace_dir.join("policy.toml"));
    assert_eq!(config.telegram_api_url, "https://api.telegram.org");
    assert_eq!(config.anthropic_base_url, "https://api.anthropic.com");
    assert_eq!((config.model.as_str(), config.effective_model()), ("claude-sonnet-5-5", "offline"));
    assert_eq!(config.timezone, "Europe/Berlin".parse::<reveille_base::zone::Tz>().unwrap());
    assert_eq!(config.autonomy, Autonomy::Smart);
    assert_eq!(config.daily_budget_usd, 5.0);
    assert_eq!([config.wake_timeout, config.stale_lock, config.pull_every].map(|d| d.as_secs() / 60), [60, 15, 30]);
    assert_eq!((config.disk_reserve, config.keep), (Reserve::from_mib(100), Some(Duration::from_secs(30 * 86_400))));
    assert_eq!((config.tell_per_day, config.owner_chat, config.log_level), (5, ChatRef::TERMINAL, None));
    let quiet = config.quiet_hours.unwrap();
    assert_eq!((quiet.from.to_string(), quiet.until.to_string()), ("22:00:00".to_owned(), "07:00:00".to_owned()));
    assert!(config.repo_url.is_none() && config.telegram_token.is_none() && config.whisper_model.is_none());
    assert_eq!((config.env_file, config.notes, config.no_color), (None, vec![], false));
}

#[test]
fn the_example_names_every_variable_with_its_default() {
    let text = include_str!("../../../.env.example");
    assert_eq!(text, render_example(), "cargo run -p reveille-config --example env_example > .env.example");
    let named: Vec<&str> = text
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with("# "))
        .map(|line| line.trim_start_matches('#').split_once('=').unwrap().0)
        .collect();
    assert_eq!(named, VARIABLES);

    let place = Place::new();
    let settings = |text: &str| format!("{:?}", place.named(text).unwrap());
    let all_set: String = text
        .lines()
        .filter(|line| !line.starts_with("# "))
        .fold(String::new(), |all, line| all + line.trim_start_matches('#') + "\n");
    let defaults = settings("");
    assert_eq!(settings(text), defaults);
    // For three variables, setting the default differs from leaving it unset: MODEL then needs a key, an empty MONTHLY_BUDGET_USD is
    // noted, and REVEILLE_LOG also applies on a terminal.
    let comment_out = |text: &str, name: &str| text.replace(&format!("\n{name}="), &format!("\n# {name}="));
    let mostly_set = ["MODEL", "MONTHLY_BUDGET_USD", "REVEILLE_LOG"]
        .iter()
        .fold(all_set.clone(), |text, name| comment_out(&text, name));
    assert_eq!(settings(&mostly_set), defaults);
    assert!(all_set.contains(&format!("\nMODEL={}\n", place.bare(&[]).unwrap().model)));
}

#[test]
fn a_workspace_path_is_absolute_and_a_repository_name_plain() {
    refuses(
        "REPO_NAME",
        &["a/b", "..", ".git", "-x", "logs", "Voice", "models", "scratch", "mcp", "messages.db-wal", "plan-b", "a b"],
    );
    assert_eq!(config(&[("REPO_NAME", "my-brain_2.0")]).repo_name, "my-brain_2.0");

    let place = Place::new();
    let at = |dir: &str| place.bare(&[("WORKSPACE_DIR", dir)]);
    assert_eq!(at("~/r").unwrap().workspace_dir, place.path("home/r"));
    assert_eq!(at("/srv/r").unwrap().workspace_dir, Path::new("/srv/r"));
    for wrong in ["relative", "./r", "~other/r", "/srv/../r"] {
        let error = at(wrong).unwrap_err();
        assert_eq!(subjects(&error), ["WORKSPACE_DIR"]);
        assert!(error.to_string().contains(wrong), "{error}");
    }
    let data = place.bare(&[("XDG_DATA_HOME", "/data")]).unwrap();
    assert_eq!(data.workspace_dir, Path::new("/data/reveille"));
    assert_eq!(
        place.bare(&[("XDG_DATA_HOME", "data")]).unwrap().workspace_dir,
        place.path("home/.local/share/reveille")
    );

    let homeless = Config::from_sources(&BTreeMap::new(), None, None).unwrap_err();
    assert_eq!(subjects(&homeless), ["WORKSPACE_DIR"]);
    assert!(homeless.to_string().contains("HOME isn't set"));
}

#[test]
fn only_remotes_that_git_clones_without_running_programs_are_valid() {
    for right in [
        "https://example.org/me/brain.git",
        "ssh://git@example.org:22/b",
        "git@example.org:me/b.git",
        "/srv/b.git",
        "file:///srv/b.git",
        "http://127.0.0.1:8080/b",
    ] {
        assert_eq!(config(&[("REPO_URL", right)]).repo_url.unwrap().expose(), right);
    }
    refuses(
        "REPO_URL",
        &[
            "--upload-pack=x",
            "ext::sh -c x",
            "brain",
            "ssh://-oProxyCommand=x/b",
            "-x:y",
            "http://example.org/b",
            "ftp://example.org/b",
            "git@host:",
        ],
    );
    let config = config(&[("REPO_URL", "https://me:pa55@example.org/b")]);
    assert_eq!(config.repo_url.as_ref().unwrap().to_string(), "https://***@example.org/b");
    assert!(!format!("{config:?}").contains("pa55"));
}

#[test]
fn servers_that_get_secrets_are_encrypted_or_local() {
    for name in ["TELEGRAM_API_URL", "ANTHROPIC_BASE_URL"] {
        for right in ["https://example.org/base", "http://127.0.0.1:8081", "http://localhost:1", "http://[::1]:9"] {
            assert!(Place::new().config(&[(name, right)]).is_ok(), "{right}");
        }
        refuses(
            name,
            &["example.org", "ftp://example.org", "https://", "http://127.0.0.1.example.org", "https://a?b=c"],
        );
        let plain = Place::new().config(&[(name, "http://example.org")]).unwrap_err().to_string();
        assert!(plain.contains("https") && plain.contains("could read"), "{plain}");
        let leak = Place::new().config(&[(name, "https://me:hunter2@example.org")]).unwrap_err().to_string();
        assert!(!leak.contains("hunter2"), "{leak}");
    }
    assert_eq!(config(&[("TELEGRAM_API_URL", "https://example.org/")]).telegram_api_url, "https://example.org");
    assert_eq!(config(&[("ANTHROPIC_BASE_URL", "http://[::1]:9/")]).anthropic_base_url, "http://[::1]:9");
}

#[test]
fn chats_are_numbers_and_the_owner_is_one_of_them() {
    let chats = config(&[("ALLOWED_CHAT_IDS", "-1001234567890, 42,42 ,7,")]);
    assert_eq!(
        (chats.allowed_chats, chats.owner_chat),
        ([-1_001_234_567_890, 42, 7].map(ChatRef::from_telegram).to_vec(), ChatRef::from_telegram(42))
    );
    assert_eq!(config(&[("ALLOWED_CHAT_IDS", "-5")]).owner_chat, ChatRef::TERMINAL);
    refuses("ALLOWED_CHAT_IDS", &["@me", "1,two", "0", "1.5", "99999999999999999999", ",", "1;2"]);

    let with = |owner| Place::new().config(&[("ALLOWED_CHAT_IDS", "42,7"), ("OWNER_CHAT_ID", owner)]);
    assert_eq!(with("7").unwrap().owner_chat, ChatRef::from_telegram(7));
    assert_eq!(with("0").unwrap().owner_chat, ChatRef::TERMINAL);
    assert_eq!(subjects(&with("8").unwrap_err()), ["OWNER_CHAT_ID"]);
    refuses("OWNER_CHAT_ID", &["me", "8"]);
}

#[test]
fn the_small_settings_have_bounds() {
    assert_eq!(
        config(&[("TIMEZONE", "Asia/Kathmandu")]).timezone,
        "Asia/Kathmandu".parse::<reveille_base::zone::Tz>().unwrap()
    );
    refuses("TIMEZONE", &["Berlin", "UTC+1", "CEST"]);
    assert_eq!(config(&[("AUTONOMY", "0")]).autonomy, Autonomy::AskAll);
    assert_eq!(config(&[("AUTONOMY", "2")]).autonomy, Autonomy::Full);
    refuses("AUTONOMY", &["3", "-1", "full", "01"]);
    assert_eq!(config(&[("DAILY_BUDGET_USD", "0")]).daily_budget_usd, 0.0);
    assert_eq!(config(&[("DAILY_BUDGET_USD", "2.50")]).daily_budget_usd, 2.5);
    assert_eq!(config(&[("OPENAI_PRICE", "0.28 / 0.42")]).openai_price, Some((0.28, 0.42)));
    let free = config(&[("OPENAI_PRICE", "0/0")]);
    assert!(free.is_free("openai:x") && !free.is_local("openai:x") && !free.is_free("claude-sonnet-5-5"));
    refuses("OPENAI_PRICE", &["0.28", "1/", "-1/1", "nan/1", "1/1/1"]);
    refuses("DAILY_BUDGET_USD", &["-1", "inf", "nan", "5 USD", "1,50", "1e9"]);
    let minutes = [("WAKE_TIMEOUT_MIN", "1"), ("STALE_LOCK_MIN", "2"), ("PULL_EVERY_MIN", "1440")];
    let bounded = config(&minutes);
    assert_eq!([bounded.wake_timeout, bounded.stale_lock, bounded.pull_every].map(|d| d.as_secs()), [60, 120, 86_400]);
    for (name, _) in minutes {
        refuses(name, &["0", "-1", "1441", "1.5", "an hour", "99999999999999999999"]);
    }
    assert_eq!(config(&[("DISK_RESERVE_MB", "0")]).disk_reserve, Reserve::from_mib(0));
    assert_eq!(config(&[("DISK_RESERVE_MB", "1048576")]).disk_reserve.bytes(), 1 << 40);
    refuses("DISK_RESERVE_MB", &["-1", "1048577", "100M", "0.5"]);
    assert_eq!(config(&[("KEEP_DAYS", "0")]).keep, None);
    assert_eq!(config(&[("KEEP_DAYS", "2")]).keep, Some(Duration::from_secs(172_800)));
    refuses("KEEP_DAYS", &["-1", "3651", "for ever", "1.5"]);
    assert_eq!(config(&[("TELL_PER_DAY", "0")]).tell_per_day, 0);
    refuses("TELL_PER_DAY", &["101", "-1", "few"]);
    assert_eq!(config(&[("REVEILLE_LOG", "debug")]).log_level, Some(tracing::Level::DEBUG));
    refuses("REVEILLE_LOG", &["loud", "INFO,hyper=off"]);
    refuses("LOG_FORMAT", &["xml", "JSON"]);
    assert_eq!(config(&[("LOG_FORMAT", "json")]).log_format, LogFormat::Json);
    assert!(config(&[("RUST_LOG", "warn,reveille::bot=debug")]).log_targets.is_some());
    let odd = config(&[("RUST_LOG", "reveille=loudly")]);
    assert!(odd.log_targets.is_none() && odd.notes.concat().contains("RUST_LOG is ignored"), "{:?}", odd.notes);
    assert_eq!(config(&[("WHISPER_MODEL", "/m/base.bin")]).whisper_model.unwrap(), Path::new("/m/base.bin"));
    refuses("WHISPER_MODEL", &["base.bin"]);
    refuses("MODEL", &["claude sonnet", "claude\u{7}"]);
    assert!(config(&[("NO_COLOR", "1")]).no_color && config(&[("TERM", "dumb")]).no_color);
}

#[test]
fn a_fixed_time_stops_the_clock() {
    let fixed = config(&[("REVEILLE_NOW", "2026-11-21T10:00:00+01:00")]);
    assert_eq!(reveille_base::clock::format_rfc3339(fixed.clock().now()), "2026-11-21T09:00:00.000Z");
    assert!(fixed.notes.iter().any(|note| note.contains("REVEILLE_NOW")));
    refuses("REVEILLE_NOW", &["now", "2026-11-21", "2026-11-21 10:00:00"]);
}

#[test]
fn quiet_hours_may_cross_midnight() {
    let at = |text: &str| NaiveTime::parse_from_str(text, "%H:%M").unwrap();
    let night = config(&[]).quiet_hours.unwrap();
    assert_eq!(
        ["21:59", "22:00", "00:00", "06:59", "07:00"].map(|t| night.contains(at(t))),
        [false, true, true, true, false]
    );
    let noon = config(&[("QUIET_HOURS", "12:00 - 13:30")]).quiet_hours.unwrap();
    assert_eq!(["11:59", "12:00", "13:29", "13:30"].map(|t| noon.contains(at(t))), [false, true, true, false]);
    assert_eq!(config(&[("QUIET_HOURS", "none")]).quiet_hours, None);
    refuses("QUIET_HOURS", &["22-7", "22:00", "22:00-22:00", "25:00-07:00", "always"]);
}

#[test]
fn a_model_needs_a_key_and_can_be_switched_off() {
    assert_eq!(config(&[("ANTHROPIC_API_KEY", KEY)]).effective_model(), "claude-sonnet-5-5");
    assert_eq!(config(&[("ANTHROPIC_API_KEY", KEY), ("MODEL", "offline")]).effective_model(), "offline");
    let keyless = config(&[("MODEL", "claude-x")]);
    assert_eq!(keyless.effective_model(), "offline");
    assert!(keyless.notes[0].contains("ANTHROPIC_API_KEY"));
    refuses("ANTHROPIC_API_KEY", &["two words", "ключ"]);
}

#[test]
fn claude_code_needs_no_key_because_it_may_have_its_own_login() {
    let own = config(&[("MODEL", "claude-code")]);
    assert_eq!((own.effective_model(), own.notes.as_slice()), (CLAUDE_CODE, &[][..]));
    assert_eq!((own.claude_code.as_path(), own.claude_code_model.as_str()), (Path::new("claude"), "claude-sonnet-5-5"));
    let said =
        config(&[("CLAUDE_CODE", "/opt/claude"), ("CLAUDE_CODE_MODEL", "opus"), ("CLAUDE_CODE_OAUTH_TOKEN", KEY)]);
    assert_eq!((said.claude_code.as_path(), said.claude_code_model.as_str()), (Path::new("/opt/claude"), "opus"));
    assert!(said.secrets().iter().any(|secret| secret.expose() == KEY));
    refuses("CLAUDE_CODE", &["bin/claude", "../claude", "-p", "claude --help"]);
}

#[test]
fn the_bot_requires_a_token() {
    let error = config(&[]).require_telegram().unwrap_err();
    assert_eq!(subjects(&error), ["TELEGRAM_BOT_TOKEN"]);
    let ready = config(&[("TELEGRAM_BOT_TOKEN", TOKEN)]);
    assert_eq!(ready.require_telegram().unwrap().expose(), TOKEN);
    assert_eq!(ready.bot_id(), Some(123_456_789));
    refuses("TELEGRAM_BOT_TOKEN", &["secret", "12:", ":abc", "bot12:abc", "12:a b", "0:abc"]);
}

#[test]
fn secrets_are_never_shown() {
    let secrets = config(&[("TELEGRAM_BOT_TOKEN", TOKEN), ("ANTHROPIC_API_KEY", KEY)]);
    let shown = format!("{secrets:?}");
    assert!(!shown.contains(TOKEN) && !shown.contains(KEY) && shown.contains("***"), "{shown}");

    let wrong = [
        ("TELEGRAM_BOT_TOKEN", "hunter2"),
        ("ANTHROPIC_API_KEY", "hunter2 hunter2"),
        ("ALLOWED_CHAT_IDS", TOKEN),
        ("MODEL", "sk-ant-hunter2 x"),
    ];
    let error = Place::new().config(&wrong).unwrap_err();
    assert_eq!(error.problems.len(), 4);
    let text = format!("{error} {error:?}");
    assert!(!text.contains("hunter2") && !text.contains("AAExample"), "{text}");

    let place = Place::new();
    place.file("work/.env", "MODEL=offline\nTELEGRAM_BOT_TOKEN='1:hunter2\n");
    let text = place.config(&[]).unwrap_err().to_string();
    assert!(text.contains("line 2") && !text.contains("hunter2"), "{text}");
}

#[test]
fn all_problems_are_reported_at_once_with_their_source() {
    let place = Place::new();
    let file = place.file("work/.env", "AUTONOMY=9\nTELL_PER_DAY=many\n");
    let error = place.config(&[("REPO_NAME", "a/b")]).unwrap_err();
    assert_eq!(subjects(&error), ["REPO_NAME", "AUTONOMY", "TELL_PER_DAY"]);
    let text = error.to_string();
    assert!(text.starts_with("3 settings need correcting:"), "{text}");
    assert!(text.contains(&format!("AUTONOMY (from {}): expected 0 (ask", file.display())), "{text}");
    assert!(text.contains("got \"9\""), "{text}");
}

#[test]
fn the_environment_overrides_the_file_and_an_empty_value_counts_as_unset() {
    let place = Place::new();
    let file = place.file("work/.env", "\u{feff}export REPO_NAME='one' # name\nAUTONOMY=\"2\"\nMODEL=\n");
    let config = place.config(&[("REPO_NAME", "two"), ("AUTONOMY", ""), ("MODEL", " ")]).unwrap();
    assert_eq!((config.repo_name.as_str(), config.autonomy), ("two", Autonomy::Full));
    assert_eq!((config.model.as_str(), config.env_file), ("claude-sonnet-5-5", Some(file)));
}

#[test]
fn only_one_env_file_is_read_and_a_named_one_is_preferred() {
    let place = Place::new();
    place.file("work/.env", "AUTONOMY=2\n");
    assert_eq!(place.config(&[]).unwrap().autonomy, Autonomy::Full);
    let work = place.path("work");
    let named = place.named(&format!("WORKSPACE_DIR={}\nREPO_NAME=cwd\n", work.display())).unwrap();
    assert_eq!((named.workspace_dir, named.repo_name.as_str(), named.autonomy), (work, "cwd", Autonomy::Smart));
    assert_eq!(named.env_file, named.named_env_file);

    let env = BTreeMap::from([("HOME".to_owned(), place.path("home").display().to_string())]);
    let missing = Config::from_sources(&env, Some(&place.path("missing")), None).unwrap_err();
    assert_eq!(subjects(&missing), [place.path("missing").display().to_string()]);
}

#[test]
fn a_current_directorys_env_file_is_noted_if_it_has_settings_and_the_workspace_has_no_file() {
    let place = Place::new();
    let cwd = place.path("cwd");
    let notes = |place: &Place, env: &[(&str, &str)]| {
        let mut config = place.config(env).unwrap();
        config.note_ignored_env_file(&cwd);
        (config.notes, config.key_files)
    };
    let silent = (Vec::new(), Vec::new());
    assert_eq!(notes(&place, &[]), silent);
    place.file("cwd/.env", "OTHER=1\nnonsense\n");
    assert_eq!(notes(&place, &[]), silent);
    let file = place.file("cwd/.env", "AUTONOMY=yes\nMODEL=x y\n");
    let (texts, hidden) = notes(&place, &[]);
    assert!(texts[0].contains("It sets MODEL, AUTONOMY.") && texts[0].contains(&format!("mv {} ", file.display())));
    assert!(!texts[0].contains("x y"), "{texts:?}");
    assert_eq!(hidden, [file]);
    // The workspace's own file can't name another workspace, so the note says how to start with the file where it is.
    place.file("cwd/.env", "WORKSPACE_DIR=/elsewhere\n");
    assert!(notes(&place, &[]).0[0].contains("start with --env-file /"));
    place.file("work/.env", "AUTONOMY=1\n");
    assert_eq!(notes(&place, &[]), silent);
}

#[test]
fn an_empty_limit_is_noted_and_a_dollar_sign_is_accepted() {
    let place = Place::new();
    place.file("work/.env", "DAILY_BUDGET_USD=$2\nMONTHLY_BUDGET_USD=$20\n");
    let config = place.config(&[]).unwrap();
    assert_eq!((config.daily_budget_usd, config.monthly_budget_usd), (2.0, Some(20.0)));
    place.file("work/.env", "DAILY_BUDGET_USD=\nMONTHLY_BUDGET_USD=''\n");
    let notes = place.config(&[]).unwrap().notes;
    assert!(notes[0].starts_with("DAILY_BUDGET_USD is empty: the limit is 5 USD a day."), "{notes:?}");
    assert!(notes[1].starts_with("MONTHLY_BUDGET_USD is empty: there is no monthly limit."), "{notes:?}");
    // An empty variable in the environment leaves the file's value in force.
    place.file("work/.env", "DAILY_BUDGET_USD=1\n");
    let config = place.config(&[("DAILY_BUDGET_USD", "")]).unwrap();
    assert_eq!((config.daily_budget_usd, config.notes), (1.0, vec![]));
    refuses("MONTHLY_BUDGET_USD", &["2 EUR", "€2", "$", "$$2", "$-1", "${TWO}"]);
}

#[test]
fn a_workspaces_env_file_cannot_name_another_workspace() {
    let place = Place::new();
    place.file("home/.local/share/reveille/.env", "WORKSPACE_DIR=/elsewhere\n");
    assert_eq!(subjects(&place.bare(&[]).unwrap_err()), ["WORKSPACE_DIR"]);
    place.file("home/.local/share/reveille/.env", "WORKSPACE_DIR=~/.local/share/reveille\n");
    assert!(place.bare(&[]).is_ok());
}

#[test]
fn an_env_file_that_others_can_write_is_refused() {
    let place = Place::new();
    let file = place.file("work/.env", "AUTONOMY=2\n");
    for mode in [0o620, 0o602, 0o666] {
        fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
        let error = place.config(&[]).unwrap_err();
        assert_eq!(subjects(&error), [file.display().to_string()]);
        assert!(error.to_string().contains("chmod 600"), "{error}");
    }
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
    assert!(place.config(&[]).unwrap().notes[0].contains("can be read by other users"));
}

#[test]
fn mistakes_in_an_env_file_are_reported() {
    let place = Place::new();
    place.file("work/.env", "AUTONOMY=1\nAUTONOMY=2\nALOWED_CHAT_IDS=1\n");
    let error = place.config(&[]).unwrap_err();
    assert!(error.to_string().contains("AUTONOMY") && error.to_string().contains("twice"), "{error}");
    place.file("work/.env", "AUTONOMY=1\nAUTONOMY=1\nALOWED_CHAT_IDS=1\n");
    assert!(place.config(&[]).unwrap().notes[0].contains("ALOWED_CHAT_IDS"));
    let mangled = place.config(&[("MODEL", "a\u{fffd}b")]).unwrap_err();
    assert_eq!((subjects(&mangled), mangled.to_string().contains("UTF-8")), (vec!["MODEL"], true));
}

#[test]
fn secrets_come_from_files_too() {
    for (name, file_name, value) in [
        ("TELEGRAM_BOT_TOKEN", "TELEGRAM_BOT_TOKEN_FILE", TOKEN),
        ("ANTHROPIC_API_KEY", "ANTHROPIC_API_KEY_FILE", KEY),
        ("BRAVE_API_KEY", "BRAVE_API_KEY_FILE", KEY),
    ] {
        let place = Place::new();
        let file = place.file("home/secret", &format!("{value}\n"));
        let config = place.config(&[(file_name, "~/secret")]).unwrap();
        assert!(config.secrets().iter().any(|secret| secret.expose() == value), "{name}");
        let secret = match name {
            "ANTHROPIC_API_KEY" => config.anthropic_key,
            "BRAVE_API_KEY" => config.brave_key,
            _ => config.telegram_token,
        };
        assert_eq!(secret.unwrap().expose(), value);

        let wrong = |env: &[(&str, &str)]| {
            let error = place.config(env).unwrap_err();
            assert_eq!(subjects(&error), [file_name], "{error}");
            assert!(!error.to_string().contains(value), "{error}");
        };
        wrong(&[(file_name, "~/secret"), (name, value)]);
        wrong(&[(file_name, "secret")]);
        wrong(&[(file_name, "~/missing")]);
        place.file("home/secret", " \n");
        wrong(&[(file_name, "~/secret")]);
        fs::set_permissions(&file, fs::Permissions::from_mode(0o660)).unwrap();
        wrong(&[(file_name, "~/secret")]);
        place.file("home/secret", "not a key");
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
        assert_eq!(subjects(&place.config(&[(file_name, "~/secret")]).unwrap_err()), [name]);
    }
}

#[test]
fn all_secrets_are_known_for_redaction() {
    let secrets = |url: &str| {
        let env = [("TELEGRAM_BOT_TOKEN", TOKEN), ("ANTHROPIC_API_KEY", KEY), ("REPO_URL", url)];
        config(&env).secrets().iter().map(|secret| secret.expose().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(secrets("https://me:pass@example.org/b"), [TOKEN, KEY, "pass"]);
    assert_eq!(secrets("https://token@example.org/b@c"), [TOKEN, KEY, "token"]);
    assert_eq!(secrets("ssh://git@example.org/b"), [TOKEN, KEY]);
    let token = "glpat-0123456789abcdefgh";
    assert_eq!(secrets(&format!("https://{token}:x-oauth-basic@example.org/b")), [TOKEN, KEY, "x-oauth-basic", token]);
    assert_eq!(secrets("https://me:p%40ss@example.org/b"), [TOKEN, KEY, "p%40ss", "p@ss"]);
    assert!(config(&[]).secrets().is_empty());
}

proptest::proptest! {
    #[test]
    fn no_env_file_can_crash_us(text in "([A-Z_]{1,20}[= ]?[ -~\\n'\"\\\\$#{}]{0,30}\\n){0,6}") {
        let place = Place::new();
        place.file("work/.env", &text);
        if let Err(error) = place.config(&[]) {
            proptest::prop_assert!(!error.problems.is_empty());
        }
    }
}

#[test]
fn the_password_of_a_proxy_is_a_secret_but_its_address_is_not() {
    let config = config(&[
        ("HTTPS_PROXY", "http://ann:let-me-through@proxy.example:3128"),
        ("http_proxy", "http://proxy.example:3128"),
    ]);
    let secrets = config.secrets();
    let secrets: Vec<&str> = secrets.iter().map(Secret::expose).collect();
    assert_eq!(secrets, ["let-me-through"]);
}
