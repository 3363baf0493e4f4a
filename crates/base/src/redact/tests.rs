use super::*;
use proptest::prelude::*;

const PLANTED: &str = "hunter2&\"pass word\"<42>";

fn redactor() -> Redactor {
    Redactor::new([&Secret::new(PLANTED), &Secret::new("abc")])
}

/// A plain encoder to test against, written independently of the one under test.
fn base64(bytes: &[u8]) -> String {
    let alphabet: Vec<char> = ('A'..='Z').chain('a'..='z').chain('0'..='9').chain(['+', '/']).collect();
    let mut text = String::new();
    for group in bytes.chunks(3) {
        let number = group.iter().enumerate().fold(0_u32, |sum, (at, b)| sum | u32::from(*b) << (16 - 8 * at));
        for at in 0..4 {
            let digit = alphabet[(number >> (18 - 6 * at) & 63) as usize];
            text.push(if at <= group.len() { digit } else { '=' });
        }
    }
    text
}

#[test]
fn a_secret_prints_as_stars() {
    let secret = Secret::new("open sesame");
    assert_eq!(format!("{secret} {secret:?} {:?}", Some(&secret)), "*** *** Some(***)");
    assert_eq!(secret.expose(), "open sesame");
}

#[test]
fn every_spelling_of_a_live_secret_is_masked() {
    let hex: String = PLANTED.bytes().map(|b| format!("{b:02x}")).collect();
    let spellings = [
        PLANTED.to_owned(),
        hex.to_uppercase(),
        hex,
        "hunter2%26%22pass%20word%22%3C42%3E".to_owned(),
        "hunter2%26%22pass%20word%22%3c42%3e".to_owned(),
        "hunter2%26%22pass+word%22%3C42%3E".to_owned(),
        "hunter2&\\\"pass word\\\"<42>".to_owned(),
        "hunter2&amp;\"pass word\"&lt;42&gt;".to_owned(),
        "hunter2&amp;&quot;pass word&quot;&lt;42&gt;".to_owned(),
    ];
    for spelling in spellings {
        let text = format!("before {spelling} after");
        assert_eq!(redactor().redact(&text), "before *** after", "{spelling}");
        assert!(redactor().contains_secret(&text));
    }
}

#[test]
fn base64_is_masked_at_each_alignment_inside_longer_text() {
    for (before, after) in [("", ""), ("x", ""), ("xy", "z"), ("xyz", "zz"), ("user:", "@host, and more")] {
        let coded = base64(format!("{before}{PLANTED}{after}").as_bytes());
        for coded in [coded.clone(), coded.replace('+', "-").replace('/', "_")] {
            let clean = redactor().redact(&coded);
            assert!(clean.contains(MASK), "{before:?} {after:?}: {clean}");
            let (head, tail) = clean.split_once(MASK).unwrap();
            assert!(head.len() <= base64(before.as_bytes()).len(), "{clean}");
            assert!(tail.len() <= base64(after.as_bytes()).len() + 4, "{clean}");
        }
    }
}

#[test]
fn a_spelling_wrapped_over_lines_is_masked() {
    let coded = base64(PLANTED.as_bytes());
    let (head, tail) = coded.split_at(9);
    let clean = redactor().redact(&format!("{head}\r\n{tail}\nnext"));
    assert!(clean.starts_with(MASK) && clean.ends_with("next"), "{clean}");
    assert!(!clean.contains(head) && !clean.contains(tail.trim_end_matches('=')), "{clean}");
}

#[test]
fn what_is_left_of_a_secret_where_a_text_was_cut_is_masked() {
    let coded = base64(PLANTED.as_bytes());
    let inside = base64(format!("user:{PLANTED}").as_bytes());
    for whole in [PLANTED, coded.trim_end_matches('='), inside.get(7..30).unwrap()] {
        for cut in (8..whole.len() - 2).filter_map(|end| whole.get(..end)).map(str::trim_end) {
            assert_eq!(redactor().redact(&format!("Set “{cut}…”")), "Set “***…”", "{cut}");
            let text = format!("Set “{cut}”");
            assert_eq!(redactor().redact(&text), text, "it wasn't cut there");
        }
    }
    assert_eq!(redactor().redact("hunter2… and more"), "hunter2… and more", "too little to tell anything");
}

