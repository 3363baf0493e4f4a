//! Changes a person's `mcp.toml`: adds a server, removes one, switches one on or off. Text in, text out. All other bytes stay, and the
//! result differs in meaning by exactly that server, or there is an error.

use std::{ops::Range, path::Path};

use super::settings::{Server, Settings};

/// The line that begins a server.
const HEADER: &str = "[[server]]";
/// The line that switches a server off.
const OFF: &str = "enabled = false";

/// The reason `mcp.toml` stays unchanged.
#[derive(Debug, thiserror::Error)]
pub enum AmendServersError {
    /// The file has mistakes.
    #[error("mcp.toml has a mistake, so I don't change it. Correct it in a text editor first: {0}")]
    Invalid(String),
    /// The new server has a mistake.
    #[error("{0}")]
    Server(String),
    /// Another server has this name.
    #[error("there is a server {0} already")]
    Taken(String),
    /// There is no such server.
    #[error("there is no server {0} in mcp.toml")]
    Gone(String),
    /// The file is written in a way that can't be changed here.
    #[error("mcp.toml is written in a way that I can't change safely. Change it in a text editor")]
    Unclear,
}

/// A new server, as a person describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewServer {
    /// Its name.
    pub name: String,
    /// The program with its arguments, or the address.
    pub place: NewPlace,
}

/// Where a new server is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NewPlace {
    /// A program and its arguments.
    Command(Vec<String>),
    /// An address, and the token for it, if it wants one.
    Url {
        /// The address.
        url: String,
        /// The bearer token.
        token: Option<String>,
    },
}

impl NewServer {
    /// Renders the server's lines.
    pub fn render(&self) -> String {
        let head = format!("{HEADER}\nname = {}\n", quote(&self.name));
        match &self.place {
            NewPlace::Command(words) => {
                let words: Vec<String> = words.iter().map(|word| quote(word)).collect();
                format!("{head}command = [{}]\n", words.join(", "))
            }
            NewPlace::Url { url, token: None } => format!("{head}url = {}\n", quote(url)),
            NewPlace::Url { url, token: Some(token) } => {
                let header = quote(&format!("Bearer {token}"));
                format!("{head}url = {}\nheaders = {{ Authorization = {header} }}\n", quote(url))
            }
        }
    }

    /// Checks the description, and returns the server.
    ///
    /// # Errors
    /// A sentence about the mistake.
    pub fn check(&self, home: Option<&Path>) -> Result<Server, AmendServersError> {
        parse_one(&self.render(), home)
    }
}

fn quote(text: &str) -> String {
    let escape = |c: char| match c {
        '"' => "\\\"".to_owned(),
        '\\' => "\\\\".to_owned(),
        c if c.is_control() => format!("\\U{:08X}", u32::from(c)),
        c => c.to_string(),
    };
    format!("\"{}\"", text.chars().map(escape).collect::<String>())
}

fn parse_one(block: &str, home: Option<&Path>) -> Result<Server, AmendServersError> {
    let parsed = Settings::parse(block, home);
    let problem = parsed.problems.into_iter().next();
    let server = parsed.servers.into_iter().chain(parsed.off).next();
    server.ok_or_else(|| AmendServersError::Server(problem.unwrap_or_default()))
}

/// Adds a server by its lines, as [`NewServer::render`] or [`remove_server`] returns them.
///
/// # Errors
/// Nothing was changed.
pub fn add_server(text: &str, block: &str, home: Option<&Path>) -> Result<String, AmendServersError> {
    let before = parse_sound(text, home)?;
    let server = parse_one(block, home)?;
    if names(&before).any(|name| name == server.name) {
        return Err(AmendServersError::Taken(server.name));
    }
    let gap = match text {
        "" => "",
        text if text.ends_with("\n\n") => "",
        text if text.ends_with('\n') => "\n",
        _ => "\n\n",
    };
    let new = format!("{text}{gap}{}\n", block.trim_end());
    let after = parse_sound(&new, home).map_err(|_| AmendServersError::Unclear)?;
    let is_right = names(&after).count() == names(&before).count() + 1 && without(&after, &server.name) == all(&before);
    if is_right { Ok(new) } else { Err(AmendServersError::Unclear) }
}

/// Removes a server. Returns the new text and the server's own lines.
///
/// # Errors
/// Nothing was changed.
pub fn remove_server(text: &str, name: &str, home: Option<&Path>) -> Result<(String, String), AmendServersError> {
    let before = parse_sound(text, home)?;
    let block = find_block(text, name, home)?;
    let (head, tail) = (text.get(..block.start).unwrap_or_default(), text.get(block.end..).unwrap_or_default());
    let new = format!("{head}{tail}");
    let after = parse_sound(&new, home).map_err(|_| AmendServersError::Unclear)?;
    match all(&after) == without(&before, name) {
        true => Ok((new, text.get(block).unwrap_or_default().to_owned())),
        false => Err(AmendServersError::Unclear),
    }
}

/// The state of a server in `mcp.toml`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ServerSwitch {
    /// It may be used.
    On,
    /// It stays in the file and isn't used.
    Off,
}

