//! `mcp.toml`: the servers that a person allows the model. Trusted only if no other user can have written the file,
//! and unknown settings are problems. A server with a problem isn't used; the others are.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
    time::Duration,
};

use serde::Deserialize;

use reveille_base::redact::{self, Secret};
use reveille_config::{Config, read_private};
use reveille_policy::Risk;
use reveille_sandbox::Grant;

/// A starting file in which everything is commented out.
pub const EXAMPLE: &str = include_str!("../../../../../docs/mcp.toml");
/// Default timeout of a call.
const CALL_TIMEOUT: Duration = Duration::from_secs(60);
/// Maximum configurable timeout of a call, in seconds.
const MAX_TIMEOUT_S: u64 = 600;
/// Maximum number of servers.
const MAX_SERVERS: usize = 32;
/// The schemes of a header's credential.
const SCHEMES: [&str; 3] = ["Bearer", "Basic", "Token"];
/// Cookies of at least this many bytes are secrets: a shorter one (`theme=dark`) may be an ordinary word.
const MIN_COOKIE_BYTES: usize = 12;
/// Maximum length of a server's name, in characters: the name is part of its tools' names.
const MAX_NAME_CHARS: usize = 24;

/// A configured server.
#[derive(Debug, Clone, PartialEq)]
pub struct Server {
    /// The name, of `a-z`, `0-9`, `-` and single `_`.
    pub name: String,
    /// The location.
    pub place: ServerPlace,
    /// The allowed tools; `None` means all of them.
    pub tools: Option<BTreeSet<String>>,
    /// The risk of its calls.
    pub risk: Risk,
    /// True if the server's declarations about effects are believed.
    pub trust_annotations: bool,
    /// True if chats other than the owner's may use the server.
    pub guests: bool,
    /// The timeout of a call.
    pub timeout: Duration,
    /// The secrets that must never be printed.
    pub secrets: Vec<Secret>,
}

/// The location of a server.
#[derive(Debug, Clone, PartialEq)]
pub enum ServerPlace {
    /// A program, started on demand.
    Command {
        /// The program and its arguments.
        command: Vec<String>,
        /// Additional environment variables.
        env: BTreeMap<String, Secret>,
        /// The reachable hosts.
        hosts: Vec<Grant>,
        /// The writable folders.
        writable: Vec<PathBuf>,
    },
    /// A running server, reached by streamable HTTP.
    Url {
        /// The address.
        url: reqwest::Url,
        /// Headers of every request, such as `Authorization`.
        headers: BTreeMap<String, Secret>,
    },
}

/// The content of `mcp.toml`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Settings {
    /// The usable servers.
    pub servers: Vec<Server>,
    /// The servers that are switched off. Nothing uses them.
    pub off: Vec<Server>,
    /// The files named for secrets, including those of unusable servers.
    pub key_files: Vec<PathBuf>,
    /// Set if the file is unreadable, so that even its key files are unknown.
    pub is_refused: bool,
    /// Sentences for people about unused entries, with the reasons.
    pub problems: Vec<String>,
}

impl Settings {
    /// Loads the settings of this workspace.
    pub fn for_workspace(config: &Config) -> Self {
        Self::load(&config.mcp_path(), config.home.as_deref())
    }

    /// Loads the file; without a file there are no servers. `home` is the value of `~/`.
    pub fn load(path: &Path, home: Option<&Path>) -> Self {
        if matches!(std::fs::symlink_metadata(path), Err(error) if error.kind() == std::io::ErrorKind::NotFound) {
            return Self::default();
        }
        match read_private(path) {
            Ok(file) => Self::parse(&file.text, home),
            Err(why) => {
                Self { is_refused: true, problems: vec![format!("mcp.toml is not used: {why}.")], ..Self::default() }
            }
        }
    }

