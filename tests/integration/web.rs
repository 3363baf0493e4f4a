//! Reading the web over real sockets: servers that lead elsewhere, send too much, too slowly or nothing readable, and
//! search engines that refuse.

use std::{
    collections::BTreeSet,
    io::Write as _,
    net::IpAddr,
    path::Path,
    rc::Rc,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use chrono::DateTime;
use serde_json::json;

use reveille_base::{redact::Secret, types::ChatRef};
use reveille_config::Autonomy;
use reveille_policy::Rules;
use reveille_sandbox::{
    Confinement,
    exec::{Exec, Shelter},
    web::{FetchLimits, Grants, Lookup, Names, Page, Web, WebError, search::Engine},
};
use reveille_tools::{
    Attachments, Capabilities, ChatSnapshot, CycleFacts, Documents, LocalClock, MemorySnapshot, Registry,
    UnaskedLimits, World,
};

use super::support::{
    env::TestEnv,
    http::{Gate, HttpServer, Request, Response, Step, lock},
};

fn now<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(work)
}

fn port(server: &HttpServer) -> String {
    server.url().rsplit_once(':').unwrap().1.to_owned()
}

/// The web with these servers granted, by their address and by the names that the tests use.
fn web(servers: &[&HttpServer]) -> Web {
    let hosts =
        servers.iter().flat_map(|server| ["127.0.0.1", "rebinds.test"].map(|host| format!("{host}:{}", port(server))));
    let hosts: Vec<_> = hosts.collect();
    // Nothing here waits for a time-out but the tests of it.
    let limits = FetchLimits { timeout: Duration::from_secs(3_600), ..FetchLimits::default() };
    Web::default().with_grants(Grants::new(hosts.iter().map(String::as_str))).with_limits(limits)
}

fn read(web: &Web, url: &str) -> Result<Page, WebError> {
    now(web.fetch_page(url, &|_| None))
}

fn html(body: &str) -> Response {
    Response::new(200, body).header("content-type", "text/html; charset=utf-8")
}

fn redirect(location: &str) -> Response {
    Response::new(302, "secret of the redirect").header("location", location)
}

#[test]
fn a_granted_server_is_read_in_every_spelling_and_an_ungranted_one_never_hears_of_it() {
    let server = HttpServer::start(|_| html("<title>T</title><p>Hello"));
    let port = port(&server);
    let spellings = [
        "127.0.0.1",
        "2130706433",
        "0x7f.1",
        "0177.0.0.01",
        "127.1",
        "%31%32%37.0.0.1",
        "１２７。０。０。１",
        "127.0.0.1.",
    ];
    for host in spellings {
        let url = format!("http://{host}:{port}/");
        assert!(read(&Web::default(), &url).is_err(), "{url}");
    }
    assert_eq!(server.connections(), 0);
    for host in spellings {
        let page = read(&web(&[&server]), &format!("http://{host}:{port}/")).unwrap();
        assert_eq!((page.title.as_deref(), page.text.as_str()), (Some("T"), "Hello"), "{host}");
        assert_eq!(page.origin, format!("http://127.0.0.1:{port}"), "{host}");
    }
    assert_eq!(server.connections(), spellings.len());
}

#[test]
fn a_proxy_of_the_environment_is_not_asked() {
    let proxy = HttpServer::start(|_| html("by the proxy"));
    let env = TestEnv::new();
    let me = std::env::current_exe().unwrap();
    let story = "web::a_granted_server_is_read_in_every_spelling_and_an_ungranted_one_never_hears_of_it";
    let mut again = env.command(&me, &["--exact", story]);
    for name in ["HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"] {
        again.env(name, proxy.url());
    }
    let ran = again.output().unwrap();
    assert!(ran.status.success() && String::from_utf8_lossy(&ran.stdout).contains("1 passed"), "{ran:?}");
    assert_eq!(proxy.connections(), 0);
}

