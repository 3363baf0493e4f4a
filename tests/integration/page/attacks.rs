//! Whoever may not enter: each way in that others' pages were attacked by is shut, and none of it ends in a log.

use std::{
    io::{Read as _, Write as _},
    os::unix::fs::PermissionsExt as _,
};

use super::{ServedPage, TestEnv, WAKE, eventually};

const HOW: &str = "Run <code>wake page</code> in a terminal for a link.";

/// Refused, with a page that says how to enter.
#[track_caller]
fn is_shut(page: &ServedPage<'_>, what: &str, headers: &[(&str, &str)]) {
    let answered = page.send(what, headers, "");
    assert!((400..500).contains(&answered.status), "{what} {headers:?}: {answered:#?}");
    assert!(answered.body.contains(HOW) && !answered.body.contains("<nav"), "{answered:#?}");
    assert!(answered.header("set-cookie").is_none(), "{answered:#?}");
}

#[test]
fn an_address_enters_once_and_its_cookie_stays() {
    let env = TestEnv::new();
    let page = ServedPage::serve(&env);
    let ticket = page.ticket();
    is_shut(&page, "GET /", &[]);
    let entered = page.send(&format!("GET {ticket}"), &[], "");
    assert_eq!(entered.see_other(), "/");
    let cookie = entered.header("set-cookie").unwrap();
    assert!(cookie.ends_with("; Path=/; HttpOnly; SameSite=Strict"), "{cookie}");
    let cookie = cookie.split(';').next().unwrap();
    page.send("GET /", &[("Cookie", &format!("theme=dark; {cookie}"))], "").ok();

    let again = page.send(&format!("GET {ticket}"), &[], "");
    assert_eq!((again.status, again.header("set-cookie")), (410, None));
    assert!(again.body.contains("already used"), "{again:#?}");
    for never in ["/enter/", "/enter/0", "/enter/../", &format!("{ticket}0")] {
        assert_eq!(page.send(&format!("GET {never}"), &[], "").status, 410, "{never}");
    }
    // A look at its head takes nothing of an address.
    let ticket = page.ticket();
    assert_eq!(page.send(&format!("HEAD {ticket}"), &[], "").status, 401);
    assert_eq!(page.send(&format!("GET {ticket}"), &[], "").see_other(), "/");
}

#[test]
fn who_comes_by_another_sites_link_enters_from_a_page_of_ours() {
    let env = TestEnv::new();
    let page = ServedPage::serve(&env);
    let entered = page.send(&format!("GET {}", page.ticket()), &[("Sec-Fetch-Site", "cross-site")], "");
    assert!(entered.header("set-cookie").is_some() && entered.body.contains("0; url=/"), "{entered:#?}");
    entered.ok();
}

#[test]
fn only_its_own_name_is_answered() {
    let env = TestEnv::new();
    let page = ServedPage::open(&env);
    let port = page.host.split_once(':').unwrap().1;
    let known = page.cookie.as_str();
    let of = |name: &str| format!("{name}:{port}");
    for host in [
        of("localhost"),
        of("127.0.0.1"),
        of("evil.example"),
        of(&format!("{}.evil.example", page.host.split(':').next().unwrap())),
        page.host.split(':').next().unwrap().to_owned(),
        page.host.to_uppercase(),
        String::new(),
    ] {
        is_shut(&page, "GET /", &[("Host", &host), ("Cookie", known)]);
        let ticket = page.ticket();
        is_shut(&page, &format!("GET {ticket}"), &[("Host", &host)]);
    }
    is_shut(&page, "GET /", &[("Host", &page.host), ("Host", &page.host), ("Cookie", known)]);
    page.get("/").ok();
}

#[test]
fn no_other_site_reads_or_sends_even_with_the_cookie() {
    let env = TestEnv::new();
    let page = ServedPage::open(&env);
    let (cookie, own) = (("Cookie", page.cookie.as_str()), format!("http://{}", page.host));
    for from in ["cross-site", "same-site", "nonsense", ""] {
        is_shut(&page, "GET /", &[cookie, ("Sec-Fetch-Site", from)]);
        is_shut(&page, "GET /style.css", &[cookie, ("Sec-Fetch-Site", from)]);
        is_shut(&page, "POST /chat", &[cookie, ("Sec-Fetch-Site", from), ("Origin", &own)]);
    }
    for origin in [
        "null",
        "http://evil.example",
        "http://localhost",
        &format!("https://{}", page.host),
        own.strip_suffix(|_: char| true).unwrap(),
    ] {
        is_shut(&page, "GET /", &[cookie, ("Origin", origin)]);
        is_shut(&page, "POST /chat", &[cookie, ("Origin", origin)]);
        is_shut(&page, "POST /chat", &[cookie, ("Origin", origin), ("Sec-Fetch-Site", "same-origin")]);
    }
    // A form says where it comes from.
    is_shut(&page, "POST /chat", &[cookie]);
    is_shut(&page, "POST /chat", &[cookie, ("Sec-Fetch-Site", "none")]);
    is_shut(&page, "POST /chat", &[("Origin", &own), ("Sec-Fetch-Site", "same-origin")]);
    is_shut(&page, "GET /", &[("Cookie", "reveille="), ("Sec-Fetch-Site", "same-origin")]);
    page.send("GET /", &[cookie, ("Sec-Fetch-Site", "none")], "").ok();
}

