//! A conversation as Markdown: days as headings, each message under its speaker. All but a message's first line is quoted, to keep it from
//! opening a heading, a comment or a fence.

use std::collections::BTreeMap;

use chrono::{DateTime, NaiveDate, Utc};

use reveille_base::{
    words::{one_line, truncate_text},
    zone::Tz,
};

use super::{
    found::{CUT_SHORT, DocumentKind, FoundContent, FoundDocument},
    plan::hash,
};

/// The length of a conversation's id within a file name, in characters.
const ID_CHARS: usize = 12;
/// The minimum number of distinct characters in such an id: made-up ids often begin alike.
const MIN_ID_LETTERS: usize = 5;
const TWICE: &str = "conversations that occurred twice: only the longer one is imported";

/// The maximum length of a title, in characters.
const MAX_TITLE_CHARS: usize = 120;
/// The maximum length kept of one message, in characters.
const MAX_MESSAGE_CHARS: usize = 100_000;
/// The maximum size of a document, in bytes. A longer conversation continues in another document.
const MAX_DOCUMENT_BYTES: usize = 192 << 10;

/// A conversation as read from its source.
#[derive(Debug, Clone, Default)]
pub(super) struct ImportedConversation {
    pub(super) title: String,
    /// The messages in order.
    pub(super) said: Vec<ImportedMessage>,
}

/// A message of a conversation.
#[derive(Debug, Clone)]
pub(super) struct ImportedMessage {
    pub(super) who: String,
    pub(super) at: Option<DateTime<Utc>>,
    pub(super) text: String,
}

/// A conversation of an export.
#[derive(Debug, Clone)]
pub(super) struct ExportedConversation {
    /// The id in the export.
    pub(super) id: Option<String>,
    pub(super) begun: Option<DateTime<Utc>>,
    pub(super) read: ImportedConversation,
}

/// The distinct conversations of an export, by their documents' paths without `.md`.
#[derive(Debug, Default)]
pub(super) struct ConversationShelf {
    kept: BTreeMap<String, ExportedConversation>,
}

impl ConversationShelf {
    /// Adds a conversation. If it was added before, the copy with more messages stays.
    pub(super) fn add_conversation(
        &mut self,
        folder: &str,
        conversation: ExportedConversation,
        tz: Tz,
        found: &mut FoundContent,
    ) {
        let day = conversation.day(tz);
        let stem = |id: &str| format!("{folder}/{}", format_day_path(day, id));
        let mut place = stem(&conversation.short_id());
        if let Some(existing) = self.kept.get(&place).filter(|existing| !existing.is_the_same_as(&conversation)) {
            let texts: Vec<_> =
                existing.read.said.iter().chain(&conversation.read.said).map(|said| &said.text).collect();
            place = stem(&plain_id(&hash(&format!("{:?} {texts:?}", conversation.id))));
        }
        let Some(existing) = self.kept.get(&place) else {
            self.kept.insert(place, conversation);
            return;
        };
        found.leave_out(&conversation.read.title, TWICE);
        if conversation.read.said.len() > existing.read.said.len() {
            self.kept.insert(place, conversation);
        }
    }

    /// Converts all conversations to documents.
    pub(super) fn into_documents(self, tz: Tz, found: &mut FoundContent) {
        for (stem, conversation) in self.kept {
            add_documents(&stem, conversation.day(tz), &conversation.read, tz, found);
        }
    }
}

impl ExportedConversation {
    /// Returns the day the conversation began.
    fn day(&self, tz: Tz) -> Option<NaiveDate> {
        let begun = self.begun.or_else(|| self.read.said.iter().find_map(|said| said.at));
        begun.map(|at| at.with_timezone(&tz).date_naive())
    }

    /// Returns the id used in a file name: taken from the id itself, or a hash of it or of the first message.
    fn short_id(&self) -> String {
        let own = self.id.as_deref().map(|id| (plain_id(id), id));
        match own {
            Some((short, _)) if is_random(&short) => short,
            Some((short, id)) if short.len() >= ID_CHARS / 2 => plain_id(&hash(id)),
            _ => {
                let first = self.read.said.first();
                let first = first.map(|said| format!("{:?} {}", said.at, said.text)).unwrap_or_default();
                plain_id(&hash(&format!("{} {first}", self.read.title)))
            }
        }
    }

    fn is_the_same_as(&self, other: &Self) -> bool {
        match (&self.id, &other.id) {
            (Some(one), Some(other)) => one == other,
            _ => self.read.said.iter().zip(&other.read.said).all(|(one, other)| one.text == other.text),
        }
    }
}

