use super::*;

fn risk(words: &[&str]) -> Risk {
    command(&words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>()).risk
}

#[test]
fn an_option_that_isn_t_listed_is_dangerous_wherever_it_stands() {
    for words in [
        &["sort", "-o", "out", "in"][..],
        &["sort", "in", "-oout"],
        &["sort", "-ro", "out"],
        &["sort", "in", "--output=out"],
        // An abbreviation, which GNU programs take.
        &["sort", "in", "--outpu", "out"],
        // A value that looks like an option.
        &["sort", "-k", "-oout", "in"],
    ] {
        assert_eq!(risk(words), Risk::Dangerous, "{words:?}");
    }
    // After `--` nothing is an option.
    assert_eq!(risk(&["sort", "--", "-o", "out"]), Risk::Safe);
    assert_eq!(risk(&["sort", "-k", "2", "-t", ",", "in"]), Risk::Safe);
}

#[test]
fn only_the_system_s_own_programs_are_known() {
    for (name, expected) in [
        ("ls", Risk::Safe),
        ("/bin/ls", Risk::Safe),
        ("/usr/bin/ls", Risk::Safe),
        ("./ls", Risk::Dangerous),
        ("/usr/bin/../../tmp/ls", Risk::Dangerous),
        ("/usr/local/bin/ls", Risk::Dangerous),
        ("LS", Risk::Dangerous),
    ] {
        assert_eq!(risk(&[name]), expected, "{name}");
    }
}

#[test]
fn a_line_is_as_risky_as_its_worst_command() {
    for (text, expected) in [
        ("ls; pwd", Risk::Safe),
        ("ls; mkdir x", Risk::Caution),
        ("mkdir x; make; ls", Risk::Dangerous),
        ("ls; rm -r x; make", Risk::Destructive),
    ] {
        assert_eq!(line(text).worst.risk, expected, "{text}");
    }
}

#[test]
fn a_long_text_of_nested_texts_is_read_in_bounded_time() {
    let nested = "sh -c \"sh -c 'sh -c x'\" ".repeat(300);
    assert!(line(&nested).worst.risk >= Risk::Dangerous);
    assert!(line(&format!("sudo {}", "sh -c 'a;b;c' ".repeat(500))).worst.risk >= Risk::Dangerous);
    assert!(line(&"(".repeat(8000)).worst.risk >= Risk::Dangerous);
}
