use super::*;

fn is_destructive(text: &str) -> bool {
    classify_text(text).destroys.is_some()
}

#[test]
fn destructive_commands_are_found_behind_commands_that_run_them() {
    for text in ["rm -r x", "ls; mkdir x; rm -r x", "sudo -u me rm -r x", "sh -c 'rm -r x'", "echo $(rm -r x)"] {
        assert!(is_destructive(text), "{text}");
    }
    for text in ["ls; make", "echo 'rm -r x'", "grep -r 'rm -rf' src", "rm x"] {
        assert!(!is_destructive(text), "{text}");
    }
}

#[test]
fn long_nested_text_is_classified_in_bounded_time() {
    for text in
        ["sh -c \"sh -c 'sh -c x'\" ".repeat(300), format!("sudo {}", "sh -c 'a;b;c' ".repeat(500)), "(".repeat(8000)]
    {
        assert!(!is_destructive(&text));
    }
}
