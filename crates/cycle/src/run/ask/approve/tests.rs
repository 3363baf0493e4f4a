use reveille_base::{clock::parse_time, types::ChatRef};
use reveille_policy::Risk;

use crate::run::ask::approve::*;

fn asked(action: &str) -> NewApproval {
    NewApproval {
        call: "toolu_1".to_owned(),
        tool: "shell".to_owned(),
        action: action.to_owned(),
        verdict: Verdict {
            risk: Risk::Dangerous,
            decision: Decision::Ask,
            reasons: vec!["AUTONOMY=1 asks before what isn't easily undone.".to_owned()],
            consents: Vec::new(),
        },
        origin: None,
        approver: Some(7),
        nonce: "n".to_owned(),
        expires_at: parse_time("2026-11-22T14:03:00Z").unwrap(),
        may_stand: false,
        proposal: None,
        named: BoundFiles::default(),
    }
}

#[test]
fn a_question_shows_the_whole_action_and_why_and_until_when() {
    let text = render_question(&asked(r#"{"command":"rm -rf build\nls"}"#), ChatRef::from_telegram(7), Tz::UTC);
    insta::assert_snapshot!(text, @r"
    **May I use `shell`?** Risk: high.

    command:
    `rm -rf build`
    `ls`

    Why I ask: AUTONOMY=1 asks before what isn't easily undone.

    Expires Sun 22 Nov at 14:03. If you don't answer, I won't do it.
    ");
}

#[test]
fn a_question_names_untrusted_text_and_the_asking_chat() {
    let tainted = NewApproval { origin: Some("https://example.org".to_owned()), ..asked("{}") };
    assert!(
        render_question(&tainted, ChatRef::from_telegram(7), Tz::UTC)
            .contains("untrusted text before this (https://example.org)")
    );
    for (asked_in, shown_in, names) in [
        (Some(5555), 7, true),
        (Some(-5), 7, true),
        (Some(5555), 0, true),
        (Some(7), 7, false),
        (Some(-5), -5, false),
        (Some(0), 0, false),
        (None, 7, false),
    ] {
        let (asked_in, shown_in) = (asked_in.map(ChatRef::from_number), ChatRef::from_number(shown_in));
        let expected = names.then(|| format!("Chat {} asked for this.", asked_in.unwrap_or_default()));
        assert_eq!(name_asking_chat(asked_in, shown_in), expected, "{asked_in:?} in {shown_in}");
    }
}

#[test]
fn an_action_too_long_for_a_message_is_attached_but_whole_at_the_terminal() {
    let long = asked(&serde_json::json!({"command": "x".repeat(3_000)}).to_string());
    assert!(is_long(&long.action, &long.named, &[]));
    let text = render_question(&long, ChatRef::from_telegram(7), Tz::UTC);
    assert!(!text.contains("xxx") && text.contains("in the attached file"), "{text}");
    // Questions on the terminal have no file attached.
    let text = render_question(&long, ChatRef::TERMINAL, Tz::UTC);
    assert!(text.contains(&"x".repeat(3_000)) && !text.contains("file"), "{text}");
}

#[test]
fn a_question_with_a_file_fits_under_it_whatever_others_are_called() {
    let mut long = asked(&serde_json::json!({"command": "x".repeat(3_000)}).to_string());
    long.verdict.reasons = vec!["Because of this. ".repeat(200)];
    long.origin = Some("https://example.org/".repeat(100));
    let text = render_question(&long, ChatRef::from_telegram(7), Tz::UTC);
    assert!(text.chars().count() < CAPTION_CHARS_MAX, "{}", text.chars().count());

    // The reasons are too long here; the file has them in full.
    let reasons = vec![format!("The server has changed.\n{}", "Word by word. ".repeat(200))];
    let changed = NewApproval { verdict: Verdict { reasons, ..long.verdict }, ..asked("{}") };
    let text = render_question(&changed, ChatRef::from_telegram(7), Tz::UTC);
    assert!(text.contains("Why I ask: The server has changed.\n") && text.contains("in the attached file"), "{text}");
    assert!(
        approval_text::render_question_file(1, ("shell", &changed.action), &changed.named, &changed.verdict.reasons)
            .contains("Word by word. Word by word.")
    );
}

#[test]
fn all_but_an_approval_is_a_no() {
    let approval = |state| Approval {
        id: 1,
        cycle_id: "c".to_owned(),
        call: "k".to_owned(),
        tool: "shell".to_owned(),
        action: "{}".to_owned(),
        risk: "dangerous".to_owned(),
        reasons: Vec::new(),
        consents: Vec::new(),
        origin: None,
        chat: ChatRef::from_telegram(7),
        state,
        asked_at: None,
        expires_at: None,
        decided_at: None,
        decided_by: None,
        used_at: None,
        rule: None,
        named: BoundFiles::default(),
    };
    let is_yes = |state| find_answer(Some(&approval(state))).map(|(is_yes, _)| is_yes);
    assert_eq!(is_yes(ApprovalState::Pending), None);
    assert_eq!(is_yes(ApprovalState::Approved), Some(true));
    for state in [ApprovalState::Denied, ApprovalState::Expired, ApprovalState::Withdrawn] {
        assert_eq!(is_yes(state), Some(false));
    }
    assert_eq!(find_answer(None).map(|(is_yes, _)| is_yes), Some(false));
}

#[test]
fn no_two_nonces_are_alike() {
    let nonces: std::collections::BTreeSet<_> = (0..100).map(|_| generate_nonce().unwrap()).collect();
    assert_eq!(nonces.len(), 100);
    assert!(nonces.iter().all(|nonce| nonce.len() == 32));
}

#[test]
fn masking_two_reasons_together_hides_nothing_between_them() {
    let redactor = Redactor::new([]);
    let request = ToolRequest { id: "k".to_owned(), name: "mcp__s__t".to_owned(), input: "{}".to_owned() };
    let reasons = ["`a`:\n-----BEGIN PRIVATE KEY-----", "`b`:\nobey me", "`z`:\n-----END PRIVATE KEY-----"];
    let verdict = Verdict::new(Risk::Dangerous, Decision::Ask, reasons.join("\n"));
    let sends = false;
    let decided = |verdict: &Verdict| deny_leaks(verdict.clone(), &request, sends, &redactor).decision;
    assert_eq!(decided(&verdict), Decision::Deny);
    assert_eq!(decided(&Verdict { reasons: vec![reasons[1].to_owned()], ..verdict }), Decision::Ask);
}

#[test]
fn a_mask_hides_nothing_from_the_person_asked() {
    let redactor = Redactor::new([&reveille_base::redact::Secret::new("hunter2&co")]);
    let judged = |decision, sends, input: String| {
        let request = ToolRequest { id: "k".to_owned(), name: "shell".to_owned(), input };
        let verdict = Verdict::new(Risk::Dangerous, decision, "Why.");
        deny_leaks(verdict, &request, sends, &redactor).decision
    };
    let saying = |text: &str| serde_json::json!({ "command": text }).to_string();
    let block = "-----BEGIN PRIVATE KEY-----\nrm -rf ~\n-----END PRIVATE KEY-----";
    let address = "curl https://someone:whose-command-this-is@example.org";
    for masked in [block, address, "echo hunter2&co"] {
        assert_eq!(judged(Decision::Ask, false, saying(masked)), Decision::Deny, "{masked}");
        assert_eq!(judged(Decision::Allow, false, saying(masked)), Decision::Allow, "nobody is shown it: {masked}");
    }
    assert_eq!(judged(Decision::Ask, true, saying("ls -la")), Decision::Ask);
    // Outgoing arguments must hold no secret of ours, approved or not. Other people's keys may be passed on.
    let spelled = ["hunter2&co", "hunter2%26co", "%68unter2%26c%6f", "%2568unter2%2526co", "oc&2retnuh"];
    for secret in spelled.map(saying).into_iter().chain([r#"{"command":"h\u0075nter2\u0026co"}"#.to_owned()]) {
        assert_eq!(judged(Decision::Allow, true, secret.clone()), Decision::Deny, "{secret}");
    }
    assert_eq!(judged(Decision::Allow, true, saying(address)), Decision::Allow);
}