#[test]
fn well_known_shapes_are_masked_without_being_known() {
    let body = "Ab1_-".repeat(8);
    let alnum = "Ab12".repeat(9);
    let pem = "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNz\n-----END OPENSSH PRIVATE KEY-----";
    let shapes = [
        format!("sk-ant-api03-{body}"),
        format!("123456789:{body}"),
        format!("ghp_{alnum}"),
        format!("github_pat_{alnum}"),
        "AKIAABCDEFGHIJKLMNOP".to_owned(),
        format!("xoxb-{alnum}"),
        pem.to_owned(),
    ];
    let nothing = Redactor::default();
    for shape in shapes {
        assert_eq!(nothing.redact(&format!("a ({shape}) b")), "a (***) b");
    }
    assert_eq!(nothing.redact(&format!("https://host/bot123456789:{body}/getMe")), "https://host/bot***/getMe");
    assert_eq!(nothing.redact("x -----BEGIN RSA PRIVATE KEY-----\nMIIE"), "x ***");
}

#[test]
fn credentials_in_urls_are_masked_and_plain_urls_are_not() {
    let nothing = Redactor::default();
    assert_eq!(nothing.redact("https://me:pw@host/x.git"), "https://***@host/x.git");
    assert_eq!(nothing.redact("https://abcdefghijklmnopqrstuv@host"), "https://***@host");
    for plain in ["ssh://git@host/x", "https://host:8080/a@b", "git@host:x.git", "at 12:30 we met"] {
        assert!(!nothing.contains_secret(plain), "{plain}");
    }
}

#[test]
fn short_secrets_are_ignored() {
    assert_eq!(redactor().redact("the abc of it"), "the abc of it");
}

/// The forms in which ordinary tools write a secret down. Forms `0` to `7` are the eight that are promised.
fn encoded(secret: &str, form: usize) -> String {
    let bytes = secret.as_bytes();
    let hex = |joint: &str| bytes.iter().map(|b| format!("{b:02x}")).collect::<Vec<_>>().join(joint);
    let coded = base64(bytes);
    match form {
        0 => secret.to_owned(),
        1 => coded,
        2 => coded.replace('+', "-").replace('/', "_").trim_end_matches('=').to_owned(),
        3 => hex(""),
        4 => hex("").to_uppercase(),
        5 => bytes.iter().map(|b| format!("%{b:02X}")).collect(),
        6 => serde_json::to_string(secret).unwrap(),
        7 => coded.as_bytes().chunks(7).map(|line| String::from_utf8_lossy(line)).collect::<Vec<_>>().join("\n  "),
        8 => hex(" "),
        9 => hex(":"),
        10 => secret.chars().rev().collect(),
        _ => serde_json::to_string(secret).unwrap().replace('/', "\\/"),
    }
}

const FORMS: usize = 12;

/// Secrets as generators make them: 10 to 61 characters, some of them awkward.
fn planted(random: &mut fastrand::Rng) -> String {
    let from: Vec<char> = ('a'..='z').chain('A'..='Z').chain('0'..='9').chain("-_+/=.:&\"\\ %".chars()).collect();
    let length = random.usize(8..60);
    let middle: String = (0..length).map(|_| from[random.usize(..from.len())]).collect();
    format!("k{middle}9")
}

fn squeezed(text: &str) -> String {
    text.replace(char::is_whitespace, "")
}

/// Finds the first form of a secret that is left in a squeezed text, by plain search.
fn survives(text: &str, secret: &str) -> Option<usize> {
    (0..FORMS).find(|form| text.contains(squeezed(&encoded(secret, *form)).trim_matches(['=', '"'])))
}