    /// Parses the file's text. Also reads the files named in it.
    pub fn parse(text: &str, home: Option<&Path>) -> Self {
        let mut settings = Self::default();
        let file: File = match toml::from_str(text) {
            Ok(file) => file,
            Err(error) => {
                settings.is_refused = true;
                settings.problems.push(format!("mcp.toml is not used: {}", error.to_string().trim()));
                return settings;
            }
        };
        let mut names = BTreeSet::new();
        for (index, table) in file.server.into_iter().enumerate() {
            let name = table.get("name").and_then(toml::Value::as_str).unwrap_or_default();
            settings.key_files.extend(key_files(&table, home));
            let called = if name.is_empty() { format!("number {}", index + 1) } else { format!("{name:?}") };
            let is_off = table.get("enabled").and_then(toml::Value::as_bool) == Some(false);
            let server = if index >= MAX_SERVERS {
                Err(format!("at most {MAX_SERVERS} are allowed"))
            } else {
                let raw: Result<Raw, _> = toml::Value::Table(table).try_into();
                raw.map_err(|error| error.message().to_owned()).and_then(|raw| raw.resolve(home))
            };
            match server {
                Ok(server) if !names.insert(server.name.clone()) => {
                    settings.problems.push(format!("The MCP server {called} is not used: another one has its name."));
                }
                Ok(server) if is_off => settings.off.push(server),
                Ok(server) => settings.servers.push(server),
                Err(why) => settings.problems.push(format!("The MCP server {called} is not used: {}.", why.trim())),
            }
        }
        settings
    }

