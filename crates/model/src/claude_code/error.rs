//! Turns the end of a run into an error for the cycle. Errors contain only the command's own short words.

use std::{path::Path, time::Duration};

use reveille_base::{
    types::Usage,
    words::{one_line, truncate_text},
};
use reveille_memory::outside::{Origin, Outside};

use super::relay::Ended;
use crate::{ModelError, TOO_LONG, complaint::Complaint};

/// Maximum characters quoted from the command.
const MAX_SAID_CHARS: usize = 500;

/// Builds an error that may not recur at the next try.
pub(super) fn build_transient(why: impl Into<String>, spent: Usage) -> ModelError {
    ModelError::Transient { why: why.into(), retry_after: None, spent }
}

pub(super) fn too_slow(after: Duration, spent: Usage) -> ModelError {
    build_transient(format!("Claude Code took longer than a turn may take ({} s)", after.as_secs()), spent)
}

pub(super) fn build_not_found(program: &Path) -> ModelError {
    let program = program.display();
    ModelError::Account {
        why: format!(
            "the Claude Code command isn't there ({program}): install it (npm install -g @anthropic-ai/claude-code), or set \
             CLAUDE_CODE to where it is"
        ),
    }
}

/// Builds the error for a turn that ended without a result.
pub(super) fn build_early_end(complaint: &str, spent: Usage) -> ModelError {
    let said = quote_complaint(complaint);
    build_transient(format!("Claude Code ended in the middle of its turn ({said})"), spent)
}

/// Builds the error for a run that never began: it is misconfigured, or too old for our arguments.
pub(super) fn build_failed_start(complaint: &str) -> ModelError {
    let said = quote_complaint(complaint);
    ModelError::Account { why: format!("Claude Code can't be started ({said}); `claude update` brings a newer one") }
}

fn quote_complaint(complaint: &str) -> String {
    let said = truncate_text(&one_line(complaint), MAX_SAID_CHARS);
    if said.is_empty() { "it said nothing".to_owned() } else { quote_command(&said) }
}

/// Builds the error for an end with an unusable result. `kind` is the command's own name for the fault.
pub(super) fn build_failed_end(ended: &Ended, kind: Option<&str>, spent: Usage) -> ModelError {
    let said = truncate_text(&one_line(&ended.said), MAX_SAID_CHARS);
    let why = if said.is_empty() {
        "Claude Code ended without an answer".to_owned()
    } else {
        format!("Claude Code says: {}", quote_command(&said))
    };
    match (ended.status, kind) {
        (None | Some(400 | 413), _) if Complaint::parse_body(ended.said.as_bytes()).is_too_long() => {
            ModelError::Rejected { status: TOO_LONG, why }
        }
        (Some(401..=403), _) | (_, Some("authentication_failed" | "billing_error" | "oauth_org_not_allowed")) => {
            ModelError::Account {
                why: format!("{why} (its login: ANTHROPIC_API_KEY, CLAUDE_CODE_OAUTH_TOKEN, or `claude` and /login)"),
            }
        }
        (Some(400), _) if said.contains("credit balance") || said.contains("Credit balance") => {
            ModelError::Account { why }
        }
        (Some(408 | 409 | 429 | 500..), _) => build_transient(why, spent),
        (Some(status), _) => ModelError::Rejected { status, why },
        (None, Some("invalid_request")) => ModelError::Rejected { status: 400, why },
        (None, _) => build_transient(why, spent),
    }
}

/// Quotes the command's words, which may include the server's.
fn quote_command(said: &str) -> String {
    Outside::new(Origin::Model, said).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(status: Option<u16>, kind: Option<&str>, said: &str) -> ModelError {
        build_failed_end(&Ended { status, said: said.to_owned(), ..Ended::default() }, kind, Usage::default())
    }

    #[test]
    fn each_end_becomes_the_kind_of_error_that_fits() {
        for status in [408, 429, 500, 529] {
            assert!(matches!(fault(Some(status), Some("unknown"), "no"), ModelError::Transient { .. }), "{status}");
        }
        for status in [401, 403] {
            assert!(matches!(fault(Some(status), None, "no"), ModelError::Account { .. }), "{status}");
        }
        assert!(matches!(fault(None, Some("authentication_failed"), "Not logged in"), ModelError::Account { .. }));
        assert!(matches!(fault(Some(400), None, "Credit balance is too low"), ModelError::Account { .. }));
        assert!(matches!(fault(Some(400), Some("unknown"), "bad"), ModelError::Rejected { status: 400, .. }));
        let long = "Prompt is too long";
        assert!(matches!(fault(Some(400), Some("invalid_request"), long), ModelError::Rejected { status: 413, .. }));
        assert!(matches!(fault(Some(404), None, "model"), ModelError::Rejected { status: 404, .. }));
        assert!(matches!(fault(None, None, ""), ModelError::Transient { .. }));
        assert!(matches!(build_failed_start("unknown option"), ModelError::Account { .. }));
        assert!(matches!(build_early_end("", Usage::default()), ModelError::Transient { .. }));
    }

    #[test]
    fn the_commands_words_become_one_bounded_line() {
        let why = fault(Some(500), None, &"many\nwords ".repeat(200)).to_string();
        assert!(why.chars().count() < 600 && !why.contains('\n') && why.ends_with("…`"), "{why}");
    }
}