#[test]
fn a_redirect_that_leads_inside_is_not_followed() {
    let inside = HttpServer::start(|_| html("inner secret"));
    let location = Arc::new(Mutex::new(String::new()));
    let told = Arc::clone(&location);
    let server = HttpServer::start(move |_| redirect(&lock(&told)));
    let web_of_one = web(&[&server]);
    for to in [
        "http://127.0.0.1/",
        "http://127.0.0.1:8080/admin",
        "http://0x7f.1/",
        "//2130706433/",
        "http://[::1]/",
        "http://[::ffff:169.254.169.254]/latest/meta-data",
        "http://169.254.169.254./",
        "http://localhost/",
        "https://10.0.0.1/",
    ] {
        to.clone_into(&mut lock(&location));
        let refused = read(&web_of_one, &server.url());
        assert!(matches!(refused, Err(WebError::NotPublic { is_redirect: true, .. })), "{to}: {refused:?}");
    }
    for to in ["file:///etc/passwd", "http://me:word@127.0.0.1/", "http://[::1", "gopher://127.0.0.1/", &inside.url()] {
        to.clone_into(&mut lock(&location));
        let refused = read(&web_of_one, &server.url());
        assert!(matches!(refused, Err(WebError::Redirect(_))), "{to}: {refused:?}");
        assert!(!refused.unwrap_err().to_string().contains("secret"));
    }
    assert_eq!(inside.connections(), 0);
    // The control: with both granted it is followed.
    inside.url().clone_into(&mut lock(&location));
    assert_eq!(read(&web(&[&server, &inside]), &server.url()).unwrap().text, "inner secret");
}

#[test]
fn five_redirects_are_followed_and_nothing_is_carried_along() {
    let seen: Arc<Mutex<Vec<Request>>> = Arc::default();
    let noted = Arc::clone(&seen);
    let server = HttpServer::start(move |request| {
        lock(&noted).push(request.clone());
        match request.target.trim_start_matches('/').parse::<u32>() {
            Ok(0) => html("arrived"),
            Ok(n) => redirect(&format!("{}#fragment", n - 1)).header("set-cookie", "a=b; Path=/"),
            Err(_) => redirect("/loop"),
        }
    });
    let web = web(&[&server]);
    let page = read(&web, &format!("{}/5", server.url())).unwrap();
    assert_eq!((page.text.as_str(), page.url), ("arrived", format!("{}/0#fragment", server.url())));
    for request in lock(&seen).iter() {
        for carried in ["cookie", "referer", "authorization"] {
            assert_eq!(request.header(carried), None, "{request:?}");
        }
    }
    for endless in ["6", "loop"] {
        let refused = read(&web, &format!("{}/{endless}", server.url()));
        assert!(matches!(refused, Err(WebError::Redirect(_))), "{endless}: {refused:?}");
    }
    assert_eq!(lock(&seen).len(), 6 + 6 + 6);
}

/// A name that means another address each time it is asked about.
#[derive(Debug)]
struct Rebinds(Arc<AtomicUsize>);

impl Names for Rebinds {
    fn resolve_name<'a>(&'a self, _: &'a str) -> Lookup<'a> {
        let turn = self.0.fetch_add(1, Ordering::Relaxed);
        // Nobody listens at the second one.
        let address: IpAddr = if turn == 0 { [127, 0, 0, 1].into() } else { [127, 9, 9, 9].into() };
        Box::pin(std::future::ready(Ok(vec![address])))
    }
}

#[test]
fn a_name_is_looked_up_once_and_what_was_checked_is_what_is_dialled() {
    let server = HttpServer::start(|request| html(&format!("host {}", request.header("host").unwrap())));
    let asked = Arc::new(AtomicUsize::new(0));
    let web = web(&[&server]).with_names(Rebinds(Arc::clone(&asked)));
    let url = format!("http://rebinds.test.:{}/", port(&server));
    assert_eq!(read(&web, &url).unwrap().text, format!("host rebinds.test.:{}", port(&server)));
    assert_eq!((asked.load(Ordering::Relaxed), server.connections()), (1, 1));
    // The control: another look-up leads elsewhere.
    assert!(matches!(read(&web, &url), Err(WebError::Unreachable(_))));
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    packed.write_all(bytes).unwrap();
    packed.finish().unwrap()
}

