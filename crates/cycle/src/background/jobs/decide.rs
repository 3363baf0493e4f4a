//! The comparison of a watched target with its last state: returns the news and the new state. Pure.
//!
//! The first look only records. For a feed new entries count, for a text the removed and added lines.

use serde::{Deserialize, Serialize};

use reveille_base::{approval_text::hash_action, words::first_bytes};
use reveille_memory::job::JobNotify;
use reveille_sandbox::web::FeedEntry;

use crate::background::jobs::{
    feed_news::{EntryMarks, compare_entries},
    words::{render_changes, render_entries},
};

/// The maximum size of a kept text, in bytes.
pub(crate) const KEPT_BYTES: usize = 64 * 1024;

/// The content of a watched target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Sighting {
    /// A page, a file or the output of a command.
    Text(String),
    /// A feed.
    Feed(Vec<FeedEntry>),
}

/// The kept state of a look.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum Kept {
    Text {
        hash: String,
        text: String,
        /// The entries of a feed formerly at this address, since a failing server may answer with a page.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        entries: Vec<EntryMarks>,
    },
    Feed {
        /// Hashes of ids, kept before links and titles were.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        ids: Vec<String>,
        #[serde(default)]
        entries: Vec<EntryMarks>,
    },
}

/// The result of a look.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Compared {
    /// The state kept for the next look.
    pub kept: String,
    /// The news as text. `None` without news, and at the first look.
    pub news: Option<String>,
    /// True if there was no earlier state.
    pub is_first: bool,
}

/// Compares the content with the state of the last look.
pub(crate) fn compare(last: Option<&str>, now: &Sighting) -> Compared {
    let last: Option<Kept> = last.and_then(|kept| serde_json::from_str(kept).ok());
    let (kept, news) = match (now, last) {
        (Sighting::Text(text), last) => {
            let news = match &last {
                Some(Kept::Text { hash, text: before, .. }) if *hash != hash_action(text) => {
                    Some(Some(render_changes(before, first_bytes(text, KEPT_BYTES))))
                }
                Some(Kept::Text { .. }) => Some(None),
                Some(Kept::Feed { .. }) | None => None,
            };
            let entries = last.and_then(Kept::into_entries).unwrap_or_default();
            (Kept::Text { hash: hash_action(text), text: first_bytes(text, KEPT_BYTES).to_owned(), entries }, news)
        }
        (Sighting::Feed(entries), last) => {
            let (entries, new) = compare_entries(last.and_then(Kept::into_entries), entries);
            (Kept::Feed { ids: Vec::new(), entries }, new.map(|new| (!new.is_empty()).then(|| render_entries(&new))))
        }
    };
    let kept = serde_json::to_string(&kept).unwrap_or_default();
    Compared { kept, is_first: news.is_none(), news: news.flatten() }
}

impl Kept {
    /// The entries of a feed. `None` if the state has none.
    fn into_entries(self) -> Option<Vec<EntryMarks>> {
        match self {
            Self::Feed { ids, mut entries } => {
                entries.extend(ids.into_iter().map(EntryMarks::from_id));
                Some(entries)
            }
            Self::Text { entries, .. } => Some(entries).filter(|entries| !entries.is_empty()),
        }
    }
}

/// Returns `true` if an output should be reported, given the output of the run before.
pub(crate) fn is_reportable(notify: JobNotify, output: &str, before: Option<&str>) -> bool {
    match notify {
        JobNotify::Always => true,
        JobNotify::Changes => before.is_none_or(|before| before.trim() != output.trim()),
        JobNotify::Never => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Sighting {
        Sighting::Text(text.to_owned())
    }

    fn feed(ids: &[&str]) -> Sighting {
        let entry = |id: &&str| FeedEntry {
            id: (*id).to_owned(),
            title: format!("Title {id}"),
            link: Some(format!("https://example.org/{id}")),
        };
        Sighting::Feed(ids.iter().map(entry).collect())
    }

    #[test]
    fn the_first_look_only_records_and_the_same_again_is_no_news() {
        let first = compare(None, &text("a\nb\n"));
        assert_eq!((first.is_first, &first.news), (true, &None));
        let same = compare(Some(&first.kept), &text("a\nb\n"));
        assert_eq!((same.is_first, same.news), (false, None));
        let other = compare(Some(&first.kept), &text("a\nc\n"));
        assert_eq!(other.news.as_deref(), Some("- b\n+ c"));
        assert!(compare(Some("damaged"), &text("a")).is_first);
        assert!(compare(Some(&first.kept), &feed(&["1"])).is_first, "it has become a feed");
    }

    #[test]
    fn of_a_feed_new_entries_count_and_none_twice() {
        let first = compare(None, &feed(&["2", "1"]));
        let second = compare(Some(&first.kept), &feed(&["3", "2"]));
        assert_eq!(second.news.as_deref(), Some("Title 3\nhttps://example.org/3"));
        assert_eq!(compare(Some(&second.kept), &feed(&["3", "1"])).news, None, "1 was known");
        let many: Vec<String> = (10..40).map(|n| n.to_string()).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        let news = compare(Some(&second.kept), &feed(&many)).news.unwrap();
        assert!(news.ends_with("Title 19\nhttps://example.org/19\n\n… and 20 more"), "{news}");
    }

    #[test]
    fn a_feed_stays_known_while_its_server_answers_with_a_page() {
        let first = compare(None, &feed(&["1"]));
        let page = compare(Some(&first.kept), &text("Down for maintenance"));
        assert!(page.is_first && page.news.is_none());
        let other = compare(Some(&page.kept), &text("Back soon"));
        assert!(other.news.is_some());
        let again = compare(Some(&other.kept), &feed(&["2", "1"]));
        assert_eq!(again.news.as_deref(), Some("Title 2\nhttps://example.org/2"));
    }

    #[test]
    fn state_kept_by_an_older_release_is_read() {
        let hash = |id: &str| hash_action(id).chars().take(16).collect::<String>();
        let kept = format!("{{\"kind\":\"feed\",\"ids\":[\"{}\"]}}", hash("1"));
        assert_eq!(compare(Some(&kept), &feed(&["2", "1"])).news.as_deref(), Some("Title 2\nhttps://example.org/2"));
        let kept = format!("{{\"kind\":\"text\",\"hash\":\"{}\",\"text\":\"a\"}}", hash_action("a"));
        assert_eq!(compare(Some(&kept), &text("b")).news.as_deref(), Some("- a\n+ b"));
    }

    #[test]
    fn long_texts_are_bounded_and_a_change_beyond_is_told() {
        let long = "x\n".repeat(KEPT_BYTES);
        let first = compare(None, &text(&long));
        assert!(first.kept.len() < 3 * KEPT_BYTES);
        let news = compare(Some(&first.kept), &text(&format!("{long}end"))).news.unwrap();
        assert_eq!(news, "(Only spaces changed, or something beyond the part that I keep.)");
        let lines: String = (0..100).map(|n| format!("{n}\n")).collect();
        let news = compare(Some(&compare(None, &text("")).kept), &text(&lines)).news.unwrap();
        assert!(news.ends_with("\n+ 39\n… and 60 lines more"), "{news}");
    }

    #[test]
    fn an_output_is_reported_as_the_job_says() {
        assert!(is_reportable(JobNotify::Changes, "a", None) && is_reportable(JobNotify::Changes, "a", Some("b")));
        assert!(
            !is_reportable(JobNotify::Changes, "a\n", Some("a")) && is_reportable(JobNotify::Always, "a", Some("a"))
        );
        assert!(!is_reportable(JobNotify::Never, "a", None));
    }
}
