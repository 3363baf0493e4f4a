//! Pairing: whoever sends the bot the one-time code from its terminal may speak from then on. Until someone may, the
//! bot hears nobody. A wrong code gets the same silence as any stranger.
//!
//! A code has forty random bits, lives for ten minutes and allows a few wrong guesses. Only its hash is stored.

use std::fmt;

use chrono::{DateTime, TimeDelta, Utc};
use ring::digest;

use reveille_base::{
    random::{self, NoRandomness, format_hex},
    types::ChatRef,
};
use reveille_channels::telegram::{RawUpdate, Speakers, read_private_text};
use reveille_config::Config;
use reveille_store::{NewOutgoing, NewPaired};

/// The lifetime of a code.
pub const CODE_LIFE: TimeDelta = TimeDelta::minutes(10);
/// The alphabet: 32 characters that can't be confused (Crockford's), five bits each.
const SIGNS: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";
/// Length of a code in characters.
const CODE_SIGNS: usize = 8;
/// The command that a link with a code sends, before the code.
const LINK_COMMAND: &str = "/start ";
/// Maximum bytes of a text that may be a mistyped code.
const MAX_TYPED_BYTES: usize = 32;

/// A one-time code.
#[derive(Clone, PartialEq, Eq)]
pub struct Code([u8; CODE_SIGNS]);

impl Code {
    /// Generates a code from the system's random source.
    ///
    /// # Errors
    /// If the system provides no randomness.
    pub fn generate() -> Result<Self, NoRandomness> {
        let bytes = random::generate_bytes::<CODE_SIGNS>()?;
        // 256 is a multiple of 32, so all characters are equally likely.
        Ok(Self(bytes.map(|byte| SIGNS.get(usize::from(byte) % SIGNS.len()).copied().unwrap_or(b'0'))))
    }

    /// Parses a typed code. Case, spaces, hyphens and lookalikes such as `O` for `0` don't matter. `None` if it isn't
    /// shaped like a code.
    pub fn parse(text: &str) -> Option<Self> {
        if text.len() > MAX_TYPED_BYTES {
            return None;
        }
        // Telegram sends this when somebody follows a link with a code.
        let text = text.strip_prefix(LINK_COMMAND).unwrap_or(text);
        let signs = text.bytes().filter(|byte| !byte.is_ascii_whitespace() && *byte != b'-').map(|byte| {
            let sign = match byte.to_ascii_uppercase() {
                b'O' => b'0',
                b'I' | b'L' => b'1',
                sign => sign,
            };
            SIGNS.contains(&sign).then_some(sign)
        });
        signs.collect::<Option<Vec<u8>>>()?.try_into().ok().map(Self)
    }

    /// Returns the hash to store. Codes are compared by hash, so timing reveals nothing, and each bot has its own
    /// hashes.
    pub fn hash(&self, bot_id: i64) -> String {
        let text = format!("reveille pairing {bot_id} {self}");
        format_hex(digest::digest(&digest::SHA256, text.as_bytes()).as_ref())
    }
}

impl fmt::Debug for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Code(***)")
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (first, second) = self.0.split_at(CODE_SIGNS / 2);
        write!(f, "{}-{}", String::from_utf8_lossy(first), String::from_utf8_lossy(second))
    }
}

/// The effect of a batch on pairing.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Tries {
    /// Number of the batch's updates to take now, up to the one that pairs. Later messages of its sender come again and
    /// are heard.
    pub(super) taken: usize,
    /// The person who paired.
    pub(super) pairs: Option<NewPaired>,
    /// Number of wrong codes.
    pub(super) wrong: u32,
}

/// Looks for codes in private messages from strangers.
pub(super) fn find_tries(updates: &[RawUpdate], access: &Speakers, open: &[String], config: &Config) -> Tries {
    let mut tries = Tries { taken: updates.len(), ..Tries::default() };
    if open.is_empty() {
        return tries;
    }
    for (at, update) in updates.iter().enumerate() {
        let Some(said) = read_private_text(update).filter(|said| !access.allowed.contains(&said.user_id)) else {
            continue;
        };
        let Some(code) = Code::parse(&said.text) else { continue };
        let hash = code.hash(access.me.id);
        if open.contains(&hash) {
            let words = build_messages(said.user_id, &said.name, config);
            tries.pairs = Some(NewPaired { user_id: said.user_id, name: said.name, hash, words });
            tries.taken = at + 1;
            break;
        }
        tries.wrong = tries.wrong.saturating_add(1);
    }
    tries
}

/// The messages after a pairing: to the new person, and to the owner if that is someone else.
fn build_messages(user_id: i64, name: &str, config: &Config) -> Vec<NewOutgoing> {
    let owner = config.owner_chat;
    let is_owner = owner == ChatRef::TERMINAL || owner.person_id() == Some(user_id);
    let kept = if is_owner { "" } else { " I keep what you tell me in my owner's memory, and may tell them about it." };
    let mut words = vec![NewOutgoing::notice(
        ChatRef::from_telegram(user_id),
        format!(
            "We're paired: from now on I listen to you. Just write to me, or send /help.{kept} To end this, run `bot unpair` \
             on my machine."
        ),
    )];
    if !is_owner {
        // Their own display name, without characters that could format it.
        let name: String = name.chars().filter(|c| !"`*_[]<>".contains(*c)).collect();
        let text = format!(
            "{name} (id {user_id}) has paired with me using a code, so I listen to them from now on. To end this, \
             run `bot unpair {user_id}`."
        );
        let taint = Some("the name of who paired".to_owned());
        words.push(NewOutgoing { taint, ..NewOutgoing::notice(owner, text) });
    }
    words
}

