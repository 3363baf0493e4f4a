//! The new entries of a feed, compared with earlier looks.
//!
//! Ids are meant for this, but many publishers misuse them: ids change at each look, all entries share one, or there are no ids. So an
//! entry is recognised by its id if ids are stable and unique, otherwise by its link, otherwise by its text.

use std::collections::{HashMap, HashSet};

use serde::{Deserialize, Serialize};

use reveille_base::approval_text::hash_action;
use reveille_sandbox::web::FeedEntry;

/// The maximum number of remembered entries per feed.
const MAX_REMEMBERED: usize = 3_000;
/// The number of hash digits kept per mark.
const DIGITS: usize = 16;
/// The number of entries with the same text but new ids and links from which the feed's links count as unstable.
const CHANGED_LINKS: usize = 2;

/// The remembered form of an entry: hashes of its id, link and title, each empty if missing.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct EntryMarks([String; 3]);

impl EntryMarks {
    /// Builds the marks of an entry from the hash of its id alone.
    pub(crate) fn from_id(hash: String) -> Self {
        Self([hash, String::new(), String::new()])
    }

    fn from_entry(entry: &FeedEntry) -> Self {
        let link = entry.link.as_deref().and_then(normalize_link).unwrap_or_default();
        Self([hash(&entry.id), hash(&link), hash(&entry.title)])
    }

    fn id(&self) -> &str {
        let Self([id, ..]) = self;
        id
    }

    fn link(&self) -> &str {
        let Self([_, link, _]) = self;
        link
    }

    fn words(&self) -> &str {
        let Self([.., words]) = self;
        words
    }

    fn page(&self) -> (&str, &str) {
        (self.link(), self.words())
    }
}

fn hash(text: &str) -> String {
    if text.is_empty() { String::new() } else { hash_action(text).chars().take(DIGITS).collect() }
}

/// Normalises a link, dropping parts that don't change the page. `None` for a whole site, which identifies no entry.
fn normalize_link(link: &str) -> Option<String> {
    let (_, rest) = link.split_once("://").unwrap_or(("", link));
    let (page, fragment) = rest.split_once('#').map_or((rest, ""), |(page, fragment)| (page, fragment));
    let (path, query) = page.split_once('?').unwrap_or((page, ""));
    let query: Vec<&str> =
        query.split('&').filter(|part| !part.is_empty() && !part.to_ascii_lowercase().starts_with("utm_")).collect();
    let path = path.trim_start_matches("www.").trim_end_matches('/');
    let is_site = !path.contains('/') && query.is_empty() && fragment.is_empty();
    (!is_site).then(|| format!("{path}?{}#{fragment}", query.join("&")))
}

/// Returns the marks to remember after this look, and the new entries in the feed's order. The latter is `None` without an earlier look.
pub(crate) fn compare_entries(
    known: Option<Vec<EntryMarks>>,
    entries: &[FeedEntry],
) -> (Vec<EntryMarks>, Option<Vec<&FeedEntry>>) {
    let now: Vec<EntryMarks> = entries.iter().map(EntryMarks::from_entry).collect();
    let Some(known) = known else { return (now, None) };
    let comparison = Comparison::new(&known, &now);
    let new = now.iter().zip(entries).filter(|(marks, _)| !comparison.is_known(marks)).map(|(_, entry)| entry);
    // Marks of an earlier format may contain no ids that match today's.
    let is_first = comparison.has_ids_alone && !now.iter().any(|marks| comparison.knows_id(marks));
    let new = (!is_first || known.is_empty()).then(|| new.collect());
    // Entries dropped by the feed may come back.
    let listed: HashSet<&EntryMarks> = now.iter().collect();
    let is_older = |marks: &&EntryMarks| !listed.contains(marks) && !comparison.is_listed(marks);
    let older: Vec<EntryMarks> = known.iter().filter(is_older).cloned().collect();
    (now.into_iter().chain(older).take(MAX_REMEMBERED).collect(), new)
}

