//! All settings, in one table. It is the source of their names, secrets and defaults, and of `.env.example`.

use super::authority::Authority;

/// A setting.
#[derive(Debug)]
pub struct Setting {
    /// Its variable.
    pub name: &'static str,
    /// The variable that names a file with this secret; `None` if the setting is no secret.
    pub file: Option<&'static str>,
    /// The value if unset, as a person would write it; empty for none.
    pub default: &'static str,
    /// Its changes that need a code from the terminal.
    pub authority: Authority,
    /// The heading in `.env.example`.
    group: &'static str,
    /// The lines of explanation in `.env.example`; empty if the explanation of the setting above covers this one, too.
    help: &'static str,
    /// True if a person usually sets it: its line in `.env.example` isn't commented out.
    is_usual: bool,
}

/// OpenAI's own server.
pub(super) const OPENAI_BASE_URL: &str = "https://api.openai.com/v1";

const TELEGRAM: &str = "Telegram";
const MODEL: &str = "The AI model";
const SEARCH: &str = "Searching the memory by meaning";
const PLACES: &str = "Where things are";
const BEHAVIOUR: &str = "How it behaves";
const FAULTS: &str = "Logs and debugging";

/// A setting that is no secret.
const fn plain(
    group: &'static str,
    authority: Authority,
    name: &'static str,
    default: &'static str,
    help: &'static str,
) -> Setting {
    Setting { name, file: None, default, authority, group, help, is_usual: false }
}

/// A secret, which a file named by `file` may hold.
const fn secret(
    group: &'static str,
    authority: Authority,
    name: &'static str,
    file: &'static str,
    help: &'static str,
) -> Setting {
    Setting { name, file: Some(file), default: "", authority, group, help, is_usual: false }
}

impl Setting {
    /// A setting that a person usually sets.
    const fn usual(self) -> Self {
        Self { is_usual: true, ..self }
    }
}