#[test]
fn bombs_endless_bodies_and_huge_titles_are_bounded() {
    let never = Gate::default();
    let waiting = never.clone();
    let bomb = gzip(&vec![b'x'; 32 * 1024 * 1024]);
    let server = HttpServer::start(move |request| match request.target.as_str() {
        "/bomb" => {
            Response::new(200, bomb.clone()).header("content-type", "text/plain").header("content-encoding", "gzip")
        }
        // After enough it never ends: who waited for the end would stay.
        "/endless" => {
            let steps = (0..40).map(|_| Step::Send(vec![b'x'; 64 * 1024])).chain([Step::Wait(waiting.clone())]);
            Response::stream(200, steps.collect()).header("content-type", "text/plain")
        }
        "/title" => html(&format!("<title>{}</title>", "word ".repeat(200_000))),
        _ => Response::new(200, gzip(b"packed well"))
            .header("content-type", "text/plain")
            .header("content-encoding", "gzip"),
    });
    let web = web(&[&server]);
    let at = |path: &str| read(&web, &format!("{}{path}", server.url())).unwrap();
    assert_eq!(at("/packed").text, "packed well");
    for path in ["/bomb", "/endless"] {
        let page = at(path);
        assert!(page.is_cut && page.text.len() == FetchLimits::default().body_bytes, "{path}: {}", page.text.len());
    }
    assert!(at("/title").title.unwrap().chars().count() <= 201);
    never.open();
}

#[test]
fn a_server_that_stalls_breaks_off_or_answers_otherwise_is_an_error_without_its_words() {
    let gate = Gate::default();
    let stalls = gate.clone();
    let server = HttpServer::start(move |request| match request.target.as_str() {
        "/stalled" => html("evil").stalled_at(&stalls),
        "/half" => Response::stream(200, vec![Step::Send(b"evil".to_vec()), Step::Wait(stalls.clone())]),
        "/cut" => html("evil words").cut_after(5),
        "/nothing" => Response::hang_up(),
        "/pdf" => Response::new(200, "%PDF-evil").header("content-type", "application/pdf; name=evil"),
        "/kind" => Response::new(200, "evil").header("content-type", "evil/evil"),
        "/packed" => html("evil").header("content-encoding", "evil"),
        "/nowhere" => Response::new(302, "evil"),
        _ => Response::new(404, "evil").header("evil", "evil"),
    });
    let quick = FetchLimits { timeout: Duration::from_millis(200), ..FetchLimits::default() };
    let refused = |path: &str, web: &Web| {
        let error = read(web, &format!("{}{path}", server.url())).unwrap_err();
        assert!(!error.to_string().contains("evil"), "{path}: {error}");
        error
    };
    for path in ["/stalled", "/half"] {
        let error = refused(path, &web(&[&server]).with_limits(quick));
        assert!(matches!(error, WebError::Unreachable(why) if why.contains("too long")), "{path}: {error:?}");
    }
    let web = web(&[&server]);
    for path in ["/cut", "/nothing"] {
        assert!(matches!(refused(path, &web), WebError::Unreachable(_)), "{path}");
    }
    for path in ["/pdf", "/kind", "/packed"] {
        assert!(matches!(refused(path, &web), WebError::Unreadable(_)), "{path}");
    }
    assert_eq!(refused("/nowhere", &web), WebError::Status(302));
    assert_eq!(refused("/else", &web), WebError::Status(404));
    gate.open();
}

const RESULTS: &str = r#"<div class="result web-result"><a class="result__a"
    href="//duckduckgo.com/l/?uddg=https%3A%2F%2Fexample.org%2F">Bread</a><a class="result__snippet">Flour &amp; water</a></div>"#;

#[test]
fn search_asks_the_engine_and_tells_a_refusal_from_no_results() {
    let server = HttpServer::start(|request| match request.target.as_str() {
        "/html/?q=bread+%26+butter" => html(RESULTS),
        "/html/?q=none" => html("<div class=no-results>No results.</div>"),
        "/html/?q=robot" => {
            Response::new(202, "<form id=challenge-form action=/anomaly.js>").header("content-type", "text/html")
        }
        _ => html("<p>New and improved!"),
    });
    let web = web(&[&server]).with_search_engine(Engine::default().with_base_url(&format!("{}/html/", server.url())));
    let found = now(web.search("bread & butter", &|_| None)).unwrap();
    let [hit] = found.hits.as_slice() else { panic!("{found:?}") };
    assert_eq!(
        (hit.title.as_str(), hit.url.as_str(), hit.snippet.as_str()),
        ("Bread", "https://example.org/", "Flour & water")
    );
    assert_eq!((found.engine, found.origin), ("DuckDuckGo", server.url()));
    assert!(now(web.search("none", &|_| None)).unwrap().hits.is_empty());
    assert!(matches!(now(web.search("robot", &|_| None)), Err(WebError::Unreachable(_))));
    assert!(matches!(now(web.search("changed", &|_| None)), Err(WebError::Unreadable(_))));
    // An engine elsewhere is behind the same guard.
    let ungranted = Web::default().with_search_engine(Engine::default().with_base_url("http://127.0.0.1:8080/"));
    assert!(matches!(now(ungranted.search("x", &|_| None)), Err(WebError::NotPublic { .. })));
}

