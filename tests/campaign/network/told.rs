//! Checks on the requests themselves: accepted texts aren't sent again, received turns aren't paid for again, and people get the
//! promised notices.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::{
    CLOSED, PRESSED, QUESTION, Trial,
    fault::{Knowledge, Target},
    proxy::Exchange,
    scene::{Scene, brief},
    wire::LINE,
};
use crate::support::env::{ProgramOutput, TestEnv};

/// The beginning of a question's text.
const QUESTION_BEGINS: &str = "May I ";

/// The fate of the sent texts.
pub(super) struct Sends {
    /// Texts given up: refused, or in doubt twice.
    pub(super) lost: usize,
}

/// Follows each text through its requests. A delivered text doesn't come again, and a refused one only without its formatting. A
/// postponed one comes again unchanged, and one in doubt once more, marked. Up to `turned_away` texts may have been in doubt before
/// they were seen.
pub(super) fn sends(exchanges: &[Exchange], mut turned_away: usize) -> Result<Sends, String> {
    let mut texts: BTreeMap<String, (Knowledge, bool)> = BTreeMap::new();
    for exchange in exchanges.iter().filter(|exchange| matches!(exchange.label.as_str(), "sendMessage" | QUESTION)) {
        let text = text_of(exchange)?;
        let (plain, is_marked) = match text.split_once('↻') {
            Some((plain, _)) => (plain.trim_end_matches("<i>").trim_end(), true),
            None => (text.as_str(), false),
        };
        let now = exchange.known.ok_or("a send is still under way")?;
        let is_formatted = String::from_utf8_lossy(&exchange.body).contains("parse_mode");
        let before = texts.insert(without_tags(plain), (now, is_marked));
        let is_right = match before {
            None if is_marked && turned_away > 0 => {
                turned_away -= 1;
                true
            }
            None => !is_marked,
            Some((Knowledge::Done, _)) => false,
            Some((Knowledge::Never, was_marked)) => !is_formatted && is_marked == was_marked,
            Some((Knowledge::NotDone { .. }, was_marked)) => is_marked == was_marked,
            Some((Knowledge::Doubt, was_marked)) => is_marked && !was_marked,
        };
        if !is_right {
            return Err(format!("{plain:?} came (marked: {is_marked}) after {before:?}"));
        }
    }
    // A press of its button shows that the question has come.
    let is_pressed = exchanges.iter().any(|exchange| exchange.label == PRESSED);
    let mut lost = 0;
    for (text, last) in texts {
        match last {
            (Knowledge::Done, _) => {}
            (Knowledge::Doubt, false) if is_pressed && text.starts_with(QUESTION_BEGINS) => {}
            (Knowledge::Never, _) | (Knowledge::Doubt, true) => lost += 1,
            other => return Err(format!("{text:?} was left as {other:?}")),
        }
    }
    Ok(Sends { lost })
}

/// A text as it reads without formatting, which is its form after a refusal of the formatting.
fn without_tags(text: &str) -> String {
    let outside: String = text
        .split('<')
        .enumerate()
        .map(|(n, piece)| match n {
            0 => piece,
            _ => piece.split_once('>').map_or(piece, |(_, rest)| rest),
        })
        .collect();
    outside.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"").replace("&amp;", "&")
}

/// The text a request sends, as a message or under a file.
fn text_of(exchange: &Exchange) -> Result<String, String> {
    if exchange.label == QUESTION {
        let form = String::from_utf8_lossy(&exchange.body);
        let caption = form.split_once("name=\"caption\"\r\n\r\n").and_then(|(_, rest)| rest.split_once("\r\n--"));
        return caption.map(|(caption, _)| caption.to_owned()).ok_or_else(|| format!("a file without a text: {form}"));
    }
    let body: Value = serde_json::from_slice(&exchange.body).map_err(|error| error.to_string())?;
    Ok(body["text"].as_str().unwrap_or_default().to_owned())
}

/// Checks that each delivered question shows its result, if Telegram allows that, and that each press of a button is answered at most
/// once.
pub(super) fn check_question(exchanges: &[Exchange], standing: &[String]) -> Result<(), String> {
    let of = |label: &str| exchanges.iter().filter(|exchange| exchange.label == label).collect::<Vec<_>>();
    let is_shown = |text: &&String| ["✅ Allowed", "⌛ Nobody answered"].iter().any(|mark| text.contains(mark));
    let open = standing.iter().filter(|text| text.starts_with(QUESTION_BEGINS) && !is_shown(text)).count();
    let doubts = of(QUESTION).iter().filter(|sent| sent.known == Some(Knowledge::Doubt)).count();
    let refused = of(CLOSED).iter().filter(|edit| edit.known == Some(Knowledge::Never)).count();
    if open > doubts + refused {
        return Err(format!("{open} questions don't show what became of them: {standing:#?}"));
    }
    let mut pressed = BTreeSet::new();
    match of(PRESSED).iter().find(|answer| !pressed.insert(&answer.body)) {
        Some(again) => Err(format!("a press was answered again: {}", String::from_utf8_lossy(&again.body))),
        None => Ok(()),
    }
}