/// All settings of Reveille, in the order of `.env.example`. `HOME`, `XDG_DATA_HOME`, `NO_COLOR` and `RUST_LOG` are shared with
/// other programs and come from the environment alone.
pub const SETTINGS: [Setting; 71] = [
    secret(TELEGRAM, Authority::Replaced, "TELEGRAM_BOT_TOKEN", "TELEGRAM_BOT_TOKEN_FILE", "The bot's token: talk to @BotFather on Telegram, send /newbot.").usual(),
    plain(TELEGRAM, Authority::AnyOrNone, "TELEGRAM_BOT_TOKEN_FILE", "", "Or the absolute path of a file that holds the token."),
    plain(TELEGRAM, Authority::People, "ALLOWED_CHAT_IDS", "", "Who may talk to it, besides people who paired: numeric chat ids, comma separated. If nobody is listed or paired, the bot\n\
         shows a one-time code in its terminal and pairs with whoever sends it. In a group, the group's id must be listed, and the\n\
         sender listed or paired.").usual(),
    plain(TELEGRAM, Authority::AnyOrNone, "OWNER_CHAT_ID", "", "The chat to which it may speak unasked (default: the first allowed id above 0, else whoever paired first, else the terminal, 0)."),
    plain(TELEGRAM, Authority::Any, "TELEGRAM_API_URL", "https://api.telegram.org", "Telegram's server; http only for a server on this machine."),
    plain(TELEGRAM, Authority::Unrelated, "TELEGRAM_RICH", "auto", "Rich messages, with tables, headings, nested lists, formulas and up to 32,768 characters, for answers to you that need them: auto,\n\
         once you confirmed that a sample shows well; always, without asking; never. Older Telegram apps show only a placeholder."),
    secret(MODEL, Authority::Replaced, "ANTHROPIC_API_KEY", "ANTHROPIC_API_KEY_FILE", "The key to Claude: https://console.anthropic.com. Without a key, it handles only what needs no AI model.").usual(),
    plain(MODEL, Authority::AnyOrNone, "ANTHROPIC_API_KEY_FILE", "", "Or the absolute path of a file that holds the key."),
    plain(MODEL, Authority::Any, "ANTHROPIC_BASE_URL", "https://api.anthropic.com", "The Messages API's server; http only for a server on this machine."),
    plain(MODEL, Authority::Providers, "MODEL", "claude-sonnet-5-5", "The model's id. offline uses no model even if there is a key. claude-code uses the Claude Code command, which has to be\n\
         installed: with the key above, else with the token below, else with its own login in your home directory. openai:NAME is a model\n\
         of the OpenAI-compatible server below, such as openai:qwen3:8b of an Ollama on this machine. bedrock:NAME and vertex:NAME are Claude on\n\
         Amazon Bedrock and on Google Cloud (docs/MODELS.md).\n\
         Several, separated by commas, are a chain: if one can't be used, the next one is (claude-sonnet-5-5,openai:qwen3:8b,offline)."),
    plain(MODEL, Authority::Providers, "MODEL_SIMPLE", "", "The model that starts on each message. If its plan says that the work isn't quick, MODEL continues (default: none, MODEL does all)."),
    plain(MODEL, Authority::Providers, "MODEL_REFLECT", "", "The model for the nightly reflection (default: MODEL)."),
    plain(MODEL, Authority::Any, "OPENAI_BASE_URL", OPENAI_BASE_URL, "For MODEL=openai:NAME, and EMBED_MODEL=openai:NAME: an OpenAI-compatible API; http only for a server on this machine."),
    secret(MODEL, Authority::Replaced, "OPENAI_API_KEY", "OPENAI_API_KEY_FILE", "The key to that server. Nobody else gets it; a server of your own may need none."),
    plain(MODEL, Authority::AnyOrNone, "OPENAI_API_KEY_FILE", "", "Or the absolute path of a file that holds the key."),
    plain(MODEL, Authority::Any, "OPENAI_PRICE", "", "What its models cost, in US dollars per million tokens in and out, such as 0.28/0.42. Unset: the price of the most expensive Claude model."),
    plain(MODEL, Authority::Any, "AWS_REGION", "", "For MODEL=bedrock:NAME: the region, such as us-east-1."),
    secret(MODEL, Authority::Replaced, "AWS_BEARER_TOKEN_BEDROCK", "AWS_BEARER_TOKEN_BEDROCK_FILE", "A key for Bedrock alone (an Amazon Bedrock API key); else requests are signed with the access key below."),
    plain(MODEL, Authority::AnyOrNone, "AWS_BEARER_TOKEN_BEDROCK_FILE", "", "Or the absolute path of a file that holds it."),
    plain(MODEL, Authority::Replaced, "AWS_ACCESS_KEY_ID", "", "An AWS access key: its id, the secret key, and the session token if it is temporary."),
    secret(MODEL, Authority::Replaced, "AWS_SECRET_ACCESS_KEY", "AWS_SECRET_ACCESS_KEY_FILE", ""),
    plain(MODEL, Authority::AnyOrNone, "AWS_SECRET_ACCESS_KEY_FILE", "", ""),
    secret(MODEL, Authority::Replaced, "AWS_SESSION_TOKEN", "AWS_SESSION_TOKEN_FILE", ""),
    plain(MODEL, Authority::AnyOrNone, "AWS_SESSION_TOKEN_FILE", "", ""),
    plain(MODEL, Authority::AnyOrNone, "BEDROCK_BASE_URL", "", "Another server that speaks Anthropic's Messages API below this address (default: bedrock-mantle in the region)."),
    plain(MODEL, Authority::Any, "GOOGLE_CLOUD_PROJECT", "", "For MODEL=vertex:NAME: the Google Cloud project that pays, and where the model runs."),
    plain(MODEL, Authority::Any, "GOOGLE_CLOUD_LOCATION", "global", ""),
    plain(MODEL, Authority::AnyOrNone, "GOOGLE_APPLICATION_CREDENTIALS", "", "The absolute path of a service account's key, or of a login (default: the one that `gcloud auth application-default login` keeps)."),
    plain(MODEL, Authority::AnyOrNone, "VERTEX_WORKSPACE", "", "The workspace, where Anthropic runs the models on Google Cloud (default: none, Google runs them)."),
    plain(MODEL, Authority::AnyOrNone, "VERTEX_BASE_URL", "", "Another server in place of Google's."),
    plain(MODEL, Authority::Unrelated, "IMAGES_MAX", "8", "How many pictures a conversation starts with (the newest ones); each costs up to 5,000 tokens. The others are only named."),
    plain(MODEL, Authority::Any, "CLAUDE_CODE", "claude", "For MODEL=claude-code: the command, by its name on PATH or its absolute path."),
    plain(MODEL, Authority::Unrelated, "CLAUDE_CODE_MODEL", "claude-sonnet-5-5", "For MODEL=claude-code: the model it uses."),
    secret(MODEL, Authority::Replaced, "CLAUDE_CODE_OAUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN_FILE", "For MODEL=claude-code: the token of a subscription, from `claude setup-token` (default: none)."),
    plain(MODEL, Authority::AnyOrNone, "CLAUDE_CODE_OAUTH_TOKEN_FILE", "", "Or the absolute path of a file that holds the token."),
    plain(MODEL, Authority::Higher, "DAILY_BUDGET_USD", "5", "The most that model calls may cost a day, in US dollars: 5, 2.50 or $2."),
    plain(MODEL, Authority::Higher, "MONTHLY_BUDGET_USD", "", "The most that model calls may cost in a calendar month, in US dollars (default: no limit except the daily one)."),
    secret(MODEL, Authority::Unrelated, "BRAVE_API_KEY", "BRAVE_API_KEY_FILE", "The key to Brave's search API (default: none, the web is searched with DuckDuckGo): https://brave.com/search/api"),
    plain(MODEL, Authority::Any, "BRAVE_API_KEY_FILE", "", "Or the absolute path of a file that holds the key."),
    plain(SEARCH, Authority::Any, "EMBED_MODEL", "", "Lets search also find texts by their meaning (default: none, by words only): the absolute path of a folder with a sentence\n\
         encoder, which runs on this machine (`scripts/fetch-model embed` downloads one and prints its path); or openai:NAME or\n\
         gemini:NAME, a model in the cloud, which gets everything that is searched once you ran `wake memory embed allow`."),
    secret(SEARCH, Authority::Replaced, "GEMINI_API_KEY", "GEMINI_API_KEY_FILE", "For EMBED_MODEL=gemini:NAME: the key, https://aistudio.google.com/apikey"),
    plain(SEARCH, Authority::AnyOrNone, "GEMINI_API_KEY_FILE", "", "Or the absolute path of a file that holds the key."),
    plain(SEARCH, Authority::Any, "GEMINI_BASE_URL", "https://generativelanguage.googleapis.com", "The Gemini API's server; http only for a server on this machine."),
    plain(PLACES, Authority::Any, "WORKSPACE_DIR", "~/.local/share/reveille", "The folder for everything that Reveille keeps (default: $XDG_DATA_HOME/reveille, else the one below). Set it only in the environment or in a\n\
         file given with --env-file: the .env inside a workspace can't name another workspace."),
    plain(PLACES, Authority::Any, "REPO_NAME", "brain", "The name of the memory's git repository in the workspace."),
    plain(PLACES, Authority::Any, "REPO_URL", "", "A remote to clone the memory from at the first run and to push it to (default: none, the memory stays here). If it can't be\n\
         reached then, work starts without it; the two are joined as soon as it answers."),
    plain(PLACES, Authority::AnyOrNone, "DATABASE_URL", "", "A PostgreSQL that several machines share (default: none, the database is a file in the workspace), without its password:\n\
         postgres://reveille@db.example.org/reveille. See docs/SETTINGS.md."),
    secret(PLACES, Authority::Unrelated, "DATABASE_PASSWORD", "DATABASE_PASSWORD_FILE", "The password to it (default: none)."),
    plain(PLACES, Authority::Any, "DATABASE_PASSWORD_FILE", "", "Or the absolute path of a file that holds the password."),
    plain(PLACES, Authority::Any, "MEDIA_DIR", "", "Where to keep the files that come with messages (default: in the workspace). Machines that share a database must share this folder."),
    plain(PLACES, Authority::Unrelated, "LEASE", "local", "Which machine works: local, only this one; remote, several machines that share REPO_URL take turns through a reference there. One machine is\n\
         nearly always better (docs/MACHINES.md)."),
    plain(PLACES, Authority::Any, "LEASE_REF", "refs/reveille/lease", "For LEASE=remote: the reference, the same on all machines. Some hosts accept only those below refs/heads/ and refs/tags/."),
    plain(PLACES, Authority::Unrelated, "LEASE_NAME", "", "This machine's name (default: its host name)."),
    plain(PLACES, Authority::Unrelated, "LEASE_TERM_S", "300", "How long to wait for a machine that is gone, in seconds, at most an hour. The lease is renewed by a push three times as often."),
    plain(PLACES, Authority::Unrelated, "LEASE_DUTY", "bot", "Whether this machine does background jobs, such as tasks at their times and reflection: bot, while its bot is the one that\n\
         polls; always, on one machine at most, where no bot runs anywhere; never."),
    plain(PLACES, Authority::Any, "WHISPER_MODEL", "", "The file of a speech model, by its absolute path (default: none, voice notes are kept but not understood).\n\
         `scripts/fetch-model base` downloads one and prints its path; .en models understand only English, larger ones are better and\n\
         slower."),
    plain(BEHAVIOUR, Authority::Unrelated, "TIMEZONE", "", "Your time zone by its IANA name, such as Europe/Berlin (default: the system's)."),
    plain(BEHAVIOUR, Authority::Higher, "AUTONOMY", "1", "How much it does without asking. 0: it asks before everything but answering, its own notes and reading its memory. 1: it asks\n\
         before what is risky. 2: it asks only before what can't be undone (it always asks before that). What `wake undo` can restore isn't\n\
         risky. It asks in your chat, or in `wake approvals list`. If you don't answer within a day, it doesn't do it."),
    plain(BEHAVIOUR, Authority::Unrelated, "INITIATIVE", "off", "How much it does unasked: off; low, one useful thing a day or a proposal; high, the same at 9, 13 and 17 o'clock. It\n\
         weighs your tasks and projects by a written rule (docs/INITIATIVE.md), and asks the model only about those worth it."),
    plain(BEHAVIOUR, Authority::Unrelated, "WHILE_WORKING", "join", "What to do with a message that arrives while it works on another one from the same chat: join, the model reads it after the\n\
         current step; wait, it answers it afterwards. /stop stops at once in any case."),
    plain(BEHAVIOUR, Authority::Unrelated, "QUIET_HOURS", "22:00-07:00", "The hours in which it doesn't speak unasked, by your clock; none for no such hours."),
    plain(BEHAVIOUR, Authority::Unrelated, "REFLECT_AT", "03:30", "The time of day from which it reflects on the days before, if nobody waits and something happened: it sums up each chat's day\n\
         and tidies its memory, within the budget, in one commit that `wake undo` can undo. none: never."),
    plain(BEHAVIOUR, Authority::Unrelated, "TELL_PER_DAY", "5", "How many times a day it may speak unasked, 0 to 100."),
    plain(BEHAVIOUR, Authority::Unrelated, "WAKE_TIMEOUT_MIN", "60", "The longest time that a wake may take, in minutes."),
    plain(BEHAVIOUR, Authority::Unrelated, "STALE_LOCK_MIN", "15", "How long a wake may show no sign of life before the next one ends it and takes over, in minutes. Also how long a wake may\n\
         exceed its time, or work stay unfinished, before the health check reports it."),
    plain(BEHAVIOUR, Authority::Unrelated, "PULL_EVERY_MIN", "30", "The shortest time between two fetches from the remote when nothing else asks for one, in minutes."),
    plain(BEHAVIOUR, Authority::Unrelated, "DISK_RESERVE_MB", "100", "With less free space than this on the workspace's disk, in MiB, the bot fetches no messages from Telegram, which keeps them for a\n\
         day, and says so. It still answers queued messages. 0: no reserve."),
    plain(BEHAVIOUR, Authority::Unrelated, "KEEP_DAYS", "30", "How many days to keep records that are only for looking things up: the journals of finished cycles, raw updates, logs, files\n\
         that came with messages. Messages, answers, costs and the memory itself stay. 0: everything stays. (Copies of your files for\n\
         `wake undo` are deleted after seven days.)"),
    plain(FAULTS, Authority::Unrelated, "REVEILLE_LOG", "info", "How much is logged: error, warn, info or debug. Logs go to files in the workspace (`wake logs`) and to a terminal (only\n\
         errors while you wait for an answer; `-v` shows more). RUST_LOG, only from the environment, sets it by module."),
    plain(FAULTS, Authority::Unrelated, "LOG_FORMAT", "text", "The form of those files: text, json (one object per line), or off (no files: everything goes to standard error)."),
    plain(FAULTS, Authority::Any, "REVEILLE_NOW", "", "Stops the clock at a time in RFC 3339, for tests and reproductions (default: the machine's clock)."),
];