#[test]
fn the_key_goes_to_the_engine_alone() {
    let elsewhere = HttpServer::start(|_| html("caught"));
    let away = elsewhere.url();
    let server = HttpServer::start(move |request| {
        if request.header("x-subscription-token") != Some("brave-key") {
            return Response::json(422, &json!({"type": "ErrorResponse"}));
        }
        match request.target.as_str() {
            "/search?q=away&count=10" => redirect(&away),
            "/search?q=bread&count=10" => Response::json(
                200,
                &json!({"type": "search", "web": {"results": [{"title": "A", "url": "https://example.org/", "description": "<strong>b</strong>"}]}}),
            ),
            _ => Response::new(500, ""),
        }
    });
    let with_key = |key: &str| {
        let engine = Engine::brave(Secret::new(key)).with_base_url(&format!("{}/search", server.url()));
        web(&[&server, &elsewhere]).with_search_engine(engine)
    };
    assert_eq!(now(with_key("brave-key").search("bread", &|_| None)).unwrap().hits[0].snippet, "b");
    assert!(matches!(now(with_key("other").search("bread", &|_| None)), Err(WebError::Setting(_))));
    assert!(matches!(now(with_key("brave-key").search("away", &|_| None)), Err(WebError::Redirect(_))));
    assert_eq!(elsewhere.connections(), 0);
    assert!(!format!("{:?}", with_key("brave-key")).contains("brave-key"));
}

/// What the tools see of everything else: nothing that they need.
fn shelter(dir: &Path) -> Rc<Shelter> {
    let confinement = Confinement { work_dir: dir.to_owned(), ..Confinement::default() };
    Rc::new(Shelter::from_confinement(confinement, "/nowhere".into()))
}

fn world(dir: &Path) -> World {
    World {
        cycle: CycleFacts {
            id: "20261121T140000Z-812".to_owned(),
            model: "offline".to_owned(),
            is_stand_in: false,
            assignment: None,
            taint: None,
            replies: 0,
        },
        clock: LocalClock { now: DateTime::UNIX_EPOCH, tz: reveille_base::zone::Tz::UTC },
        conversation: ChatSnapshot {
            chat: None,
            is_local: false,
            other_local_chats: Vec::new(),
            open_messages: Vec::new(),
            own_words: Vec::new(),
            exchanges: Vec::new(),
            attachments: Attachments::default(),
            undoable: Vec::new(),
            last_undoable: None,
            shown_tasks: Vec::new(),
        },
        memory: MemorySnapshot {
            documents: Documents::new(dir, Vec::new()),
            index: reveille_index::IndexPlace::default(),
            meaning: reveille_index::embed::Meaning::default(),
            skills: Vec::new(),
            reminders: Vec::new(),
        },
        means: Capabilities {
            about: reveille_tools::about::About::default(),
            autonomy: Autonomy::Full,
            rules: Rules::default(),
            shelter: shelter(dir),
            catalogue: Rc::default(),
        },
        unasked: UnaskedLimits {
            owner_chat: ChatRef::from_telegram(7),
            told_keys: BTreeSet::new(),
            told_today: 0,
            tell_per_day: 0,
            quiet_hours: None,
            unwoken: None,
        },
    }
}

