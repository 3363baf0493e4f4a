//! The screen, before anything has happened and on a busy day.

use reveille_base::{clock::parse_time, types::ChatRef};
use reveille_store::PartState;

use super::*;

fn at(text: &str) -> Option<DateTime<Utc>> {
    parse_time(text)
}

fn nothing_yet() -> HealthStatus {
    HealthStatus {
        at: at("2026-11-21T12:00:00Z").unwrap(),
        workspace: "/home/me/.local/share/reveille".to_owned(),
        last_wake: None,
        queue: None,
        files: Vec::new(),
        questions: Vec::new(),
        lock: Lock { is_held: false, pid: None, since: None, cycle_id: None },
        machines: None,
        stopped: None,
        next_reminder: None,
        undelivered: Vec::new(),
        undelivered_count: 0,
        heard_at: None,
        git: None,
        disk: Some(Disk::new(3 << 30, Reserve::from_mib(100))),
        model: ModelReport {
            name: "offline".to_owned(),
            is_available: true,
            not_before: None,
            error: None,
            answered_at: None,
            over_budget: None,
            chats_without_room: 0,
            passed_over: Vec::new(),
        },
        spent_today_usd: 0.0,
        daily_budget_usd: 5.0,
        spent_month_usd: 0.0,
        monthly_budget_usd: None,
        reserved_usd: 0.0,
        is_store_unread: false,
        problems: Vec::new(),
        search: "by words alone (EMBED_MODEL isn't set)".to_owned(),
    }
}