    /// Returns a server by its name.
    pub fn get(&self, name: &str) -> Option<&Server> {
        self.servers.iter().find(|server| server.name == name)
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    server: Vec<toml::Table>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Raw {
    name: String,
    /// Read beside: a server may be switched off.
    #[serde(default, rename = "enabled")]
    _enabled: Option<bool>,
    command: Option<Vec<String>>,
    url: Option<String>,
    #[serde(default)]
    env: BTreeMap<String, String>,
    #[serde(default)]
    env_files: BTreeMap<String, String>,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    #[serde(default)]
    header_files: BTreeMap<String, String>,
    #[serde(default)]
    hosts: Vec<String>,
    #[serde(default)]
    writable: Vec<String>,
    tools: Option<BTreeSet<String>>,
    risk: Option<Risk>,
    #[serde(default)]
    trust_annotations: bool,
    #[serde(default)]
    guests: bool,
    timeout_s: Option<u64>,
}

impl Raw {
    fn resolve(self, home: Option<&Path>) -> Result<Server, String> {
        check_name(&self.name)?;
        let timeout = match self.timeout_s {
            None => CALL_TIMEOUT,
            Some(seconds @ 1..=MAX_TIMEOUT_S) => Duration::from_secs(seconds),
            Some(_) => return Err(format!("timeout_s must be from 1 to {MAX_TIMEOUT_S}")),
        };
        let risk = match self.risk.unwrap_or(Risk::Dangerous) {
            Risk::Safe => {
                return Err(
                    "risk must be caution, dangerous or destructive: I can't tell what the server does".to_owned()
                );
            }
            risk => risk,
        };
        let (is_command, is_url) = (
            self.env.is_empty() && self.env_files.is_empty() && self.hosts.is_empty() && self.writable.is_empty(),
            self.headers.is_empty() && self.header_files.is_empty(),
        );
        let secret_names: BTreeSet<String> = self.env_files.keys().chain(self.header_files.keys()).cloned().collect();
        let place = match (self.command, self.url) {
            (Some(command), None) if is_url => {
                if command.first().is_none_or(|program| program.trim().is_empty()) {
                    return Err("command is empty".to_owned());
                }
                ServerPlace::Command {
                    command,
                    env: read_secrets(self.env, self.env_files, home)?,
                    hosts: self.hosts.iter().map(|host| host.parse()).collect::<Result<_, _>>()?,
                    writable: self.writable.iter().map(|path| resolve_folder(path, home)).collect::<Result<_, _>>()?,
                }
            }
            (None, Some(url)) if is_command => ServerPlace::Url {
                url: parse_address(&url)?,
                headers: read_secrets(self.headers, self.header_files, home)?,
            },
            (Some(_), Some(_)) | (None, None) => return Err("give either a command or a url".to_owned()),
            (Some(_), None) => return Err("headers belong to a server with a url".to_owned()),
            (None, Some(_)) => {
                return Err("env, env_files, hosts and writable belong to a server with a command".to_owned());
            }
        };
        let values = match &place {
            ServerPlace::Command { env, .. } => env,
            ServerPlace::Url { headers, .. } => headers,
        };
        let is_secret = |name: &str| secret_names.contains(name) || redact::is_secret_name(name);
        let (secret, open): (Vec<_>, Vec<_>) = values.iter().partition(|(name, _)| is_secret(name));
        let words = match &place {
            ServerPlace::Command { command, .. } => command.clone(),
            ServerPlace::Url { url, .. } => vec![url.to_string()],
        };
        // Masking values like a time zone would garble ordinary text. A password in an address is always a secret.
        let open = open.iter().map(|(_, value)| value.expose()).chain(words.iter().map(String::as_str));
        let secrets = secret.iter().flat_map(|(name, value)| list_secret_parts(name, value));
        let secrets =
            secrets.chain(open.flat_map(redact::find_passwords)).chain(list_secret_arguments(&words)).collect();
        let Self { name, tools, trust_annotations, guests, .. } = self;
        Ok(Server { name, place, tools, risk, trust_annotations, guests, timeout, secrets })
    }
}

/// Returns the values of arguments with secret names: `--token=abc`, and `--token abc`.
fn list_secret_arguments(words: &[String]) -> impl Iterator<Item = Secret> + '_ {
    let is_secret = |name: &str| name.starts_with('-') && redact::is_secret_name(name);
    words.iter().enumerate().filter_map(move |(at, word)| match word.split_once('=') {
        Some((name, value)) => Some(value).filter(|_| is_secret(name)).map(Secret::new),
        None => words
            .get(at + 1)
            .filter(|value| is_secret(word) && !value.starts_with('-'))
            .map(|value| Secret::new(&**value)),
    })
}

/// Returns the secret parts of a value: the whole, the credential after a scheme (`abc` of `Bearer abc`), and each long cookie value.
fn list_secret_parts(name: &str, value: &Secret) -> Vec<Secret> {
    let whole = value.expose().trim();
    let is_scheme = |word: &str| SCHEMES.iter().any(|scheme| scheme.eq_ignore_ascii_case(word));
    let credential = whole.split_once(' ').filter(|(word, _)| is_scheme(word)).map(|(_, credential)| credential.trim());
    let is_cookie = name.to_ascii_uppercase().contains("COOKIE");
    let cookies = whole.split(';').filter(|_| is_cookie).filter_map(|pair| Some(pair.split_once('=')?.1.trim()));
    let cookies = cookies.filter(|cookie| cookie.len() >= MIN_COOKIE_BYTES);
    [whole].into_iter().chain(credential).chain(cookies).map(Secret::new).collect()
}

fn check_name(name: &str) -> Result<(), String> {
    let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '_';
    if name.is_empty() || name.len() > MAX_NAME_CHARS || !name.chars().all(is_plain) || name.contains("__") {
        return Err(format!(
            "its name may only have a-z, 0-9, - and single _, at most {MAX_NAME_CHARS} characters, because it becomes part of its tools' \
             names"
        ));
    }
    Ok(())
}

/// Reads values that may be secret, from the settings or from files of their own.
fn read_secrets(
    values: BTreeMap<String, String>,
    files: BTreeMap<String, String>,
    home: Option<&Path>,
) -> Result<BTreeMap<String, Secret>, String> {
    let mut secrets: BTreeMap<String, Secret> =
        values.into_iter().map(|(name, value)| (name, Secret::new(value))).collect();
    for (name, path) in files {
        let file = read_private(&resolve_folder(&path, home)?).map_err(|why| format!("the file of {name} {why}"))?;
        if secrets.insert(name.clone(), Secret::new(file.text.trim())).is_some() {
            return Err(format!("{name} is given twice"));
        }
    }
    Ok(secrets)
}

/// Returns the key files named in a server's table, even if the table has other errors.
fn key_files(table: &toml::Table, home: Option<&Path>) -> Vec<PathBuf> {
    let files = ["env_files", "header_files"].into_iter().filter_map(|name| table.get(name)?.as_table());
    files.flat_map(toml::Table::values).filter_map(|path| resolve_folder(path.as_str()?, home).ok()).collect()
}

fn resolve_folder(path: &str, home: Option<&Path>) -> Result<PathBuf, String> {
    let path = match (path.strip_prefix("~/"), home) {
        (Some(rest), Some(home)) => home.join(rest),
        _ => PathBuf::from(path),
    };
    if path.is_absolute() { Ok(path) } else { Err(format!("{}: an absolute path is expected", path.display())) }
}

/// Parses an address written by a person: encrypted, unless it is this machine or a literal address.
fn parse_address(text: &str) -> Result<reqwest::Url, String> {
    let url = reqwest::Url::parse(text).map_err(|error| format!("its url can't be read: {error}"))?;
    let host = url.host_str().unwrap_or_default();
    let is_literal = host.parse::<std::net::Ipv4Addr>().is_ok() || host.starts_with('[') || host == "localhost";
    match url.scheme() {
        _ if !url.username().is_empty() || url.password().is_some() => {
            Err("its url holds a password; put it into headers".to_owned())
        }
        "https" => Ok(url),
        "http" if is_literal => Ok(url),
        "http" => Err("its url is not encrypted; https is expected".to_owned()),
        _ => Err("its url is neither https nor http".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn only(text: &str) -> Server {
        let settings = Settings::parse(text, Some(Path::new("/home/ann")));
        assert_eq!(settings.problems, Vec::<String>::new());
        settings.servers.into_iter().next().unwrap()
    }

    fn problem(text: &str) -> String {
        let settings = Settings::parse(text, None);
        assert_eq!((settings.servers.len(), settings.problems.len()), (0, 1), "{settings:?}");
        settings.problems[0].clone()
    }

    #[test]
    fn the_example_is_sound_and_with_its_comments_taken_off_too() {
        assert_eq!(Settings::parse(EXAMPLE, None), Settings::default());
        let text: String =
            EXAMPLE.lines().filter_map(|line| line.strip_prefix("#: ")).map(|line| format!("{line}\n")).collect();
        let settings = Settings::parse(&text, Some(Path::new("/home/ann")));
        assert_eq!(settings.problems, Vec::<String>::new());
        assert_eq!(settings.servers.len(), 3);
    }

    #[test]
    fn a_server_is_dangerous_and_not_believed_unless_a_person_says_otherwise() {
        let server = only("[[server]]\nname = \"time\"\ncommand = [\"uvx\", \"mcp-server-time\"]");
        assert_eq!((server.risk, server.trust_annotations, server.guests), (Risk::Dangerous, false, false));
        assert!(matches!(server.place, ServerPlace::Command { hosts, .. } if hosts.is_empty()));
        let server = only(
            "[[server]]\nname = \"a\"\nurl = \"https://a.example/mcp\"\nrisk = \"caution\"\nheaders = { Authorization = \"Bearer x\" }",
        );
        assert_eq!(server.risk, Risk::Caution);
        assert!(!format!("{server:?}").contains("Bearer x"));
    }

    #[test]
    fn what_is_secret_is_known_as_such_and_a_time_zone_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("key");
        std::fs::write(&file, "from-a-file\n").unwrap();
        let files = format!("env_files = {{ OTHER = {:?} }}", file.display().to_string());
        let env = "env = { TZ = \"Europe/Berlin\", API_KEY = \"key-value\" }";
        let server = only(&format!("[[server]]\nname = \"a\"\ncommand = [\"x\"]\n{env}\n{files}"));
        assert_eq!(server.secrets, [Secret::new("key-value"), Secret::new("from-a-file")]);
        for wrong in ["", "\ncomand = []"] {
            let settings = Settings::parse(&format!("[[server]]\nname = \"a\"{wrong}\n{files}"), None);
            assert_eq!((settings.servers.len(), settings.key_files), (0, vec![file.clone()]), "{wrong}");
        }
        let server = only(
            "[[server]]\nname = \"a\"\nurl = \"https://a.example\"\nheaders = { Authorization = \"Bearer abcdef\" }",
        );
        assert_eq!(server.secrets, [Secret::new("Bearer abcdef"), Secret::new("abcdef")]);
        let command = "command = [\"x\", \"--api-key\", \"of-two-words\", \"--token=of-one\", \"--name\", \"plain\"]";
        let env = "env = { DATABASE_URL = \"postgres://me:in-an-address@db/x\" }";
        let server = only(&format!("[[server]]\nname = \"a\"\n{command}\n{env}"));
        assert_eq!(server.secrets, ["in-an-address", "of-two-words", "of-one"].map(Secret::new));
        let server = only("[[server]]\nname = \"a\"\nurl = \"https://a.example/mcp?api_key=in-a-query\"");
        assert_eq!(server.secrets, [Secret::new("in-a-query")]);
    }

    #[test]
    fn all_of_a_value_is_secret_with_what_a_scheme_and_a_cookie_hold() {
        for (header, known) in [
            ("Authorization = \"token abcdef\"", vec!["token abcdef", "abcdef"]),
            ("X-Pass = \"correct horse battery\"", vec!["correct horse battery"]),
            (
                "Cookie = \"sid=long-and-secret; theme=dark\"",
                vec!["sid=long-and-secret; theme=dark", "long-and-secret"],
            ),
        ] {
            let server =
                only(&format!("[[server]]\nname = \"a\"\nurl = \"https://a.example\"\nheaders = {{ {header} }}"));
            assert_eq!(server.secrets.iter().map(Secret::expose).collect::<Vec<_>>(), known);
        }
    }

    #[test]
    fn what_isnt_known_or_contradicts_itself_puts_its_server_out_of_use_and_says_why() {
        let with = |rest: &str| format!("[[server]]\nname = \"a\"\n{rest}");
        for (text, why) in [
            (with("comand = [\"x\"]"), "unknown field"),
            (with(""), "either a command or a url"),
            (with("command = [\"x\"]\nurl = \"https://a.example\""), "either a command or a url"),
            (with("command = []"), "command is empty"),
            (with("command = [\"x\"]\nheaders = { A = \"b\" }"), "belong to a server with a url"),
            (with("url = \"https://a.example\"\nhosts = [\"b:1\"]"), "belong to a server with a command"),
            (with("command = [\"x\"]\nhosts = [\"b\"]"), "there is no port"),
            (with("command = [\"x\"]\nwritable = [\"notes\"]"), "an absolute path"),
            (with("command = [\"x\"]\nrisk = \"safe\""), "risk must be caution"),
            (with("command = [\"x\"]\ntimeout_s = 0"), "timeout_s"),
            (with("url = \"http://a.example\""), "not encrypted"),
            (with("url = \"https://me:pw@a.example\""), "password"),
            (with("url = \"file:///a\""), "neither https nor http"),
            ("[[server]]\nname = \"a__b\"\ncommand = [\"x\"]".to_owned(), "its name"),
            ("[[server]]\nname = \"A\"\ncommand = [\"x\"]".to_owned(), "its name"),
            ("[server]".to_owned(), "mcp.toml is not used"),
            ("other = 1".to_owned(), "unknown field"),
        ] {
            assert!(problem(&text).contains(why), "{text}: {}", problem(&text));
        }
    }

    #[test]
    fn one_wrong_server_leaves_the_others_in_use() {
        let text = "[[server]]\nname = \"a\"\n[[server]]\nname = \"b\"\ncommand = [\"x\"]\n[[server]]\nname = \"b\"\ncommand = [\"y\"]";
        let settings = Settings::parse(text, None);
        assert_eq!((settings.servers.len(), settings.problems.len()), (1, 2), "{settings:?}");
        assert!(settings.get("b").is_some());
    }

    #[test]
    fn a_file_that_others_can_write_is_not_believed() {
        use std::os::unix::fs::PermissionsExt as _;
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("mcp.toml");
        assert_eq!(Settings::load(&path, None), Settings::default());
        std::fs::write(&path, "[[server]]\nname = \"a\"\ncommand = [\"x\"]").unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o620)).unwrap();
        let settings = Settings::load(&path, None);
        assert!(settings.servers.is_empty() && settings.problems[0].contains("chmod 600"), "{settings:?}");
    }
}
