use super::*;

fn sh(script: &str) -> Spec {
    Spec::new("sh").args(["-c", script])
}

#[test]
fn output_and_exit_code_come_back() {
    let output = run(&sh("cat; echo out; echo err >&2; exit 3")).unwrap();
    assert_eq!((output.stdout.as_slice(), output.stderr.as_slice()), (&b"out\n"[..], &b"err\n"[..]));
    assert_eq!(output.status.code(), Some(3));
    assert!(!output.truncated);
}

#[test]
fn a_missing_program_is_named() {
    let error = run(&Spec::new("no-such-program-here")).unwrap_err();
    assert!(matches!(&error, ProcessError::NotFound { program } if program == "no-such-program-here"), "{error}");
}

#[test]
fn output_beyond_the_bound_is_read_and_dropped() {
    let output = run(&sh("head -c 300000 /dev/zero").max_output_bytes(1000)).unwrap();
    assert_eq!(output.stdout.len(), 1000);
    assert!(output.truncated && output.status.success());
}

#[test]
fn a_time_out_kills_grandchildren_too() {
    let dir = tempfile::tempdir().unwrap();
    let spec = sh("sleep 1000 & echo $! > pid; wait").current_dir(dir.path()).timeout(Duration::from_millis(300));
    let error = run(&spec).unwrap_err();
    assert!(matches!(error, ProcessError::TimedOut { .. }), "{error}");
    let pid: u32 = std::fs::read_to_string(dir.path().join("pid")).unwrap().trim().parse().unwrap();
    // The signal is delivered before the call returns; its effect may show a moment later.
    let dead = (0..500).any(|_| {
        thread::sleep(Duration::from_millis(10));
        Identity::for_pid(pid).is_none()
    });
    assert!(dead, "the grandchild lives on");
}

#[test]
fn what_is_done_meanwhile_is_done_while_the_child_works() {
    let dir = tempfile::tempdir().unwrap();
    let waits = sh("until [ -e go ]; do sleep 0.01; done").current_dir(dir.path());
    let output = run_alongside(&waits, &|| false, &|| std::fs::write(dir.path().join("go"), "").unwrap()).unwrap();
    assert!(output.status.success());
}

#[test]
fn a_daemon_that_keeps_the_pipe_does_not_hold_us() {
    let output = run(&sh("sleep 5 & echo started")).unwrap();
    assert_eq!(output.stdout, b"started\n");
}

#[test]
fn variables_are_added_and_dropped() {
    let output = run(&sh("echo $ADDED${PATH:+has-path}").env("ADDED", "yes ")).unwrap();
    assert_eq!(output.stdout, b"yes has-path\n");
    let output = run(&Spec::new("/bin/sh").args(["-c", "env"]).without_env(&["CARGO"])).unwrap();
    assert!(!String::from_utf8_lossy(&output.stdout).contains("\nCARGO"));
}

#[test]
fn our_secrets_are_known_by_name_and_other_peoples_are_left() {
    for ours in
        ["TELEGRAM_BOT_TOKEN", "ANTHROPIC_API_KEY", "OPENAI_API_KEY", "BRAVE_API_KEY", "AWS_BEARER_TOKEN_BEDROCK"]
    {
        assert!(is_secret_name(ours), "{ours}");
    }
    for theirs in ["GITHUB_TOKEN", "PATH", "TELEGRAM_API_URL", "MY_API_KEY", "AWS_SECRET_ACCESS_KEY"] {
        assert!(!is_secret_name(theirs), "{theirs}");
    }
}

#[test]
fn a_process_is_alive_until_it_is_dead_and_a_reused_pid_is_someone_else() {
    let me = Identity::current();
    assert!(me.is_alive() && !me.started.is_empty());
    assert!(!Identity { started: "1".to_owned(), ..me.clone() }.is_alive());
    assert!(!Identity { boot_id: "another".to_owned(), ..me.clone() }.is_alive());
    let back: Identity = serde_json::from_str(&serde_json::to_string(&me).unwrap()).unwrap();
    assert_eq!(back, me);

    let mut child = spawn_detached(Path::new("/bin/sleep"), &["1000"], &[], Stdio::null(), Stdio::null()).unwrap();
    let identity = Identity::for_pid(child.id()).unwrap();
    assert!(identity.is_alive());
    let other = Identity { started: "1".to_owned(), ..identity.clone() };
    assert!(matches!(end_process(&other, BOUND), Err(EndError::NotSame { .. })));
    assert!(identity.is_alive(), "the number was given away: it is somebody else now");
    end_process(&identity, BOUND).unwrap();
    // Before reaping the process is a zombie, afterwards it is gone; both count as dead.
    assert!(!identity.is_alive());
    child.wait().unwrap();
    assert!(matches!(end_process(&identity, BOUND), Err(EndError::NotSame { .. })));
    assert!(matches!(end_process(&me, BOUND), Err(EndError::NotSame { .. })), "never oneself");
}

/// Time allowed for a killed process to be gone.
const BOUND: Duration = Duration::from_secs(10);

/// Waits for a file that holds a process ID.
fn pid_in(path: &Path) -> u32 {
    let read = || std::fs::read_to_string(path).ok()?.trim().parse().ok();
    let found = (0..1000).find_map(|_| {
        read().or_else(|| {
            thread::sleep(Duration::from_millis(10));
            None
        })
    });
    found.unwrap_or_else(|| panic!("nobody wrote {}", path.display()))
}

#[test]
fn ending_a_process_ends_all_that_descends_from_it_in_groups_of_their_own_and_stopped_ones() {
    let dir = tempfile::tempdir().unwrap();
    // A stopped child in another session, with a child of its own.
    let script = "setsid sh -c 'sleep 1000 & echo $! >grandchild; echo $$ >child; kill -STOP $$; wait' & wait";
    let path = dir.path().display().to_string();
    let script = format!("cd '{path}' && {script}");
    let mut root = spawn_detached(Path::new("/bin/sh"), &["-c", &script], &[], Stdio::null(), Stdio::null()).unwrap();
    let identity = Identity::for_pid(root.id()).unwrap();
    let below: Vec<Identity> =
        ["child", "grandchild"].map(|name| Identity::for_pid(pid_in(&dir.path().join(name))).unwrap()).to_vec();
    end_process(&identity, BOUND).unwrap();
    root.wait().unwrap();
    assert!(!identity.is_alive() && !below.iter().any(Identity::is_alive));
}

#[test]
fn what_a_child_left_behind_in_the_background_lives_on_when_it_has_ended_well() {
    let dir = tempfile::tempdir().unwrap();
    run(&sh("sleep 1000 >/dev/null 2>&1 & echo $! >pid").current_dir(dir.path())).unwrap();
    let left = Identity::for_pid(pid_in(&dir.path().join("pid"))).unwrap();
    assert!(left.is_alive());
    end_process(&left, BOUND).unwrap();
}