#[test]
fn none_of_two_thousand_planted_secrets_survives_in_any_form() {
    let mut random = fastrand::Rng::with_seed(5);
    for _ in 0..20 {
        let secrets: Vec<Secret> = (0..100).map(|_| Secret::new(planted(&mut random))).collect();
        let redactor = Redactor::new(&secrets);
        let mut text = String::new();
        for (n, secret) in secrets.iter().enumerate() {
            for form in 0..FORMS {
                text.push_str(&format!("Line {n}.{form}, then «{}» and more.\n", encoded(secret.expose(), form)));
            }
            // As part of something longer that is encoded as a whole, at each alignment.
            for before in ["", "a", "ab"] {
                text.push_str(&format!("{}\n", base64(format!("{before}{}, and on", secret.expose()).as_bytes())));
            }
        }
        let clean = redactor.redact(&text);
        let bare = squeezed(&clean);
        let found: Vec<_> = secrets.iter().filter_map(|secret| survives(&bare, secret.expose())).collect();
        assert_eq!(found, [0_usize; 0]);
        for kept in ["Line ", "then «", "» and more."] {
            assert_eq!(clean.matches(kept).count(), 100 * FORMS, "what isn't secret is kept: {kept}");
        }
        assert!(!redactor.contains_secret(&clean));
    }
}

#[test]
fn keys_of_many_issuers_are_known_by_their_shape_and_keep_their_surroundings() {
    let (alnum, word) = ("Ab1".repeat(24), "Ab1_-".repeat(14));
    let exactly = |n: usize| alnum.chars().take(n).collect::<String>();
    let keys = [
        format!("sk-proj-{word}"),
        format!("sk-{}", exactly(48)),
        format!("sk_live_{}", exactly(24)),
        format!("glpat-{}", exactly(20)),
        format!("npm_{}", exactly(36)),
        format!("AIza{}", exactly(35)),
        format!("xoxp-1-{}", exactly(20)),
        format!("xapp-1-{}", exactly(30)),
        format!("ASIA{}", exactly(16).to_uppercase()),
        format!("gho_{}", exactly(36)),
        format!("ya29.{word}"),
        format!("hf_{}", exactly(34)),
        format!("SG.{}.{}", exactly(22), exactly(43)),
        format!("GOCSPX-{}", exactly(28)),
        format!("pypi-AgEIcHlwaS5vcmc{word}"),
        format!("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.{}", exactly(43)),
        format!("123456789%3AAA{}", exactly(33)),
        format!("https://hooks.slack.com/services/T000/B000/{}", exactly(24)),
    ];
    let nothing = Redactor::default();
    for key in keys {
        let masked = key.strip_prefix("https://").map_or("***", |_| "https://***");
        for (before, after) in [
            ("a (", ") b"),
            ("\"key\": \"", "\","),
            ("first\\n", "\\nnext"),
            ("?key%3D", "&x=1"),
            ("=", ""),
            ("'", "'"),
        ] {
            assert_eq!(nothing.redact(&format!("{before}{key}{after}")), format!("{before}{masked}{after}"));
        }
    }
}

#[test]
fn what_only_looks_a_little_like_a_key_stays() {
    let hash = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08";
    let texts = [
        format!("commit {}\nsha256:{hash}\nsha512-{}", hash.split_at(40).0, base64(hash.as_bytes())),
        "550e8400-e29b-41d4-a716-446655440000 at 12:34:56.789, 2026-11-21T14:00:00Z, 192.168.1.10:8080".to_owned(),
        "https://example.org/a/b?c=d&e=f#g mailto:me@example.org ssh://git@host/x.git http://[::1]:80/x@y".to_owned(),
        "task-management-for-the-whole-family-2026 risk-adjusted-return-of-2026-and-after sk-SK sk-is-short1"
            .to_owned(),
        "npm_config_registry npm_lifecycle_event hf_hub_download ghp_ xox AKIA SG. eyJ :// -----BEGIN CERTIFICATE-----"
            .to_owned(),
        "the class=\"sk-folding-cube-with-a-long-name\" of it; ASIAN and AKIAK; 1234567:short; eyJhbGciOi.eyJ"
            .to_owned(),
        "[me@example.org](http://host:80) <a href=\"http://host:80\">me@example.org</a> {\"u\":\"http://a:1\"},\"@x\""
            .to_owned(),
    ];
    for text in texts {
        assert_eq!(redactor().redact(&text), text);
    }
}

