//! Guesses at the commands of a text that isn't plain. They only serve to raise a risk, to match a rule that forbids, and to explain more;
//! a text without any guess still needs approval.

/// The maximum number of commands guessed from one text.
const MAX_GUESSES: usize = 256;

/// Splits the text at every possible start of a command, with and without its quotes, into word lists that look like commands.
pub(crate) fn guess_commands(text: &str) -> Vec<Vec<String>> {
    let text = text.replace("\\\n", "").replace("${IFS}", " ").replace("$IFS", " ").replace("${HOME}", "$HOME");
    let bare: String = text.chars().filter(|c| !matches!(c, '\'' | '"' | '\\')).collect();
    let mut commands = Vec::new();
    for command in split_commands(&text, QuoteMarks::Read).into_iter().chain(split_commands(&bare, QuoteMarks::Removed))
    {
        if commands.len() < MAX_GUESSES && !commands.contains(&command) {
            commands.push(command);
        }
    }
    commands
}

/// The quotation marks of a text.
#[derive(Clone, Copy, PartialEq, Eq)]
enum QuoteMarks {
    /// They are read as the shell would.
    Read,
    /// They were removed before.
    Removed,
}

fn split_commands(text: &str, marks: QuoteMarks) -> Vec<Vec<String>> {
    let reads_quotes = marks == QuoteMarks::Read;
    let (mut commands, mut words, mut word) = (Vec::new(), Vec::new(), String::new());
    let (mut quote, mut has_word, mut is_escaped) = (None, false, false);
    for c in text.chars().chain(['\n']) {
        let end_word = |words: &mut Vec<String>, word: &mut String, has_word: bool| {
            if has_word {
                words.push(std::mem::take(word));
            }
        };
        match (c, quote) {
            (c, _) if is_escaped => {
                word.push(c);
                (has_word, is_escaped) = (true, false);
            }
            ('\\', None | Some('"')) if reads_quotes => is_escaped = true,
            (c, Some(open)) if c == open => quote = None,
            (c, Some(_)) => word.push(c),
            ('\'' | '"', None) if reads_quotes => (quote, has_word) = (Some(c), true),
            ('\n' | ';' | '|' | '&' | '(' | ')' | '{' | '}' | '`' | '<' | '>', None) => {
                end_word(&mut words, &mut word, has_word);
                has_word = false;
                if !words.is_empty() {
                    commands.push(strip_prefixes(std::mem::take(&mut words)));
                }
            }
            (c, None) if c.is_whitespace() || c.is_control() => {
                end_word(&mut words, &mut word, has_word);
                has_word = false;
            }
            (c, None) => {
                word.push(c);
                has_word = true;
            }
        }
    }
    if has_word {
        words.push(word);
    }
    if !words.is_empty() {
        commands.push(strip_prefixes(words));
    }
    commands.retain(|command| !command.is_empty());
    commands
}

/// Removes words of the shell's language and assignments before the command.
fn strip_prefixes(words: Vec<String>) -> Vec<String> {
    const PREFIXES: [&str; 11] = ["if", "then", "else", "elif", "do", "while", "until", "time", "!", "coproc", "$"];
    let is_prefix = |word: &String| {
        PREFIXES.contains(&word.as_str())
            || word.split_once('=').is_some_and(|(name, _)| {
                !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || "_+".contains(c))
            })
    };
    words.into_iter().skip_while(is_prefix).collect()
}