#[test]
fn before_the_first_wake() {
    insta::assert_snapshot!(nothing_yet().render(reveille_base::zone::Tz::UTC), @"
    workspace  /home/me/.local/share/reveille
    last wake  none yet: wake --once
    now        asleep
    queue      nothing yet
    reminder   none
    outbox     everything is delivered
    telegram   no contact yet
    memory     none yet
    search     by words alone (EMBED_MODEL isn't set)
    disk       3.0 GiB free
    AI model   offline
    cost       0.00 of 5.00 USD today, 0.00 this month
    ");
}

#[test]
fn some_undelivered_messages_are_listed_and_the_rest_counted() {
    let message = |id: i64, state, is_repeat| Undelivered {
        id,
        chat: ChatRef::from_telegram(7),
        state,
        is_repeat,
        created_at: "2026-11-21T11:00:00.000Z".to_owned(),
        not_before: None,
        error: Some("no answer".to_owned()),
        attempts: 2,
    };
    let undelivered = vec![message(1, PartState::Unknown, true), message(2, PartState::Unknown, false)];
    let few = HealthStatus { undelivered_count: 2, undelivered, ..nothing_yet() };
    insta::assert_snapshot!(few.outbox_line(), @"
    1 to chat 7: sent twice without confirmation, may have arrived: no answer
               2 to chat 7: unknown: no answer
    ");
    let undelivered = (1..=200).map(|id| message(id, PartState::Planned, false)).collect();
    let many = HealthStatus { undelivered_count: 204, undelivered, ..nothing_yet() };
    let line = many.outbox_line();
    assert!(line.contains("\n           100 to chat 7") && line.ends_with("\n           and 104 more"), "{line}");
    assert_eq!(line.lines().count(), 101);
}

#[test]
fn in_the_middle_of_a_busy_day() {
    let busy = HealthStatus {
        last_wake: Some(LastWake {
            cycle_id: "20261121T115500Z-812".to_owned(),
            started_at: at("2026-11-21T11:55:00Z"),
            ended_at: None,
            state: "running",
            reasons: vec!["2 messages in chat 7".to_owned()],
            commit: None,
            error: None,
        }),
        queue: Some(Queue {
            waiting: 2,
            held: 1,
            asking: 2,
            awaiting_files: 1,
            given_up: 0,
            oldest_at: at("2026-11-21T11:54:00Z"),
            total: 6,
        }),
        lock: Lock {
            is_held: true,
            pid: Some(812),
            since: Some("2026-11-21T11:55:00.000Z".to_owned()),
            cycle_id: Some("20261121T115500Z-812".to_owned()),
        },
        next_reminder: Some(NextReminder { at: at("2026-11-21T14:00:00Z").unwrap(), text: "call   mum".to_owned() }),
        files: vec![OpenFile {
            id: 5,
            message_id: 9,
            kind: "video_note".to_owned(),
            state: reveille_store::FileState::Wanted,
            attempts: 2,
            not_before: at("2026-11-21T12:01:00Z"),
            error: Some("Telegram can't be reached".to_owned()),
            path: None,
        }],
        questions: vec![OpenQuestion {
            id: 2,
            tool: "bash".to_owned(),
            what: "May I run this command?".to_owned(),
            risk: "dangerous".to_owned(),
            chat: ChatRef::from_telegram(7),
            cycle_id: "20261121T110000Z-811".to_owned(),
            asked_at: at("2026-11-21T11:00:00Z"),
            expires_at: at("2026-11-22T11:00:00Z"),
        }],
        undelivered: vec![Undelivered {
            id: 3,
            chat: ChatRef::from_telegram(7),
            state: PartState::Planned,
            is_repeat: false,
            created_at: "2026-11-21T11:00:00.000Z".to_owned(),
            not_before: Some("2026-11-21T12:10:00.000Z".to_owned()),
            error: Some("Too Many Requests".to_owned()),
            attempts: 1,
        }],
        undelivered_count: 1,
        heard_at: at("2026-11-21T11:57:00Z"),
        git: Some(Git {
            branch: "main".to_owned(),
            condition: "as it should be".to_owned(),
            has_remote: true,
            ahead: Some(1),
            behind: Some(0),
            commit: Some("0123456789abcdef".to_owned()),
            subject: Some("Answered".to_owned()),
            committed_at: at("2026-11-21T10:00:00Z"),
        }),
        disk: Some(Disk::new(90 << 20, Reserve::from_mib(100))),
        model: ModelReport {
            name: "claude".to_owned(),
            is_available: false,
            not_before: at("2026-11-21T12:01:00Z"),
            error: Some("overloaded".to_owned()),
            answered_at: None,
            over_budget: None,
            chats_without_room: 0,
            passed_over: Vec::new(),
        },
        spent_today_usd: 1.5,
        ..nothing_yet()
    };
    insta::assert_snapshot!(busy.render("Europe/Berlin".parse::<reveille_base::zone::Tz>().unwrap()), @"
    workspace  /home/me/.local/share/reveille
    last wake  5 min ago, running (2 messages in chat 7)
    now        a wake is at work (pid 812, 20261121T115500Z-812)
    queue      2 waiting, 1 kept until an AI model can answer, 2 waiting for your answer to a question, 1 waiting for files, the oldest came 6 min ago
    reminder   Sat 2026-11-21 15:00 (in 2 h): call mum
    outbox     3 to chat 7: planned: Too Many Requests, retry due in 10 min
    telegram   last contact 3 min ago
    memory     main, as it should be; 1 ahead, 0 behind the remote; 01234567 2 h ago Answered
    search     by words alone (EMBED_MODEL isn't set)
    disk       90.0 MiB free, less than the reserve of 100.0 MiB: the bot has stopped fetching messages; Telegram keeps them for a day
    AI model   claude, which couldn't be reached: overloaded; retry due in 1 min
    cost       1.50 of 5.00 USD today, 0.00 this month
    question   2: May I run this command? Risk: high, asked 1 h ago, expires in 23 h; see wake approvals list. To allow: wake approvals approve 2. To refuse: wake approvals deny 2
    file       5 (video note of message 9) to be fetched: Telegram can't be reached; retry due in 1 min
    ");
}

#[test]
fn parts_of_a_database_that_cannot_be_read_are_not_known() {
    let unread = HealthStatus { is_store_unread: true, problems: vec!["a damaged row".to_owned()], ..nothing_yet() };
    let screen = unread.render(reveille_base::zone::Tz::UTC);
    for line in
        ["last wake  not known\n", "queue      not known\n", "outbox     not known\n", "problem    a damaged row\n"]
    {
        assert!(screen.contains(line), "{line}{screen}");
    }
}