#[test]
fn a_redirect_to_where_a_rule_speaks_against_it_is_told_and_not_followed() {
    let kept = HttpServer::start(|_| html("kept back"));
    let to = format!("{}/?from=here", kept.url());
    let led = HttpServer::start(move |request| match request.target.as_str() {
        "/away" => redirect(&to),
        "/here" => redirect("/page"),
        _ => html("a page"),
    });
    let dir = tempfile::tempdir().unwrap();
    let fetch = |url: String, rules: &str| {
        let mut world = world(dir.path());
        world.means.rules = Rules::parse(rules).unwrap();
        let mut exec = Exec::new(shelter(dir.path()), Rules::default()).with_web(web(&[&led, &kept]));
        let input = json!({ "url": url }).to_string();
        now(Registry::for_thinking_model().run("web_fetch", &input, &world, &mut exec)).unwrap()
    };
    let rule = |server: &HttpServer, decision: &str| {
        let host = format!("127.0.0.1:{}", port(server));
        format!("[[rule]]\nhost = {host:?}\ndecision = {decision:?}\nmatch = [\"http://{host}\"]\n")
    };
    for decision in ["deny", "ask"] {
        let done = fetch(format!("{}/away", led.url()), &rule(&kept, decision));
        let said =
            format!("{}/?from=here, and a redirect isn't followed there. Your rule in policy.toml, line 1", kept.url());
        assert!(done.is_failure && done.content.contains(&said), "{done:?}");
        // Where it leads is what a server has said.
        assert_eq!((done.taint, done.receipt), (Some(led.url()), None));
    }
    assert_eq!(kept.connections(), 0);
    // The controls: what nobody speaks against, and what stays with the host that was asked about, is followed.
    assert!(fetch(format!("{}/away", led.url()), &rule(&kept, "allow")).content.contains("kept back"));
    assert!(fetch(format!("{}/here", led.url()), &rule(&led, "ask")).content.contains("a page"));
    assert!(fetch(format!("{}/here", led.url()), &rule(&led, "deny")).is_failure);
}

#[test]
fn the_tools_say_what_was_read_and_whose_words_it_is() {
    let server = HttpServer::start(|request| match request.target.as_str() {
        "/long?private=1" => html(&(0..5_000).map(|n| format!("<p>paragraph {n}")).collect::<String>()),
        "/moved" => redirect("/short"),
        "/short" => html("<title>A title</title><p>Words"),
        "/empty" => html("<script>app()</script>"),
        "/html/?q=bread" => html(RESULTS),
        _ => Response::new(404, "evil"),
    });
    let dir = tempfile::tempdir().unwrap();
    let engine = Engine::default().with_base_url(&format!("{}/html/", server.url()));
    let mut exec =
        Exec::new(shelter(dir.path()), Rules::default()).with_web(web(&[&server]).with_search_engine(engine));
    let (registry, world) = (Registry::for_thinking_model(), world(dir.path()));
    let mut call =
        |name: &str, input: serde_json::Value| now(registry.run(name, &input.to_string(), &world, &mut exec));
    let mut fetch = |path: &str| call("web_fetch", json!({"url": format!("{}{path}", server.url())}));

    let short = fetch("/moved").unwrap();
    assert_eq!(short.content, format!("# A title\n{}/short\n\nWords", server.url()));
    assert_eq!(short.receipt, Some(format!("Read {}/moved", server.url())));
    assert_eq!((short.taint, short.changes), (Some(server.url()), Vec::new()));
    assert!(fetch("/empty").unwrap().content.ends_with("(There is no text on this page.)"));
    assert_eq!(fetch("/none").unwrap_err().why, "Nothing was read. The server answers 404 (Not Found).");

    let long = fetch("/long?private=1").unwrap();
    assert_eq!(long.receipt, Some(format!("Read {}/long", server.url())));
    let kept = std::fs::read_to_string(dir.path().join("looks/outputs/0001-web_fetch.txt")).unwrap();
    assert!(long.content.len() < kept.len() && kept.ends_with("paragraph 4999"));
    assert!(long.content.contains("outputs/0001-web_fetch.txt; read on there from line"), "{}", long.content);

    let found = call("web_search", json!({"query": " bread "})).unwrap();
    assert_eq!(found.content, "Found by DuckDuckGo:\n\n1. Bread\n   https://example.org/\n   Flour & water");
    assert_eq!((found.receipt.as_deref(), found.taint), (Some("Searched the web for \"bread\""), Some(server.url())));
    assert!(call("web_search", json!({"query": "evil"})).unwrap_err().why.starts_with("Nothing was found out."));
    for (name, wrong) in [
        ("web_search", json!({"query": " "})),
        ("web_search", json!({"query": "x".repeat(401)})),
        ("web_fetch", json!({"url": "example.org"})),
        ("web_fetch", json!({"url": "http://127.0.0.1/"})),
        ("web_fetch", json!({"url": "https://example.org/", "method": "POST"})),
    ] {
        assert!(call(name, wrong.clone()).is_err(), "{name} {wrong}");
    }
}