/// The variables of all settings, in the order of [`SETTINGS`].
pub const VARIABLES: [&str; SETTINGS.len()] = list_names();

#[expect(clippy::indexing_slicing, reason = "the loop stays within the array")]
const fn list_names() -> [&'static str; SETTINGS.len()] {
    let mut names = [""; SETTINGS.len()];
    let mut at = 0;
    while at < names.len() {
        names[at] = SETTINGS[at].name;
        at += 1;
    }
    names
}

/// The secrets, each with the variable that names its file.
pub(super) fn list_secrets() -> impl Iterator<Item = (&'static str, &'static str)> {
    SETTINGS.iter().filter_map(|setting| Some((setting.name, setting.file?)))
}

/// The explanation of a setting on one line. A setting without one shares that of the setting above.
pub fn describe_setting(name: &str) -> String {
    let mut help = "";
    for setting in &SETTINGS {
        help = if setting.help.is_empty() { help } else { setting.help };
        if setting.name == name {
            return help.lines().collect::<Vec<_>>().join(" ");
        }
    }
    String::new()
}

/// Finds a setting by its variable.
pub fn find_setting(name: &str) -> Option<&'static Setting> {
    SETTINGS.iter().find(|setting| setting.name == name)
}

/// A setting's default; empty if it has none.
pub(super) fn find_default(name: &str) -> &'static str {
    SETTINGS.iter().find(|setting| setting.name == name).map_or("", |setting| setting.default)
}

/// The text of `.env.example`, which `cargo run -p reveille-config --example env_example` prints.
pub fn render_example() -> String {
    const HEADING_WIDTH: usize = 120;
    const HEAD: &str = "# Settings of Reveille. Copy this file to .env in the workspace (~/.local/share/reveille/.env) and run chmod 600 on it. To use\n\
         # another place, pass --env-file FILE. A variable in the real environment takes precedence; an empty value counts as not set;\n\
         # lines with # show the default. Values are taken literally ($, # and \\ have no special meaning); quotation marks around a\n\
         # value are dropped, and a # after a space starts a comment.\n";
    let mut text = HEAD.to_owned();
    let mut group = "";
    for setting in &SETTINGS {
        if setting.group != group {
            group = setting.group;
            let heading = format!("# --- {group} ");
            text += &format!("\n{heading:-<HEADING_WIDTH$}\n");
        }
        for line in setting.help.lines() {
            text += &format!("# {line}\n");
        }
        let mark = if setting.is_usual { "" } else { "#" };
        text += &format!("{mark}{}={}\n", setting.name, setting.default);
    }
    text
}