/// Two looks at a feed, and the reliability of its marks.
struct Comparison<'a> {
    exact: HashSet<&'a EntryMarks>,
    by_id: HashMap<&'a str, Vec<&'a EntryMarks>>,
    by_link: HashMap<&'a str, Vec<&'a EntryMarks>>,
    words: HashSet<&'a str>,
    /// The number of entries with each id in the feed now.
    ids: HashMap<&'a str, usize>,
    links: HashMap<&'a str, usize>,
    pages: HashSet<(&'a str, &'a str)>,
    /// True if entries with a known page have other ids now.
    do_ids_change: bool,
    /// True if entries with known titles have other links and ids now.
    do_links_change: bool,
    /// True if only ids are remembered.
    has_ids_alone: bool,
}

impl<'a> Comparison<'a> {
    fn new(known: &'a [EntryMarks], now: &'a [EntryMarks]) -> Self {
        let (mut by_id, mut by_link) = (HashMap::<_, Vec<_>>::new(), HashMap::<_, Vec<_>>::new());
        for marks in known {
            by_id.entry(marks.id()).or_default().push(marks);
            by_link.entry(marks.link()).or_default().push(marks);
        }
        let mut comparison = Self {
            exact: known.iter().collect(),
            by_id,
            by_link,
            words: known.iter().map(EntryMarks::words).collect(),
            ids: count_marks(now.iter().map(EntryMarks::id)),
            links: count_marks(now.iter().map(EntryMarks::link)),
            pages: now.iter().map(EntryMarks::page).collect(),
            do_ids_change: false,
            do_links_change: false,
            has_ids_alone: known.iter().all(|marks| marks.page() == ("", "")),
        };
        let same_pages = || now.iter().filter(|marks| comparison.knows_page(marks) && !marks.id().is_empty());
        let do_ids_change = same_pages().next().is_some() && !same_pages().any(|marks| comparison.knows_id(marks));
        let words = count_marks(now.iter().map(EntryMarks::words));
        let same_words = || {
            let is_own = |marks: &&EntryMarks| words.get(marks.words()) == Some(&1) && !marks.words().is_empty();
            now.iter().filter(is_own).filter(|marks| comparison.words.contains(marks.words()))
        };
        let count = same_words().count();
        let has_kept = |marks: &EntryMarks| {
            comparison.knows_id(marks) || !marks.link().is_empty() && comparison.by_link.contains_key(marks.link())
        };
        let do_links_change = count >= CHANGED_LINKS && count * 2 >= now.len() && !same_words().any(has_kept);
        comparison.do_ids_change = do_ids_change || do_links_change;
        comparison.do_links_change = do_links_change;
        comparison
    }

    fn knows_id(&self, marks: &EntryMarks) -> bool {
        !marks.id().is_empty() && self.by_id.contains_key(marks.id())
    }

    /// Returns `true` if a link identifies a single entry, in the feed and among the remembered ones.
    fn is_own_link(&self, link: &str) -> bool {
        let mut known = self.by_link.get(link).into_iter().flatten();
        let first = known.next();
        let is_shared =
            known.any(|other| first.is_some_and(|first| first.id() != other.id() && first.words() != other.words()));
        !link.is_empty() && self.links.get(link) == Some(&1) && !is_shared
    }

    fn knows_page(&self, marks: &EntryMarks) -> bool {
        let known = self.by_link.get(marks.link()).into_iter().flatten();
        self.is_own_link(marks.link()) && known.into_iter().any(|known| known.words() == marks.words())
    }

    fn is_own_id(&self, marks: &EntryMarks) -> bool {
        !self.do_ids_change && !marks.id().is_empty() && self.ids.get(marks.id()) == Some(&1)
    }

