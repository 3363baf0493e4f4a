use super::*;
use proptest::prelude::*;

const PLANTED: &str = "hunter2&\"pass word\"<42>";

fn redactor() -> Redactor {
    Redactor::new([&Secret::new(PLANTED), &Secret::new("abc")])
}

/// A plain encoder to test against, written the other way round from the one above.
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

proptest! {
    #[test]
    fn no_planted_secret_survives(
        secret in "[A-Za-z0-9:/+_-]{6,60}", before in "\\PC{0,20}", after in "\\PC{0,20}", form in 0..5,
    ) {
        let spelled = match form {
            0 => secret.clone(),
            1 => base64(secret.as_bytes()),
            2 => secret.bytes().map(|b| format!("{b:02x}")).collect(),
            3 => secret.bytes().map(|b| format!("%{b:02X}")).collect(),
            _ => serde_json::to_string(&secret).unwrap(),
        };
        let redactor = Redactor::new([&Secret::new(secret)]);
        let clean = redactor.redact(&format!("{before}{spelled}{after}"));
        prop_assert!(!clean.contains(spelled.trim_matches('=')));
        prop_assert!(!redactor.contains_secret(&clean));
    }

    #[test]
    fn text_without_secrets_is_unchanged(text in "[a-zà-ü \n]{0,200}") {
        prop_assert_eq!(redactor().redact(&text), text);
    }
}