/// Returns the first letters and digits of an id.
fn plain_id(id: &str) -> String {
    id.chars().filter(char::is_ascii_alphanumeric).take(ID_CHARS).collect::<String>().to_lowercase()
}

/// Returns whether the beginning of an id looks random enough to be unique.
fn is_random(short: &str) -> bool {
    let letters: std::collections::BTreeSet<char> = short.chars().collect();
    let is_hex = short.chars().all(|c| c.is_ascii_hexdigit());
    is_hex && short.len() >= ID_CHARS / 2 && letters.len() >= MIN_ID_LETTERS
}

/// Adds a conversation's documents, and reports truncated messages. `stem` is the path of its first document without `.md`.
pub(super) fn add_documents(
    stem: &str,
    day: Option<NaiveDate>,
    conversation: &ImportedConversation,
    tz: Tz,
    found: &mut FoundContent,
) {
    let long = conversation.said.iter().filter(|said| said.text.trim().chars().count() > MAX_MESSAGE_CHARS);
    long.for_each(|_| found.leave_out(&conversation.title, CUT_SHORT));
    found.documents.extend(build_documents(stem, day, conversation, tz));
}

/// Builds the conversation's documents, usually a single one.
fn build_documents(
    stem: &str,
    day: Option<NaiveDate>,
    conversation: &ImportedConversation,
    tz: Tz,
) -> Vec<FoundDocument> {
    let title = match one_line(&conversation.title.replace("<!--", "<! --")) {
        title if title.is_empty() => "Untitled".to_owned(),
        title => truncate_text(&title, MAX_TITLE_CHARS),
    };
    let mut texts = Vec::new();
    let begin = |part: usize| match part {
        0 => format!("# {title}\n"),
        _ => format!("# {title} (continued)\n"),
    };
    let (mut text, mut heading, mut is_empty) = (begin(0), None, true);
    for message in &conversation.said {
        let local = message.at.map(|at| at.with_timezone(&tz).naive_local());
        let block = message_block(message, local.map(|local| local.format("%H:%M").to_string()).as_deref());
        if !is_empty && text.len() + block.len() > MAX_DOCUMENT_BYTES {
            texts.push(std::mem::replace(&mut text, begin(texts.len() + 1)));
            heading = None;
        }
        let today = local.map(|local| local.date());
        if today.is_some() && today != heading {
            heading = today;
            text.push_str(&today.map(|day| format!("\n## {day}\n")).unwrap_or_default());
        }
        text.push_str(&block);
        is_empty = false;
    }
    texts.push(text);
    let path = |part: usize| if part == 0 { format!("{stem}.md") } else { format!("{stem}-{}.md", part + 1) };
    let document = |(part, text)| FoundDocument { path: path(part), text, day, kind: DocumentKind::Conversation };
    texts.into_iter().enumerate().map(document).collect()
}

fn message_block(message: &ImportedMessage, time: Option<&str>) -> String {
    let text = truncate_text(message.text.trim(), MAX_MESSAGE_CHARS).replace("<!--", "<! --").replace('\r', "\n");
    let mut lines = text.lines().skip_while(|line| line.trim().is_empty());
    let time = time.map(|time| format!(" ({time})")).unwrap_or_default();
    let who = one_line(&message.who).replace(['*', ':', '<', '>'], "");
    let mut block = format!("\n**{}**{time}: {}\n", who, lines.next().unwrap_or_default().trim());
    for line in lines {
        block.push_str(if line.trim().is_empty() { ">" } else { "> " });
        block.push_str(line.trim_end());
        block.push('\n');
    }
    block
}