#[test]
fn every_answer_forbids_what_a_page_of_ours_never_needs() {
    let env = TestEnv::new();
    let page = ServedPage::open(&env);
    let answers = [
        page.get("/"),
        page.get("/style.css"),
        page.get("/no-such-page"),
        page.send("GET /", &[], ""),
        page.send("GET /enter/0", &[], ""),
        page.send("PUT /", &[("Cookie", &page.cookie)], ""),
    ];
    for answered in answers {
        let csp = answered.header("content-security-policy").unwrap();
        for part in [
            "default-src 'none'",
            "script-src 'self'",
            "frame-ancestors 'none'",
            "base-uri 'none'",
            "form-action 'self'",
        ] {
            assert!(csp.contains(part), "{csp}");
        }
        assert!(!csp.contains("unsafe"), "{csp}");
        for (name, value) in [
            ("x-content-type-options", "nosniff"),
            ("referrer-policy", "same-origin"),
            ("cache-control", "no-store"),
            (
                "permissions-policy",
                "microphone=(self), camera=(), geolocation=(), display-capture=(), usb=(), serial=()",
            ),
            ("cross-origin-opener-policy", "same-origin"),
            ("cross-origin-resource-policy", "same-origin"),
        ] {
            assert_eq!(answered.header(name), Some(value), "{answered:#?}");
        }
        assert!(!answered.head.to_lowercase().contains("access-control"), "{answered:#?}");
    }
}

#[test]
fn no_bare_code_is_shown_and_no_file_is_reached_by_a_path() {
    let env = TestEnv::new();
    let page = ServedPage::open(&env);
    let cookie = ("Cookie", page.cookie.as_str());
    for (what, status) in [
        ("PUT /", 405),
        ("DELETE /chat", 405),
        ("OPTIONS /", 405),
        ("TRACE /", 405),
        ("GET /no-such-page", 404),
        ("GET /../../../../etc/passwd", 404),
        ("GET /%2e%2e/%2e%2e/messages.db", 404),
        ("GET /messages.db", 404),
        ("GET //etc/passwd", 404),
        ("GET /memory/../../messages.db", 404),
    ] {
        let answered = page.send(what, &[cookie], "");
        assert_eq!(answered.status, status, "{what}: {answered:#?}");
        assert!(answered.body.contains("<h1>") && !answered.body.contains("root:"), "{what}: {answered:#?}");
    }
    let origin = format!("http://{}", page.host);
    let posting = [cookie, ("Origin", origin.as_str()), ("Content-Length", "99999999")];
    let answered = page.send("POST /chat", &posting, "");
    assert!(answered.status == 422 && answered.body.contains("too long"), "{answered:#?}");
    let answered = page.send("POST /", &[cookie, ("Origin", &origin)], "");
    assert!(answered.status == 405 && answered.body.contains("<h1>"), "{answered:#?}");
}

#[test]
fn a_cookie_of_another_server_is_worth_nothing() {
    let (env, other) = (TestEnv::new(), TestEnv::new());
    let (page, stranger) = (ServedPage::open(&env), ServedPage::open(&other));
    assert_ne!(page.host.split(':').next(), stranger.host.split(':').next());
    is_shut(&page, "GET /", &[("Cookie", &stranger.cookie)]);
    let ticket = stranger.ticket();
    assert_eq!(page.send(&format!("GET {ticket}"), &[], "").status, 410);
}