    fn is_known(&self, marks: &EntryMarks) -> bool {
        if self.exact.contains(marks) {
            return true;
        }
        if self.is_own_id(marks) {
            let known = self.by_id.get(marks.id()).map_or(&[][..], Vec::as_slice);
            let differs = |one: &str, other: &str| !one.is_empty() && !other.is_empty() && one != other;
            let is_other =
                |known: &&EntryMarks| differs(known.link(), marks.link()) && differs(known.words(), marks.words());
            match known {
                [] => return self.knows_page(marks),
                // Another page with another title under the same id: the publisher uses one id for all entries.
                known if known.iter().all(is_other) => {}
                _ => return true,
            }
        } else if marks.id().is_empty() && self.has_ids_alone && !self.by_id.is_empty() {
            return true;
        }
        if self.is_own_link(marks.link()) && !self.do_links_change {
            return self.by_link.contains_key(marks.link());
        }
        !marks.words().is_empty() && self.words.contains(marks.words())
    }

    /// Returns `true` if the feed still lists a remembered entry.
    fn is_listed(&self, known: &EntryMarks) -> bool {
        let has_id = !known.id().is_empty() && self.ids.get(known.id()) == Some(&1);
        has_id || known.page() != ("", "") && self.pages.contains(&known.page())
    }
}