/// Switches a server on or off.
///
/// # Errors
/// Nothing was changed.
pub fn switch_server(
    text: &str,
    name: &str,
    switch: ServerSwitch,
    home: Option<&Path>,
) -> Result<String, AmendServersError> {
    let before = parse_sound(text, home)?;
    let range = find_block(text, name, home)?;
    let block = text.get(range.clone()).unwrap_or_default();
    let says = |line: &&str| line.split('=').next().is_some_and(|key| key.trim() == "enabled");
    let mut lines: Vec<&str> = block.split_inclusive('\n').filter(|line| !says(line)).collect();
    let off = format!("{OFF}\n");
    if switch == ServerSwitch::Off {
        lines.insert(1.min(lines.len()), &off);
    }
    let (head, tail) = (text.get(..range.start).unwrap_or_default(), text.get(range.end..).unwrap_or_default());
    let new = format!("{head}{}{tail}", lines.concat());
    let after = parse_sound(&new, home).map_err(|_| AmendServersError::Unclear)?;
    let side = if switch == ServerSwitch::On { &after.servers } else { &after.off };
    let is_right = all_sorted(&after) == all_sorted(&before) && side.iter().any(|server| server.name == name);
    if is_right { Ok(new) } else { Err(AmendServersError::Unclear) }
}

fn parse_sound(text: &str, home: Option<&Path>) -> Result<Settings, AmendServersError> {
    let settings = Settings::parse(text, home);
    match settings.problems.first() {
        None => Ok(settings),
        Some(problem) => Err(AmendServersError::Invalid(problem.clone())),
    }
}

fn names(settings: &Settings) -> impl Iterator<Item = &str> {
    settings.servers.iter().chain(&settings.off).map(|server| server.name.as_str())
}

fn all(settings: &Settings) -> Vec<&Server> {
    settings.servers.iter().chain(&settings.off).collect()
}

fn all_sorted(settings: &Settings) -> Vec<&Server> {
    let mut servers = all(settings);
    servers.sort_by(|a, b| a.name.cmp(&b.name));
    servers
}

fn without<'a>(settings: &'a Settings, name: &str) -> Vec<&'a Server> {
    all(settings).into_iter().filter(|server| server.name != name).collect()
}

/// Finds a server's lines: from its header up to the next table. The caller checks the result of a change, since a text of several lines
/// can hold anything.
fn find_block(text: &str, name: &str, home: Option<&Path>) -> Result<Range<usize>, AmendServersError> {
    let mut starts = Vec::new();
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        if line.starts_with('[') {
            starts.push(at);
        }
        at += line.len();
    }
    starts.push(text.len());
    let ranges = starts.windows(2).filter_map(|pair| Some(*pair.first()?..*pair.get(1)?));
    let mut blocks = ranges.filter(|range| text.get(range.clone()).is_some_and(|block| block.starts_with(HEADER)));
    let is_it = |range: &Range<usize>| {
        text.get(range.clone()).and_then(|block| parse_one(block, home).ok()).is_some_and(|server| server.name == name)
    };
    blocks.find(is_it).ok_or_else(|| AmendServersError::Gone(name.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const THEIRS: &str = "# mine\n\n[[server]]\nname = \"a\" # first\ncommand = [\"x\"]\n\n[[server]]\nname = \"b\"\nurl = \"https://b.example/mcp\"\n";

    fn new(name: &str, place: NewPlace) -> NewServer {
        NewServer { name: name.to_owned(), place }
    }

    #[test]
    fn a_server_is_added_and_taken_out_without_a_trace() {
        let words = vec!["/bin/it's".to_owned(), "a \"b\"".to_owned()];
        let server = new("time", NewPlace::Command(words));
        for text in ["", "# mine\n", THEIRS] {
            let with = add_server(text, &server.render(), None).unwrap();
            assert!(with.starts_with(text), "{with}");
            assert!(matches!(add_server(&with, &server.render(), None), Err(AmendServersError::Taken(_))));
            let (back, block) = remove_server(&with, "time", None).unwrap();
            assert_eq!(back.trim_end(), text.trim_end());
            assert_eq!(add_server(&back, &block, None).unwrap().trim_end(), with.trim_end());
        }
        let (left, block) = remove_server(THEIRS, "a", None).unwrap();
        assert_eq!(left, "# mine\n\n[[server]]\nname = \"b\"\nurl = \"https://b.example/mcp\"\n");
        assert!(block.contains("# first"));
        assert!(remove_server(THEIRS, "c", None).is_err());
    }

    #[test]
    fn a_server_that_is_off_is_not_used() {
        let off = switch_server(THEIRS, "b", ServerSwitch::Off, None).unwrap();
        let parsed = Settings::parse(&off, None);
        assert_eq!((parsed.servers.len(), parsed.off.len()), (1, 1));
        assert!(parsed.get("b").is_none());
        assert_eq!(switch_server(&off, "b", ServerSwitch::On, None).unwrap(), THEIRS);
    }

    #[test]
    fn a_token_is_a_secret_and_a_wrong_description_is_refused() {
        let place = |url: &str| NewPlace::Url { url: url.to_owned(), token: Some("tok-0123456789abcdef".to_owned()) };
        let server = new("t", place("https://t.example/mcp")).check(None).unwrap();
        assert!(server.secrets.iter().any(|secret| secret.expose() == "tok-0123456789abcdef"));
        for server in [
            new("T t", place("https://t.example/mcp")),
            new("t", place("http://t.example/mcp")),
            new("t", NewPlace::Command(Vec::new())),
        ] {
            assert!(server.check(None).is_err(), "{server:?}");
        }
        assert!(matches!(add_server("[[serve]]\n", "", None), Err(AmendServersError::Invalid(_))));
    }
}
