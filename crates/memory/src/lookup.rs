//! Finds the single thing meant by a few words of a person or a model, or reports the failure.

use super::text::{fold_text, split_words};

/// The maximum number of near misses named to the asker.
const MAX_SIMILAR: usize = 3;
/// The maximum number of candidates named for an ambiguous query.
const MAX_CANDIDATES: usize = 8;

/// The reason a query didn't match exactly one name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Miss {
    /// Nothing matches; these share a word with the query, nearest first.
    NotFound {
        /// The near titles.
        similar: Vec<String>,
    },
    /// Several names match.
    Ambiguous {
        /// The matching titles.
        candidates: Vec<String>,
    },
}

/// Returns the index of the single name meant by the query: the exact match, else the only name starting with it, else the only name with
/// all its words. Ignores case.
pub fn pick(query: &str, names: &[&str]) -> Result<usize, Miss> {
    let wanted = fold_text(query);
    let wanted_words = split_words(query);
    if wanted_words.is_empty() && wanted.is_empty() {
        return Err(Miss::NotFound { similar: Vec::new() });
    }
    let has_all_words = |name: &str| {
        let own = split_words(name);
        let is_in = |word: &&String| own.iter().any(|other| is_same_word(word, other));
        let mut meant = wanted_words.iter().filter(|word| !ARTICLES.contains(&word.as_str())).peekable();
        meant.peek().is_some() && meant.all(|word| is_in(&word))
    };
    let rules: [&dyn Fn(&str) -> bool; 3] =
        [&|name| fold_text(name) == wanted, &|name| fold_text(name).starts_with(&wanted), &has_all_words];
    for rule in rules {
        let found: Vec<usize> = names.iter().enumerate().filter(|(_, name)| rule(name)).map(|(at, _)| at).collect();
        match found.as_slice() {
            [] => {}
            [only] => return Ok(*only),
            many => {
                let candidates = many.iter().filter_map(|at| names.get(*at)).take(MAX_CANDIDATES);
                return Err(Miss::Ambiguous { candidates: candidates.map(|name| (*name).to_owned()).collect() });
            }
        }
    }
    Err(Miss::NotFound { similar: find_similar_names(&wanted_words, names) })
}

/// Words before a name that aren't part of it.
const ARTICLES: [&str; 5] = ["the", "my", "our", "a", "an"];

/// Returns whether two words are equal or one is the other's plural.
fn is_same_word(one: &str, other: &str) -> bool {
    one == other || one.strip_suffix('s') == Some(other) || other.strip_suffix('s') == Some(one)
}

fn find_similar_names(wanted: &[String], names: &[&str]) -> Vec<String> {
    let shared = |name: &str| split_words(name).iter().filter(|word| wanted.contains(word)).count();
    let mut near: Vec<(usize, &str)> = names.iter().map(|name| (shared(name), *name)).filter(|(n, _)| *n > 0).collect();
    near.sort_by_key(|(shared, _)| std::cmp::Reverse(*shared));
    near.into_iter().take(MAX_SIMILAR).map(|(_, name)| name.to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: &[&str] = &["Call Bob", "Call Bob back", "Write the report", "Report taxes"];

    #[test]
    fn exact_then_prefix_then_words() {
        assert_eq!(pick("call bob", NAMES), Ok(0));
        assert_eq!(pick("WRITE", NAMES), Ok(2));
        assert_eq!(
            pick("tax report", NAMES),
            Err(Miss::NotFound { similar: vec!["Write the report".into(), "Report taxes".into()] })
        );
        assert_eq!(pick("back bob", NAMES), Ok(1));
    }

    #[test]
    fn more_than_one_is_named() {
        let miss = Miss::Ambiguous { candidates: vec!["Call Bob".into(), "Call Bob back".into()] };
        assert_eq!(pick("call", NAMES), Err(miss));
        assert_eq!(pick("  ", NAMES), Err(Miss::NotFound { similar: vec![] }));
        assert_eq!(pick("!?", &["Wow"]), Err(Miss::NotFound { similar: vec![] }));
    }
}
