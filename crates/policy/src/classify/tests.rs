use super::*;

fn named(text: &str) -> bool {
    classify_line(text).destroys.is_some()
}

#[test]
fn what_destroys_is_found_behind_what_comes_before_and_runs_it() {
    for text in ["rm -r x", "ls; mkdir x; rm -r x", "sudo -u me rm -r x", "sh -c 'rm -r x'", "echo $(rm -r x)"] {
        assert!(named(text), "{text}");
    }
    for text in ["ls; make", "echo 'rm -r x'", "grep -r 'rm -rf' src", "rm x"] {
        assert!(!named(text), "{text}");
    }
}

#[test]
fn a_long_text_of_nested_texts_is_read_in_bounded_time() {
    for text in
        ["sh -c \"sh -c 'sh -c x'\" ".repeat(300), format!("sudo {}", "sh -c 'a;b;c' ".repeat(500)), "(".repeat(8000)]
    {
        assert!(!named(&text));
    }
}
