//! `wake memory why`: shows the origin of a line of the memory.

use std::process::ExitCode;

use reveille_account::provenance::why::{self, LineStory, LineWriter, SaidMessage, Stories};
use reveille_base::words::{format_count, format_local_time, one_line, truncate_text};
use reveille_config::Config;
use reveille_git::Commit;
use reveille_index::IndexPlace;
use reveille_memory::imported;

use super::{MAX_SHOWN_CHARS, open_database, open_memory, report_refusal};
use crate::cli::{EXIT_FAILED, OutputFormat, complain, print, print_json};

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct WhyArguments {
    /// Words of the fact, as the memory has it.
    #[arg(required = true)]
    words: Vec<String>,
    /// Print one JSON object per line.
    #[arg(long)]
    pub(in crate::cli) json: bool,
}

/// The story of a line as JSON. Scripts rely on the field names.
#[derive(serde::Serialize)]
struct WhyLine<'a> {
    path: &'a str,
    line: usize,
    text: &'a str,
    heading: &'a str,
    written_by: LineWriter,
    commit: Option<CommitLine>,
    wake: Option<&'a str>,
    wake_commit: Option<CommitLine>,
    messages: &'a [SaidMessage],
    taint: Option<&'a str>,
    is_near: bool,
}

/// A commit in a line of JSON.
#[derive(serde::Serialize)]
struct CommitLine {
    commit: String,
    at: chrono::DateTime<chrono::Utc>,
    author: String,
    subject: String,
    wake_id: Option<String>,
}

impl From<&Commit> for CommitLine {
    fn from(commit: &Commit) -> Self {
        let Commit { id, author, subject, wake_id, at, .. } = commit.clone();
        Self { commit: id.to_string(), at, author, subject, wake_id }
    }
}

/// Prints the stories for `wake memory why`.
pub(in crate::cli) fn print_stories(config: &Config, arguments: &WhyArguments, format: OutputFormat) -> ExitCode {
    let words = arguments.words.join(" ");
    let index = IndexPlace::from_config(config);
    let why = |repo| why::trace_lines(&repo, open_database(config).as_ref(), (&index, config.timezone), &words);
    let stories = match open_memory(config).map(why) {
        Ok(Ok(stories)) => stories,
        Ok(Err(error)) => return report_refusal(&error),
        Err(code) => return code,
    };
    if stories.lines.is_empty() {
        complain(&format!("The memory has no line about “{}”.", truncate_text(&one_line(&words), MAX_SHOWN_CHARS)));
        return ExitCode::from(EXIT_FAILED);
    }
    let Stories { lines, are_near, more } = stories;
    if are_near && !format.is_json() {
        complain("No line has these words. The nearest:");
    }
    for story in &lines {
        if format.is_json() {
            print_json(&WhyLine {
                path: &story.path,
                line: story.line,
                text: &story.text,
                heading: &story.heading,
                written_by: story.writer,
                commit: story.commit.as_ref().map(CommitLine::from),
                wake: find_wake(story),
                wake_commit: story.wake_commit.as_ref().map(CommitLine::from),
                messages: &story.messages,
                taint: story.taint.as_deref(),
                is_near: are_near,
            });
        } else {
            print(&format!("{}\n", render_story(config, story)));
        }
    }
    if more > 0 {
        complain(&format!("{} more have these words; add words to narrow the search.", format_count(more, "line")));
    }
    ExitCode::SUCCESS
}

fn find_wake(story: &LineStory) -> Option<&str> {
    let named = story.origin.as_ref().map(|origin| origin.wake.as_str());
    let own = story.commit.as_ref().filter(|_| story.writer == LineWriter::Wake);
    named.or(own.and_then(|commit| commit.wake_id.as_deref()))
}

fn render_story(config: &Config, story: &LineStory) -> String {
    let tz = config.timezone;
    let commit = |commit: &Commit| {
        let id: String = commit.id.to_string().chars().take(8).collect();
        format!("commit {id}, {}: {}", format_local_time(commit.at, tz), commit.subject)
    };
    let heading = if story.heading.is_empty() { String::new() } else { format!(" ({})", story.heading) };
    let mut text = format!("{}:{}{heading}\n  {}\n", story.path, story.line, story.text);
    let wake = find_wake(story);
    let is_import = wake == Some(imported::AS_WAKE);
    text.push_str(&match (story.writer, &story.commit) {
        (LineWriter::Wake, Some(made)) => format!("  A wake wrote it: {}.\n", commit(made)),
        (LineWriter::Person, Some(made)) if is_import => {
            format!("  A person imported it ({}): {}.\n", made.author, commit(made))
        }
        (LineWriter::Person, Some(made)) => {
            format!("  A person wrote it ({}): {}.\n", made.author, commit(made))
        }
        (LineWriter::Program, Some(made)) => format!("  It came with {}.\n", commit(made)),
        (_, _) => "  A person wrote it; it isn't committed yet.\n".to_owned(),
    });
    if let Some(made) = &story.wake_commit {
        let then = if story.writer == LineWriter::Wake { "It first came with" } else { "Before that a wake wrote it:" };
        text.push_str(&format!("  {then} {}.\n", commit(made)));
    } else if let (Some(wake), true) = (wake, story.writer != LineWriter::Wake && !is_import) {
        text.push_str(&format!(
            "  It carries the mark of the wake {wake}, but this memory has no commit of that wake.\n"
        ));
    }
    for message in &story.messages {
        let at = message.at.map_or_else(|| "?".to_owned(), |at| format_local_time(at, tz));
        let from = message.from.as_deref().unwrap_or("you");
        let chat =
            if message.chat.is_terminal() { "the terminal".to_owned() } else { format!("chat {}", message.chat) };
        let said = truncate_text(&one_line(&message.text), MAX_SHOWN_CHARS);
        text.push_str(&format!("  Message {}, {at}, {from} in {chat}: “{said}”\n", message.id));
        if let Some(taint) = &message.taint {
            text.push_str(&format!("    Part of it is untrusted text: {taint}.\n"));
        }
    }
    if let (Some(wake), true) = (wake, story.messages.is_empty() && !is_import) {
        text.push_str(&format!("  No known message said it; `wake show {wake}` shows what that wake did.\n"));
    }
    if let (Some(from), true) = (&story.taint, is_import) {
        text.push_str(&format!("  It came from another program: {from}.\n"));
    } else if let Some(taint) = &story.taint {
        text.push_str(&format!("  By then the wake had read untrusted text: {taint}.\n"));
    }
    text
}