/// The terminal's text while nobody may talk to the bot.
pub(super) fn render_invitation(code: &Code, username: &str, until: DateTime<Utc>, config: &Config) -> String {
    let until = until.with_timezone(&config.timezone).format("%H:%M");
    format!(
        "Nobody can talk to me yet. To pair, send this code to @{username} on Telegram before {until}:\n\n    {code}\n\n\
         I'll listen to whoever sends it first. It works once; when it expires, I'll show a new one."
    )
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::{Value, json};

    use super::*;
    use reveille_channels::telegram::Me;

    fn text(from: i64, kind: &str, text: &str) -> Value {
        json!({"message_id": 7, "date": 1_795_000_000, "text": text,
            "from": {"id": from, "is_bot": false, "first_name": "Ana"},
            "chat": {"id": if kind == "private" { from } else { -9 }, "type": kind, "first_name": "Ana", "title": "Home"}})
    }

    fn tried(messages: &[(&str, Value)], open: &[&Code]) -> Tries {
        let raw = |value: &Value| serde_json::value::to_raw_value(value).unwrap();
        let updates: Vec<RawUpdate> = messages
            .iter()
            .enumerate()
            .filter_map(|(at, (kind, message))| RawUpdate::parse(raw(&json!({"update_id": at, *kind: message}))))
            .collect();
        let me = Me { id: 99, first_name: String::new(), username: "reveille_bot".to_owned() };
        let access = Speakers { allowed: BTreeSet::from([42]), me };
        let open: Vec<String> = open.iter().map(|code| code.hash(99)).collect();
        let env = [("WORKSPACE_DIR".to_owned(), "/nowhere/reveille".to_owned())].into();
        find_tries(&updates, &access, &open, &Config::from_sources(&env, None, Some("UTC")).unwrap())
    }

    fn code(text: &str) -> Code {
        Code::parse(text).unwrap()
    }

    #[test]
    fn a_code_is_read_as_people_type_it() {
        let right = code("K7QM-201X");
        for typed in ["k7qm201x", " K7QM 2O1X\n", "k7qm-2oix", "K7-QM-2O-LX", "/start K7QM-201X"] {
            assert_eq!(Code::parse(typed), Some(right.clone()), "{typed}");
        }
        for typed in ["", "K7QM-201", "K7QM-201XX", "K7QM_201X", "U7QM-201X", "ÄÄÄÄ", &"-".repeat(40)] {
            assert_eq!(Code::parse(typed), None, "{typed}");
        }
        assert_eq!(right.to_string(), "K7QM-201X");
    }

    #[test]
    fn codes_differ_and_one_bots_code_is_nothing_to_another() {
        let codes: BTreeSet<String> = (0..64).map(|_| Code::generate().unwrap().to_string()).collect();
        assert_eq!(codes.len(), 64);
        assert!(codes.iter().all(|text| code(text).to_string() == *text));
        let code = Code::generate().unwrap();
        assert_ne!(code.hash(1), code.hash(2));
        assert!(!code.hash(1).contains(&code.to_string()));
    }

    #[test]
    fn the_batch_ends_with_the_code_and_wrong_ones_count() {
        let right = code("ABCD-EFGH");
        let messages = [
            ("message", text(7, "private", "hello there")),
            ("message", text(8, "private", "ABCD-EFG0")),
            ("message", text(42, "private", "ABCD-EFG1")),
            ("message", text(7, "private", "abcd efgh")),
            ("message", text(7, "private", "can you hear me?")),
        ];
        let tries = tried(&messages, &[&right]);
        assert_eq!((tries.taken, tries.wrong, tries.pairs.unwrap().user_id), (4, 1, 7));
        assert_eq!(tried(&messages, &[]), Tries { taken: 5, ..Tries::default() });
    }

    #[test]
    fn the_owner_is_shown_a_name_and_no_link() {
        let env = [("WORKSPACE_DIR", "/nowhere/reveille"), ("ALLOWED_CHAT_IDS", "42")];
        let env = env.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        let words =
            build_messages(7, "[Ana](https://example.org)", &Config::from_sources(&env, None, Some("UTC")).unwrap());
        assert_eq!(words.iter().map(|message| message.chat.id).collect::<Vec<_>>(), [7, 42]);
        assert!(words[0].text.contains("in my owner's memory"), "{}", words[0].text);
        assert_eq!([0, 1].map(|at| words[at].taint.is_some()), [false, true], "they named themselves");
        assert!(words[1].text.contains("Ana(https") && !words[1].text.contains("]("), "{}", words[1].text);
    }

    #[test]
    fn only_ones_own_new_words_in_private_pair() {
        let right = code("ABCD-EFGH");
        let mut forwarded = text(7, "private", "ABCD-EFGH");
        forwarded["forward_origin"] = json!({"type": "hidden_user", "sender_user_name": "Ana", "date": 1});
        let mut by_bot = text(7, "private", "ABCD-EFGH");
        by_bot["from"]["is_bot"] = json!(true);
        for (kind, message) in [
            ("message", forwarded),
            ("message", by_bot),
            ("message", text(7, "supergroup", "ABCD-EFGH")),
            ("edited_message", text(7, "private", "ABCD-EFGH")),
        ] {
            let tries = tried(&[(kind, message.clone())], &[&right]);
            assert_eq!((tries.pairs, tries.wrong), (None, 0), "{kind} {message}");
        }
    }
}