#[test]
fn pictures_stay_to_the_byte() {
    let mut random = fastrand::Rng::with_seed(7);
    let secrets: Vec<Secret> = (0..20).map(|_| Secret::new(planted(&mut random))).collect();
    let redactor = Redactor::new(&secrets);
    let picture: Vec<u8> = (0..300_000).map(|_| random.u8(..)).collect();
    let coded = base64(&picture);
    assert_eq!(redactor.redact(&coded), coded);
    // Even a picture that happens to hold a secret: models refuse altered pictures.
    let raw = serde_json::json!({"role": "user", "content": [
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": base64(secrets[0].expose().as_bytes())}},
        {"type": "text", "text": format!("it is {}", secrets[0].expose())},
    ]});
    let clean: Value = serde_json::from_str(&redactor.redact_json(&raw.to_string())).unwrap();
    assert_eq!(clean["content"][0], raw["content"][0]);
    assert_eq!(clean["content"][1]["text"], "it is ***");
}

#[test]
fn json_keeps_its_structure_whatever_stands_in_its_strings() {
    let raw = serde_json::json!({"content": [
        {"type": "text", "text": "-----BEGIN RSA PRIVATE KEY-----\nMIIE\nis how it begins"},
        {"type": "text", "text": "http://localhost:8080"}, {"type": "text", "text": "@home"},
        {"n": 1.5, "null": null, "secret": format!("1 {PLANTED} 2\n{}", encoded(PLANTED, 8))},
    ]});
    let clean: Value = serde_json::from_str(&redactor().redact_json(&raw.to_string())).unwrap();
    assert_eq!(clean["content"][0]["text"], "***\nis how it begins");
    assert_eq!(clean["content"][1], raw["content"][1]);
    assert_eq!(clean["content"][2], raw["content"][2]);
    assert_eq!(clean["content"][3], serde_json::json!({"n": 1.5, "null": null, "secret": "1 *** 2\n***"}));
    let named = serde_json::json!({"b": 1, PLANTED: {"a": true}}).to_string();
    let clean: Value = serde_json::from_str(&redactor().redact_json(&named)).unwrap();
    assert_eq!(clean, serde_json::json!({"b": 1, "***": {"a": true}}));
    let plain = "{ \"b\": 1,  \"a\": [ \"x\" ] }";
    assert_eq!(redactor().redact_json(plain), plain, "to the byte");
    assert_eq!(redactor().redact_json(&format!("{{cut: {PLANTED}")), "{cut: ***");
}

#[test]
fn a_key_block_without_an_end_takes_only_what_looks_like_a_key() {
    let nothing = Redactor::default();
    let text = "-----BEGIN PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n\nMIIEvQIBADANBg\nkqhkiG9w0=\n\nAnd now the weather.\n- a fact\n";
    assert_eq!(nothing.redact(text), "***\n\nAnd now the weather.\n- a fact\n");
    assert_eq!(nothing.redact("-----BEGIN PRIVATE KEY-----\\nMIIE\\n-----END PRIVATE KEY-----\" x"), "***\" x");
}

proptest! {
    #[test]
    fn no_planted_secret_survives(
        secret in "[A-Za-z0-9:/+_-]{6,60}", before in "\\PC{0,20}", after in "\\PC{0,20}", form in 0..FORMS,
    ) {
        let spelled = encoded(&secret, form);
        let redactor = Redactor::new([&Secret::new(secret)]);
        let clean = redactor.redact(&format!("{before}{spelled}{after}"));
        prop_assert!(!clean.contains(spelled.trim_matches('=')));
        prop_assert!(!redactor.contains_secret(&clean));
    }

    #[test]
    fn text_without_secrets_is_unchanged(text in "[a-zà-ü \n]{0,200}") {
        prop_assert_eq!(redactor().redact(&text), text);
    }

    #[test]
    fn any_text_is_read(text in "(sk-|eyJ|://|:|[0-9]{8}|xox[a-z]-|-----BEGIN |PRIVATE KEY-----|\\PC|\n|[A-Za-z0-9_-]{30}){0,12}") {
        let clean = Redactor::default().redact(&text);
        prop_assert!(clean.len() <= text.len().max(3));
    }
}