/// Checks that a received turn isn't requested again, and that each is paid for once.
pub(super) fn check_turns(exchanges: &[Exchange], env: &TestEnv) -> Result<(), String> {
    let mut got: Vec<&[u8]> = Vec::new();
    for exchange in exchanges {
        if got.contains(&exchange.body.as_slice()) {
            return Err(format!("a turn that was got was asked for again, as request {}", exchange.nth));
        }
        if exchange.known == Some(Knowledge::Done) {
            got.push(&exchange.body);
        }
    }
    let booked: i64 = env.query("SELECT count(*) FROM ledger WHERE reserved = 0 AND discarded = 0 AND input > 0");
    if usize::try_from(booked) == Ok(got.len()) {
        Ok(())
    } else {
        Err(format!("{} turns came, {booked} are booked", got.len()))
    }
}

/// Files that Telegram has refused for good.
pub(super) fn unfetched(exchanges: &[Exchange]) -> usize {
    exchanges
        .iter()
        .filter(|exchange| exchange.fault.is_some_and(|fault| fault.is_end_of_file(&exchange.label)))
        .count()
}

/// Tells whether a text reports a failed fetch.
pub(super) fn is_of_file(text: &str) -> bool {
    text.starts_with("I couldn't download your ")
}

/// Tells whether a progress line may stay, because its sending is in doubt or its removal is refused. Fails if a line that may have
/// been sent was sent again.
pub(super) fn may_line_stand(exchanges: &[Exchange]) -> Result<bool, String> {
    let lines: Vec<&Exchange> = exchanges.iter().filter(|exchange| exchange.label == LINE).collect();
    let is_out = |exchange: &&Exchange| matches!(exchange.known, Some(Knowledge::Done | Knowledge::Doubt));
    if let Some(again) = lines.iter().skip_while(|exchange| !is_out(exchange)).nth(1) {
        return Err(format!("a line that may stand already was sent again: {}", String::from_utf8_lossy(&again.body)));
    }
    let is_left = |exchange: &Exchange| exchange.label == "deleteMessage" && exchange.known == Some(Knowledge::Never);
    Ok(lines.iter().any(|line| line.known == Some(Knowledge::Doubt)) || exchanges.iter().any(is_left))
}

/// Tells whether a text to a person is about trouble with that server.
pub(super) fn is_notice(target: Target, text: &str) -> bool {
    match target {
        Target::Telegram => false,
        Target::Claude => ["Your message is safe", "Your messages are safe"].iter().any(|said| text.contains(said)),
        Target::Git => text.contains("couldn't send my memory to its remote"),
    }
}

/// Checks the first run's own report, and the notices to people by its end.
pub(super) fn check_first_run(ran: &ProgramOutput, scene: &Scene, trial: &Trial) -> Result<(), String> {
    let report: Value =
        serde_json::from_str(&ran.stdout).map_err(|error| format!("no report: {error}: {}", brief(ran)))?;
    let has_failed = report["outcome"] == "failed";
    if has_failed != (ran.code == 1) {
        return Err(format!("exit code and report disagree: {}", brief(ran)));
    }
    if has_failed && trial.target != Target::Claude {
        return Err(format!("trouble with {:?} is no failure of a wake: {ran:#?}", trial.target));
    }
    let sent: Vec<String> = scene.world.telegram.sent().into_iter().map(|sent| sent.visible).collect();
    let notices = sent.iter().filter(|text| is_notice(trial.target, text)).count();
    let is_told = match trial.target {
        Target::Telegram => true,
        Target::Claude => notices == usize::from(has_failed),
        // One by the fetch, one by the push.
        Target::Git => notices <= 2,
    };
    if !is_told {
        return Err(format!("told {notices} times: {sent:#?} after {}", brief(ran)));
    }
    if trial.target == Target::Git && report["answered"] != 2 {
        return Err(format!("an answer waited for the remote: {}", brief(ran)));
    }
    Ok(())
}
