//! Tells a chat that its messages wait because all work or that chat was stopped. Otherwise a forgotten stop looks like
//! a dead bot.
//!
//! The bot adds the answer in the transaction that stores the messages: at the first message after the stop, and at the
//! first of each day.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};

use reveille_base::{clock::format_rfc3339, types::ChatRef, words::local_day_and_time};
use reveille_config::Config;
use reveille_store::{NewIncoming, NewOutgoing, OutgoingKind, PartOf, Stopped};

/// Builds one notice per chat of a batch. Only the owner can end a stop of all work; anyone in a chat can end that
/// chat's stop.
pub(super) fn build_notices(
    messages: &[NewIncoming],
    stopped: impl Fn(ChatRef) -> Option<Stopped>,
    is_all_work: bool,
    config: &Config,
    now: DateTime<Utc>,
) -> Vec<NewOutgoing> {
    let ours = messages.iter().filter(|message| !message.is_only_part && message.part_of != Some(PartOf::Rest));
    let last: BTreeMap<ChatRef, &NewIncoming> = ours.map(|message| (message.chat, message)).collect();
    let today = now.with_timezone(&config.timezone).date_naive();
    let notice = |(chat, message): (ChatRef, &NewIncoming)| {
        let stopped = stopped(chat)?;
        let is_owners = chat == config.owner_chat || message.sender_id == Some(config.owner_chat.number());
        let since = stopped.at.map(format_rfc3339).unwrap_or_default();
        Some(NewOutgoing {
            chat,
            text: render_notice(stopped, !is_all_work || is_owners, config, now),
            // Only commands' answers are sent during a stop.
            kind: OutgoingKind::Command,
            key: Some(format!("stopped/{chat}/{since}/{today}")),
            thread_id: message.thread_id,
            reply_to: message.channel_message_id,
            ..NewOutgoing::default()
        })
    };
    last.into_iter().filter_map(notice).collect()
}

fn render_notice(stopped: Stopped, may_resume: bool, config: &Config, now: DateTime<Utc>) -> String {
    let tz = config.timezone;
    let day = |at: DateTime<Utc>| at.with_timezone(&tz).date_naive();
    let since = stopped.at.map(|at| match day(at) == day(now) {
        true => at.with_timezone(&tz).format(" since %H:%M").to_string(),
        false => format!(" since {}", local_day_and_time(at, tz)),
    });
    let next = if may_resume { "send /resume to continue" } else { "I'll get to it when I'm resumed" };
    format!("Stopped{}. Your message is kept; {next}.", since.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use reveille_base::clock::parse_time;

    const ANA: i64 = 4242;
    const BOB: i64 = 4343;

    fn config() -> Config {
        let sources = [("HOME", "/nowhere".to_owned()), ("ALLOWED_CHAT_IDS", format!("{ANA},{BOB}"))];
        let sources = sources.map(|(name, value)| (name.to_owned(), value)).into();
        Config::from_sources(&sources, None, Some("Europe/Berlin")).unwrap()
    }

    fn said(messages: &[NewIncoming], now: &str) -> Vec<NewOutgoing> {
        let stopped = Stopped { at: parse_time("2026-11-21T13:03:00Z"), chat: ChatRef::from_telegram(ANA) };
        build_notices(messages, |_| Some(stopped), true, &config(), parse_time(now).unwrap())
    }

    fn message(chat: ChatRef, channel_message_id: i64) -> NewIncoming {
        NewIncoming { chat, channel_message_id: Some(channel_message_id), ..NewIncoming::default() }
    }

    #[test]
    fn each_chat_is_told_once_a_day_since_when_and_what_to_do() {
        let today = said(
            &[
                message(ChatRef::from_telegram(ANA), 1),
                message(ChatRef::from_telegram(BOB), 2),
                message(ChatRef::from_telegram(ANA), 3),
            ],
            "2026-11-21T14:00:00Z",
        );
        let texts: Vec<&str> = today.iter().map(|notice| notice.text.as_str()).collect();
        assert_eq!(
            texts,
            [
                "Stopped since 14:03. Your message is kept; send /resume to continue.",
                "Stopped since 14:03. Your message is kept; I'll get to it when I'm resumed."
            ]
        );
        assert_eq!(today[0].reply_to, Some(3));
        let keys = |now| {
            said(&[message(ChatRef::from_telegram(ANA), 1)], now)
                .into_iter()
                .map(|notice| notice.key)
                .collect::<Vec<_>>()
        };
        assert_eq!(keys("2026-11-21T22:59:00Z"), [today[0].key.clone()]);
        assert_ne!(keys("2026-11-21T23:01:00Z"), [today[0].key.clone()], "it is another day in Berlin");
        let tomorrow = said(&[message(ChatRef::from_telegram(ANA), 1)], "2026-11-22T14:00:00Z");
        assert!(tomorrow[0].text.starts_with("Stopped since Sat 21 Nov 14:03. "), "{}", tomorrow[0].text);
    }

    #[test]
    fn who_may_resume_is_told_how() {
        const GROUP: i64 = -77;
        let stopped = Stopped { at: None, chat: ChatRef::from_telegram(GROUP) };
        let says = |sender_id, is_all_work| {
            let message = NewIncoming { sender_id: Some(sender_id), ..message(ChatRef::from_telegram(GROUP), 1) };
            let now = parse_time("2026-11-21T14:00:00Z").unwrap();
            build_notices(&[message], |_| Some(stopped), is_all_work, &config(), now).remove(0).text
        };
        assert!(says(BOB, true).contains("when I'm resumed"));
        assert!(says(ANA, true).contains("send /resume"));
        assert!(says(BOB, false).contains("send /resume"));
    }

    #[test]
    fn nobody_is_told_who_said_nothing_to_us() {
        let to_others = NewIncoming { is_only_part: true, ..message(ChatRef::from_telegram(ANA), 1) };
        let command = NewIncoming { part_of: Some(PartOf::Rest), ..message(ChatRef::from_telegram(ANA), 2) };
        assert_eq!(said(&[to_others, command], "2026-11-21T14:00:00Z"), []);
        assert_eq!(
            build_notices(
                &[message(ChatRef::from_telegram(ANA), 1)],
                |_| None,
                true,
                &config(),
                parse_time("2026-11-21T14:00:00Z").unwrap()
            ),
            []
        );
    }
}