#[test]
fn one_server_a_workspace_tells_its_person_further_addresses_and_none_reaches_a_log() {
    let env = TestEnv::new();
    let refused = env.wake(&["page", "--address"]);
    assert_eq!(refused.code, 1);
    refused.assert_tells("The page isn't running");
    let page = ServedPage::open(&env);
    let dir = env.workspace().join("page");
    let mode = |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&dir), mode(&dir.join("socket"))), (0o700, 0o600));
    // A second one that has no terminal says nothing that could be read in a log.
    let log = env.path("second.log");
    let next = env.start_logged(WAKE, &["page"], &log);
    let says = |what: &str| std::fs::read_to_string(&log).unwrap().contains(what);
    eventually("the second one says that it waits", || says("served by another process"));
    // On a terminal it prints an address of the first one's.
    let second = env.on_terminal(WAKE, &["page"]).ok();
    let path = second.stdout.trim().strip_prefix(&format!("http://{}", page.host)).unwrap().to_owned();
    assert_eq!(page.send(&format!("GET {path}"), &[], "").see_other(), "/");
    second.assert_never_tells("/enter/");
    let said = page.end();
    assert!(said.contains("Serving on port "), "{said}");
    assert!(!said.contains("enter") && !said.contains("localhost") && !said.contains("reveille="), "{said}");
    // It serves once the first one has ended, as a unit has to.
    eventually("the second one serves", || says("Serving on"));
    next.signal(rustix::process::Signal::TERM);
    let ran = next.end().ok();
    assert!(ran.stdout.is_empty() && !says("enter"), "{ran:?}");
    assert!(!dir.join("socket").exists());
}

#[test]
fn it_is_served_on_both_loopback_addresses() {
    let env = TestEnv::new();
    let page = ServedPage::open(&env);
    let port = page.host.split_once(':').unwrap().1;
    for address in [format!("127.0.0.1:{port}"), format!("[::1]:{port}")] {
        if address.starts_with('[') && std::net::TcpListener::bind("[::1]:0").is_err() {
            // A machine without IPv6.
            continue;
        }
        let mut stream = std::net::TcpStream::connect(&address).unwrap();
        write!(stream, "GET / HTTP/1.1\r\nHost: {}\r\nCookie: {}\r\n\r\n", page.host, page.cookie).unwrap();
        let mut answered = String::new();
        stream.read_to_string(&mut answered).unwrap();
        assert!(answered.starts_with("HTTP/1.1 200"), "{address}: {answered}");
    }
}

#[test]
fn a_port_that_another_program_has_in_either_family_is_refused() {
    let env = TestEnv::new();
    for address in ["[::1]:0", "127.0.0.1:0"] {
        // A machine may have no IPv6.
        let Ok(foreign) = std::net::TcpListener::bind(address) else { continue };
        let taken = foreign.local_addr().unwrap();
        let refused = env.wake(&["page", "--port", &taken.port().to_string()]);
        assert_eq!(refused.code, 1, "{refused:?}");
        let told = format!("{taken} can't be listened on: another program has it");
        refused.assert_tells(&told).assert_never_tells("Serving on");
    }
}

#[test]
fn what_is_no_socket_is_never_removed_for_one() {
    let env = TestEnv::new();
    let (notes, link) = (env.path("notes.txt"), env.path("link"));
    std::fs::write(&notes, "mine").unwrap();
    std::os::unix::fs::symlink(&notes, &link).unwrap();
    for path in [&notes, &link] {
        let refused = env.wake(&["page", "--socket", path.to_str().unwrap()]);
        assert_eq!(refused.code, 1, "{refused:?}");
        refused.assert_tells(path.to_str().unwrap()).assert_tells("a socket, so I left it as it is");
    }
    assert_eq!(std::fs::read_to_string(&notes).unwrap(), "mine");
    assert!(link.is_symlink());
}

#[test]
fn a_killed_servers_socket_stands_in_nobodys_way() {
    let env = TestEnv::new();
    let page = ServedPage::serve(&env);
    let old = page.host.clone();
    // It is killed.
    drop(page);
    assert!(env.workspace().join("page/socket").exists());
    let page = ServedPage::open(&env);
    assert_ne!(page.host, old);
    page.get("/").ok();
}

#[test]
fn on_a_terminal_the_address_is_printed_and_ctrl_c_ends_it() {
    let env = TestEnv::new();
    let mut talk = env.talk(WAKE, &["page"]);
    talk.wait_for_text("http://");
    let address = talk.wait_for_text("\n");
    talk.wait_for_text("Ctrl-C stops the page.");
    assert!(address.contains(".localhost:") && address.contains("/enter/"), "{address}");
    talk.signal(rustix::process::Signal::INT);
    assert_eq!(talk.end().0, 0);
}

#[test]
fn connections_that_ask_nothing_take_nobodys_place() {
    let env = TestEnv::new();
    let page = ServedPage::open(&env);
    let silent: Vec<_> = (0..150).map(|_| page.connect()).collect();
    page.get("/").ok();
    // The oldest gave their places, long before their time was up.
    let mut oldest = &silent[0];
    oldest.set_read_timeout(Some(std::time::Duration::from_secs(5))).unwrap();
    assert_eq!(oldest.read(&mut [0]).unwrap(), 0);
}
