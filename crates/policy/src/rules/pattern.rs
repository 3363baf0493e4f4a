//! Patterns of rules. Matching takes time in proportion to the product of both lengths.

/// A place in a pattern of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Word {
    /// `**`: any number of words, including none.
    Many,
    /// One word that matches one of these; `*` stands for any characters.
    OneOf(Vec<String>),
}

/// Returns `true` if a command begins with the pattern.
pub(super) fn is_command_match(pattern: &[Word], words: &[&str]) -> bool {
    let open: Vec<&Word> = pattern.iter().chain([&Word::Many]).collect();
    is_sequence_match(
        &open,
        words,
        |word| **word == Word::Many,
        |word, given| match word {
            Word::Many => true,
            Word::OneOf(any) => any.iter().any(|pattern| is_text_match(pattern, given)),
        },
    )
}

/// Returns `true` if a text matches the pattern, whose `*` stands for any characters.
pub(super) fn is_text_match(pattern: &str, given: &str) -> bool {
    let (pattern, given): (Vec<char>, Vec<char>) = (pattern.chars().collect(), given.chars().collect());
    is_sequence_match(&pattern, &given, |c| *c == '*', |c, given| c == given)
}

/// Returns `true` if a path matches the pattern: `*` stays within a part of the path, and a part `**` stands for any number of parts. Empty
/// parts and `.` (`//`, `/./`) are skipped, as on opening the path.
pub(super) fn is_path_match(pattern: &str, given: &str) -> bool {
    let parts = |path: &str| -> Vec<String> {
        // fault: plain-path-passes-rule
        path.split('/').filter(|part| !["", "."].contains(part)).map(str::to_owned).collect()
    };
    let is_same_kind = pattern.starts_with('/') == given.starts_with('/');
    is_same_kind
        && is_sequence_match(
            &parts(pattern),
            &parts(given),
            |part| part == "**",
            |part, given| is_text_match(part, given),
        )
}

/// Returns `true` if `given` matches the whole `pattern`, in which some places take any number.
fn is_sequence_match<P, G>(
    pattern: &[P],
    given: &[G],
    is_many: impl Fn(&P) -> bool,
    is_one: impl Fn(&P, &G) -> bool,
) -> bool {
    // `reached[n]`: the items so far match the first n places.
    let past_many = |reached: &mut Vec<bool>| {
        let mut is_before = false;
        let mut previous: Option<&P> = None;
        for (place, reached) in reached.iter_mut().enumerate() {
            *reached |= is_before && previous.is_some_and(&is_many);
            is_before = *reached;
            previous = pattern.get(place);
        }
    };
    let mut reached: Vec<bool> = std::iter::once(true).chain(pattern.iter().map(|_| false)).collect();
    past_many(&mut reached);
    for item in given {
        let stays = reached.iter().zip(pattern).map(|(reached, place)| *reached && is_many(place)).chain([false]);
        let steps =
            reached.iter().zip(pattern).map(|(reached, place)| *reached && !is_many(place) && is_one(place, item));
        let mut next: Vec<bool> =
            stays.zip(std::iter::once(false).chain(steps)).map(|(stays, steps)| stays || steps).collect();
        past_many(&mut next);
        reached = next;
    }
    reached.last().copied().unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_is_any_characters() {
        for (pattern, given, fits) in [
            ("*", "", true),
            ("a*", "abc", true),
            ("*c", "abc", true),
            ("a*c*", "abc", true),
            ("a*d", "abc", false),
            ("", "", true),
            ("", "a", false),
            ("*.example.com", "a.b.example.com", true),
            ("*.example.com", "example.com", false),
        ] {
            assert_eq!(is_text_match(pattern, given), fits, "{pattern} {given}");
        }
        // Exponential time for a backtracking matcher.
        assert!(!is_text_match(&"a*".repeat(200), &"a".repeat(2000).replace('a', "b")));
    }

    #[test]
    fn a_path_s_star_stays_within_a_part() {
        for (pattern, given, fits) in [
            ("/a/*", "/a/b", true),
            ("/a/*", "/a/b/c", false),
            ("/a/**", "/a/b/c", true),
            ("/a/**", "/a", true),
            ("/a/**/c", "/a/c", true),
            ("/a/**", "/ab", false),
            ("a/*", "/a/b", false),
            ("/a/b", "/a/./b", true),
            ("/a/b", "/./a//b/.", true),
            ("/a/./b/", "/a/b", true),
            ("/a/*", "/a/.", false),
            ("/a/b", "/a/../b", false),
            ("/a/b", "/a/.b", false),
        ] {
            assert_eq!(is_path_match(pattern, given), fits, "{pattern} {given}");
        }
    }

    #[test]
    fn a_command_is_matched_from_its_beginning() {
        let one = |words: &[&str]| Word::OneOf(words.iter().map(|word| (*word).to_owned()).collect());
        let push = [one(&["git"]), one(&["push", "pull"])];
        assert!(is_command_match(&push, &["git", "push", "origin"]) && is_command_match(&push, &["git", "pull"]));
        assert!(!is_command_match(&push, &["git"]) && !is_command_match(&push, &["git", "-C", "push"]));
        let anywhere = [one(&["git"]), Word::Many, one(&["--force*"])];
        assert!(is_command_match(&anywhere, &["git", "push", "--force-with-lease", "x"]));
        assert!(!is_command_match(&anywhere, &["git", "push"]));
    }
}
