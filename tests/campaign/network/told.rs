//! What the requests themselves show: nothing is sent again that was taken, nothing is paid for again that was got, and people
//! are told what they were promised.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::{
    CLOSED, PRESSED, QUESTION, Trial,
    fault::{Knowledge, Target},
    proxy::Exchange,
    scene::{Scene, brief},
    wire::LINE,
};
use crate::support::env::{Ran, TestEnv};

/// How a question begins, as it is sent.
const QUESTION_BEGINS: &str = "May I ";

/// What became of the texts that were sent.
pub(super) struct Sends {
    /// Texts that will not be sent any more: refused, or in doubt twice.
    pub(super) lost: usize,
}

/// Follows each text through its requests: after a yes it doesn't come again, after a refusal only without its formatting, after a no it
/// comes again as it was, after a doubt it comes again once, marked. So many as were turned away unseen may have been in doubt before they are seen.
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
    // A press of its button shows that it has come.
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

/// A text as it reads without formatting: so it comes again where that was refused.
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

/// The text that a request sends, as a message or under a file.
fn text_of(exchange: &Exchange) -> Result<String, String> {
    if exchange.label == QUESTION {
        let form = String::from_utf8_lossy(&exchange.body);
        let caption = form.split_once("name=\"caption\"\r\n\r\n").and_then(|(_, rest)| rest.split_once("\r\n--"));
        return caption.map(|(caption, _)| caption.to_owned()).ok_or_else(|| format!("a file without a text: {form}"));
    }
    let body: Value = serde_json::from_slice(&exchange.body).map_err(|error| error.to_string())?;
    Ok(body["text"].as_str().unwrap_or_default().to_owned())
}

/// Each question that is known to have come shows what has become of it, if Telegram lets it; and each press of a button is answered
/// once at most.
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

/// A turn that was got isn't asked for again, and each is paid for once.
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

/// Whether a text to a person says that a file couldn't be had.
pub(super) fn is_of_file(text: &str) -> bool {
    text.starts_with("I couldn't get your ")
}

/// Whether a line that tells of progress may stay: nobody knows of it, or it can't be taken away. None is sent again that may have
/// been sent.
pub(super) fn may_line_stand(exchanges: &[Exchange]) -> Result<bool, String> {
    let lines: Vec<&Exchange> = exchanges.iter().filter(|exchange| exchange.label == LINE).collect();
    let is_out = |exchange: &&Exchange| matches!(exchange.known, Some(Knowledge::Done | Knowledge::Doubt));
    if let Some(again) = lines.iter().skip_while(|exchange| !is_out(exchange)).nth(1) {
        return Err(format!("a line that may stand already was sent again: {}", String::from_utf8_lossy(&again.body)));
    }
    let is_left = |exchange: &Exchange| exchange.label == "deleteMessage" && exchange.known == Some(Knowledge::Never);
    Ok(lines.iter().any(|line| line.known == Some(Knowledge::Doubt)) || exchanges.iter().any(is_left))
}

/// Whether a text to a person is about trouble with that server.
pub(super) fn is_notice(target: Target, text: &str) -> bool {
    match target {
        Target::Telegram => false,
        Target::Claude => ["Your message is safe", "Your messages are safe"].iter().any(|said| text.contains(said)),
        Target::Git => text.contains("couldn't send my memory to its remote"),
    }
}

/// The first run's own word, and whether people have heard what they should by its end.
pub(super) fn check_first_run(ran: &Ran, scene: &Scene, trial: &Trial) -> Result<(), String> {
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
        // By the fetch and by the push.
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