/// Returns a path such as `2025-03/2025-03-14-ID` for a day; `undated/ID` without one.
pub(super) fn format_day_path(day: Option<NaiveDate>, id: &str) -> String {
    match day {
        Some(day) => format!("{}/{day}-{id}", day.format("%Y-%m")),
        None => format!("undated/{id}"),
    }
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;

    use super::*;
    use reveille_memory::sections::Document;

    fn said(who: &str, minute: u32, text: &str) -> ImportedMessage {
        let day = NaiveDate::from_ymd_opt(2025, 3, 14).unwrap();
        ImportedMessage {
            who: who.into(),
            at: Some(day.and_hms_opt(13, minute, 0).unwrap().and_utc()),
            text: text.into(),
        }
    }

    #[test]
    fn a_message_forges_no_heading_and_opens_no_comment() {
        let conversation = ImportedConversation {
            title: "Trip\n## Forged <!-- x".into(),
            said: vec![
                said("You", 3, "\n\n# Where to?\n## Forged\n```\nopen\n<!-- for: all -->\n"),
                said("ChatGPT", 4, "Kiel.\n\n**You** (13:05): yes"),
            ],
        };
        let documents = build_documents("chatgpt/2025-03/2025-03-14-a1", None, &conversation, "UTC".parse().unwrap());
        assert_eq!(documents[0].path, "chatgpt/2025-03/2025-03-14-a1.md");
        assert_snapshot!(documents[0].text, @r"
        # Trip ## Forged <! -- x

        ## 2025-03-14

        **You** (13:03): # Where to?
        > ## Forged
        > ```
        > open
        > <! -- for: all -->

        **ChatGPT** (13:04): Kiel.
        >
        > **You** (13:05): yes
        ");
        let titles: Vec<_> = Document::split(&documents[0].text).sections().map(|part| part.title.clone()).collect();
        assert_eq!(titles, ["2025-03-14"]);
    }

    #[test]
    fn a_truncated_message_is_reported() {
        let long = "x".repeat(MAX_MESSAGE_CHARS + 1);
        let said = vec![said("You", 1, &long), said("You", 2, "short")];
        let mut found = FoundContent::default();
        add_documents(
            "a",
            None,
            &ImportedConversation { title: "Long".into(), said },
            "UTC".parse().unwrap(),
            &mut found,
        );
        let left: Vec<_> = found.left_out.iter().map(|left| (left.what.as_str(), left.why)).collect();
        assert_eq!((found.documents.len(), left), (1, vec![("Long", CUT_SHORT)]));
    }

    #[test]
    fn each_conversation_has_its_own_document_and_duplicates_share_one() {
        let exported = |id: Option<&str>, texts: &[&str]| ExportedConversation {
            id: id.map(str::to_owned),
            begun: None,
            read: ImportedConversation {
                title: "T".into(),
                said: texts.iter().map(|text| said("You", 1, text)).collect(),
            },
        };
        for (name, conversations, documents, twice) in [
            (
                "ids of their own",
                vec![exported(Some("0a1b2c3d-4e5f-1"), &["a"]), exported(Some("0a1b2c3d-4e5e-1"), &["a"])],
                2,
                0,
            ),
            (
                "ids that begin alike",
                vec![exported(Some("00000000-0000-0000-1"), &["a"]), exported(Some("00000000-0000-0000-2"), &["a"])],
                2,
                0,
            ),
            (
                "ids that begin alike by chance",
                vec![exported(Some("12345678-1234-1"), &["a"]), exported(Some("12345678-1234-2"), &["a"])],
                2,
                0,
            ),
            (
                "made-up ids",
                vec![exported(Some("conversation-1"), &["a"]), exported(Some("conversation-2"), &["a"])],
                2,
                0,
            ),
            ("no ids", vec![exported(None, &["a"]), exported(None, &["b"])], 2, 0),
            (
                "no ids, and conversations that begin alike",
                vec![exported(None, &["a", "b"]), exported(None, &["a", "c"])],
                2,
                0,
            ),
            (
                "the same twice",
                vec![exported(Some("0a1b2c3d-4e5f-1"), &["a", "b"]), exported(Some("0a1b2c3d-4e5f-1"), &["a"])],
                1,
                1,
            ),
            ("the longer copy second", vec![exported(None, &["a"]), exported(None, &["a", "b"])], 1, 1),
        ] {
            let (mut shelf, mut found) = (ConversationShelf::default(), FoundContent::default());
            let tz = "UTC".parse().unwrap();
            let most = conversations.iter().map(|one| one.read.said.len()).max().unwrap();
            conversations.into_iter().for_each(|one| shelf.add_conversation("k", one, tz, &mut found));
            shelf.into_documents(tz, &mut found);
            assert_eq!((found.documents.len(), found.left_out.len()), (documents, twice), "{name}: {found:?}");
            let longest = found.documents.iter().map(|document| document.text.matches("**You**").count()).max();
            assert_eq!(longest, Some(most), "{name}");
        }
    }

    #[test]
    fn a_long_conversation_continues_in_another_document() {
        let long = "x".repeat(MAX_DOCUMENT_BYTES / 2);
        let conversation =
            ImportedConversation { title: String::new(), said: (0..5).map(|n| said("You", n, &long)).collect() };
        let documents = build_documents("a", None, &conversation, "UTC".parse().unwrap());
        let paths: Vec<_> = documents.iter().map(|document| document.path.as_str()).collect();
        assert_eq!(paths, ["a.md", "a-2.md", "a-3.md", "a-4.md", "a-5.md"]);
        assert!(documents[1].text.starts_with("# Untitled (continued)\n\n## 2025-03-14\n\n**You**"));
    }
}