#[test]
fn secrets_are_gathered_once_and_before_the_first_text() {
    let gathered = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let count = std::sync::Arc::clone(&gathered);
    let redactor = Redactor::new_lazy(move || {
        count.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        vec![Secret::new("open sesame")]
    });
    let clone = redactor.clone();
    assert_eq!(gathered.load(std::sync::atomic::Ordering::Relaxed), 0);
    assert_eq!(redactor.redact("open sesame"), "***");
    assert_eq!(clone.redact("say open sesame"), "say ***");
    assert_eq!(gathered.load(std::sync::atomic::Ordering::Relaxed), 1);
}

#[test]
fn what_is_secret_alone_of_a_secret_is_masked_and_never_leaves() {
    let token = "123456789:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw";
    let key = token.split_once(':').unwrap().1;
    let basic = format!("Basic {}", base64(b"ana:correct-horse"));
    let (first, second) = ("MIIEvQIBADANBgkqhkiG9w0BAQEFAASC", "c3VjaCBpcyBhIGxpbmUgb2YgYSBrZXku");
    let pem = format!("-----BEGIN PRIVATE KEY-----\n{first}\n{second}\n-----END PRIVATE KEY-----\n");
    let redactor = Redactor::new(&[token, &basic, &pem].map(Secret::new));
    for (text, clean) in [
        (format!("the key is {key}."), "the key is ***."),
        (format!("https://api.example/{key}/x"), "https://api.example/***/x"),
        (base64(key.as_bytes()).trim_end_matches('=').to_owned(), "***"),
        ("her password: correct-horse".to_owned(), "her password: ***"),
        (format!("tail:\n{second}\n"), "tail:\n***\n"),
        (format!("\"{first}\\n{second}\""), "\"***\\n***\""),
    ] {
        assert_eq!(redactor.redact(&text), clean, "{text}");
        assert!(redactor.carries_live_secret(&serde_json::json!({ "url": text }).to_string()), "{text}");
    }
    // The bot's ID is public.
    assert_eq!(redactor.redact("bot 123456789 of ana"), "bot 123456789 of ana");
}

#[test]
fn a_key_is_known_by_its_look() {
    for key in ["sk-ant-api03-aaaaaaaaaaaa", "AIzaSyAAAAAAAAAAAA", "123456789:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"] {
        assert!(is_like_a_key(key), "{key}");
    }
    for other in ["Europe/Berlin", "2.50", "https://example.org/a/long/path/of/a/repository.git", "", "a b", "sk-"] {
        assert!(!is_like_a_key(other), "{other}");
    }
}

#[test]
fn a_growing_text_shows_nothing_that_its_whole_hides() {
    let mut random = fastrand::Rng::with_seed(11);
    let block = format!(
        "-----BEGIN RSA PRIVATE KEY-----\n{}\n{}\n-----END RSA PRIVATE KEY-----",
        "Ab1+".repeat(16),
        "cd2/".repeat(9)
    );
    for _ in 0..20 {
        let secrets: Vec<Secret> = (0..4).map(|_| Secret::new(planted(&mut random))).collect();
        let redactor = Redactor::new(&secrets);
        let mut text = String::from("It begins so.\n\n");
        for secret in &secrets {
            let spelled = encoded(secret.expose(), random.usize(..FORMS));
            let others = ["sk-ant-api03-aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "https://me:pässword@example.org/a", &block];
            let other = others[random.usize(..others.len())];
            text.push_str(&format!("Then «{spelled}» and {other} — and so on, as long as it takes. "));
        }
        text.push_str("ä end");
        let whole = redactor.redact(&text);
        let (mut growing, mut shown) = (GrowingText::new(redactor.clone()), String::new());
        for c in text.chars() {
            shown.push_str(&growing.push(c.encode_utf8(&mut [0; 4])));
            assert!(whole.starts_with(&shown), "{shown:?}\n{whole:?}");
        }
        assert!(shown.len() + 8 > whole.len(), "all but the last word is shown: {shown:?}");
        assert_eq!(shown + &growing.finish(), whole);
    }
}

#[test]
fn a_growing_text_without_blanks_is_shown_letter_by_letter() {
    let mut growing = GrowingText::new(redactor());
    assert_eq!(growing.push("今日は晴れ、"), "今日は晴れ、");
    assert_eq!(growing.push("気温は20"), "気温は");
    assert_eq!(growing.push("度です。"), "20度です。");
}