fn count_marks<'a>(marks: impl Iterator<Item = &'a str>) -> HashMap<&'a str, usize> {
    let mut counts = HashMap::new();
    for mark in marks {
        *counts.entry(mark).or_default() += 1;
    }
    counts
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// An entry as `id link title`, where `-` is `None`.
    fn entry(text: &str) -> FeedEntry {
        let part = |at| text.split(' ').nth(at).filter(|part| *part != "-").map(str::to_owned);
        FeedEntry {
            id: part(0).unwrap_or_default(),
            link: part(1).map(|link| format!("https://example.org{link}")),
            title: part(2).unwrap_or_default(),
        }
    }

    /// Checks a feed repeatedly and returns the titles that each check after the first reports.
    fn told(looks: &[&[&str]]) -> Vec<Vec<String>> {
        let (mut known, mut all) = (None, Vec::new());
        for look in looks {
            let entries: Vec<FeedEntry> = look.iter().map(|text| entry(text)).collect();
            let (kept, new) = compare_entries(known, &entries);
            // As read back from the database.
            known = Some(serde_json::from_str(&serde_json::to_string(&kept).unwrap()).unwrap());
            all.extend(new.map(|new| new.into_iter().map(|entry| entry.title.clone()).collect()));
        }
        all
    }

    #[test]
    fn an_entry_is_told_once_whatever_a_publisher_does_with_ids() {
        // A name, the entries of each check, and the titles that each check after the first reports.
        type Looks = &'static [&'static [&'static str]];
        let table: &[(&str, Looks, Looks)] = &[
            ("ids that last", &[&["1 /1 A"], &["2 /2 B", "1 /1 A"]], &[&["B"]]),
            ("ids that change at each look", &[&["x1 /1 A", "x2 /2 B"], &["y1 /1 A", "y2 /2 B"]], &[&[]]),
            ("the same, with a new one", &[&["x1 /1 A"], &["y0 /0 N", "y1 /1 A"]], &[&["N"]]),
            ("ids that change, looked at thrice", &[&["x /1 A"], &["y /1 A"], &["z /1 A", "w /2 B"]], &[&[], &["B"]]),
            ("one id for all", &[&["1 /1 A"], &["1 /2 B", "1 /1 A"], &["1 /3 C", "1 /2 B"]], &[&["B"], &["C"]]),
            ("one id for the only entry", &[&["1 /1 A"], &["1 /2 B"], &["1 /2 B"]], &[&["B"], &[]]),
            ("one id and one link for all", &[&["1 /x A"], &["1 /x B", "1 /x A"]], &[&["B"]]),
            ("no ids", &[&["- /1 A"], &["- /2 B", "- /1 A"]], &[&["B"]]),
            ("no ids and one link", &[&["- /x A"], &["- /x B", "- /x A"]], &[&["B"]]),
            ("no ids, and links to the site alone", &[&["- / A"], &["- / B"]], &[&["B"]]),
            ("words alone", &[&["- - A"], &["- - B", "- - A"]], &[&["B"]]),
            (
                "ids and links that change",
                &[&["a /1?s=1 A", "b /2?s=1 B"], &["c /1?s=2 A", "d /2?s=2 B", "e /3?s=2 C"]],
                &[&["C"]],
            ),
            ("an edited title", &[&["1 /1 A", "2 /2 B"], &["1 /1 A2", "2 /2 B"]], &[&[]]),
            ("an edited title without ids", &[&["- /1 A", "- /2 B"], &["- /1 A2", "- /2 B"]], &[&[]]),
            ("a link that moved", &[&["1 /1 A", "2 /2 B"], &["1 /new/1 A", "2 /2 B"]], &[&[]]),
            (
                "one id that flaps",
                &[&["h1 /1 A", "2 /2 B"], &["s1 /1 A", "2 /2 B"], &["h1 /1 A", "2 /2 B"]],
                &[&[], &[]],
            ),
            (
                "one title each day",
                &[&["1 /1 Daily"], &["2 /2 Daily", "1 /1 Daily"], &["3 /3 Daily"]],
                &[&["Daily"], &["Daily"]],
            ),
            ("states that come again", &[&["2 /s Down", "1 /s Up"], &["3 /s Up", "2 /s Down"]], &[&["Up"]]),
            ("ids that change, and no links", &[&["1 - A", "2 - B"], &["3 - A", "4 - B", "5 - C"]], &[&["C"]]),
            ("counters in links", &[&["- /1?utm_source=a A"], &["- /1?utm_source=b A"]], &[&[]]),
            ("oldest first", &[&["1 /1 A", "2 /2 B"], &["1 /1 A", "2 /2 B", "3 /3 C"]], &[&["C"]]),
            ("another order", &[&["1 /1 A", "2 /2 B", "3 /3 C"], &["3 /3 C", "1 /1 A", "2 /2 B"]], &[&[]]),
            ("an entry that comes back", &[&["1 /1 A", "2 /2 B"], &["2 /2 B"], &["1 /1 A", "2 /2 B"]], &[&[], &[]]),
            ("an empty feed that fills", &[&[], &["1 /1 A"]], &[&["A"]]),
            ("all anew", &[&["1 /1 A"], &["2 /2 B", "3 /3 C"]], &[&["B", "C"]]),
            ("nothing but ids", &[&["1 - -"], &["2 - -", "1 - -"]], &[&[""]]),
        ];
        for (name, looks, expected) in table {
            assert_eq!(told(looks), *expected, "{name}");
        }
    }

    #[test]
    fn marks_kept_without_links_still_recognise_entries() {
        let known = || Some(vec![EntryMarks::from_id(hash("1"))]);
        let tell = |texts: &[&str]| {
            let entries: Vec<FeedEntry> = texts.iter().map(|text| entry(text)).collect();
            compare_entries(known(), &entries).1.map(|new| new.len())
        };
        assert_eq!(tell(&["1 /1 A", "2 /2 B"]), Some(1));
        assert_eq!(tell(&["- /1 A", "- /2 B"]), None, "its ids were made up");
    }

    #[test]
    fn a_long_feed_stays_known() {
        let many = |from: usize| (from..from + 2_000).map(|n| entry(&format!("{n} /{n} T{n}"))).collect::<Vec<_>>();
        let (kept, _) = compare_entries(None, &many(0));
        let later = many(1);
        let (kept, new) = compare_entries(Some(kept), &later);
        assert_eq!(new.map(|new| new.len()), Some(1));
        assert!(kept.len() <= MAX_REMEMBERED);
    }

    proptest! {
        #[test]
        fn the_same_look_twice_tells_nothing(texts in proptest::collection::vec("[ab-] (/|/[ab]|-) [ab-]", 0..8)) {
            let entries: Vec<FeedEntry> = texts.iter().map(|text| entry(text)).collect();
            let (kept, new) = compare_entries(None, &entries);
            prop_assert_eq!(new, None);
            let (again, new) = compare_entries(Some(kept.clone()), &entries);
            prop_assert_eq!(new.map_or(0, |new| new.len()), 0);
            prop_assert_eq!(kept, again);
        }
    }
}
