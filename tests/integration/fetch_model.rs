//! Tests of `scripts/fetch-model` with a hub that cuts downloads off: the received part is kept, the next run continues from its end, and
//! only the right file gets the model's name. A small file replaces the model.

use std::{
    fs,
    path::Path,
    sync::{Arc, Mutex},
};

use crate::support::{
    env::{ProgramOutput, TestEnv},
    http::{HttpServer, Request, Response, lock},
};

/// The model to fetch, which has no other source than the hub.
const NAME: &str = "small.en";
/// The model's checksum in the script.
const PUBLISHED: &str = "c6138d6d58ecc8322097e0f987c32f1be8bb0a18532a3f88f734d1bbf9c41e5d";

fn model() -> Vec<u8> {
    (0..100_000_u32).map(|n| (n % 251) as u8).collect()
}

/// The hub's behaviour at the next download.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Hub {
    /// Sends the requested bytes.
    Good,
    /// Closes the connection after this number of bytes.
    Cut(usize),
    /// Sends another file of the same length.
    Wrong,
}

/// A hub with its next behaviour, and the requests so far.
struct Stage {
    env: TestEnv,
    _server: HttpServer,
    next: Arc<Mutex<Hub>>,
    asked: Arc<Mutex<Vec<Request>>>,
}

impl Stage {
    fn new() -> Self {
        let mut env = TestEnv::new();
        let (next, asked) = (Arc::new(Mutex::new(Hub::Good)), Arc::new(Mutex::new(Vec::new())));
        let (does, notes) = (Arc::clone(&next), Arc::clone(&asked));
        let server = HttpServer::start(move |request| {
            lock(&notes).push(request.clone());
            answer(request, *lock(&does))
        });
        env.set("HF_ENDPOINT", &format!("{}/", server.url()));
        // The real script, except for the checksum, which is that of the replacement file.
        fs::create_dir(env.path("scripts")).unwrap();
        let stand_in = env.path("stand-in");
        fs::write(&stand_in, model()).unwrap();
        let sum = env.run(
            "sh",
            &["-c", "{ sha256sum \"$0\" || shasum -a 256 \"$0\"; } | cut -c 1-64", &stand_in.display().to_string()],
        );
        for name in ["fetch-model", "lib.sh"] {
            let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts").join(name);
            let text = fs::read_to_string(script).unwrap().replace(PUBLISHED, sum.stdout.trim());
            fs::write(env.path("scripts").join(name), text).unwrap();
        }
        Self { env, _server: server, next, asked }
    }

    fn fetch(&self, hub: Hub) -> ProgramOutput {
        *lock(&self.next) = hub;
        let (script, dir) = (self.env.path("scripts/fetch-model"), self.env.path("models"));
        self.env.run("sh", &[&script.display().to_string(), NAME, &dir.display().to_string()])
    }

    fn kept(&self, ending: &str) -> Option<Vec<u8>> {
        fs::read(self.env.path("models").join(format!("ggml-{NAME}.bin{ending}"))).ok()
    }

    /// The byte range of each request.
    fn ranges(&self) -> Vec<Option<String>> {
        let (asked, path) = (lock(&self.asked), format!("/ggerganov/whisper.cpp/resolve/main/ggml-{NAME}.bin"));
        assert!(asked.iter().all(|request| request.target == path));
        asked.iter().map(|request| request.header("range").map(str::to_owned)).collect()
    }
}

/// Serves the file, or the requested end of it.
fn answer(request: &Request, hub: Hub) -> Response {
    let bytes = if hub == Hub::Wrong { vec![7; model().len()] } else { model() };
    let begin = request.header("range").map(|range| {
        range.strip_prefix("bytes=").and_then(|range| range.strip_suffix('-')).unwrap().parse::<usize>().unwrap()
    });
    let response = match begin {
        None => Response::new(200, bytes),
        Some(at) => {
            let range = format!("bytes {at}-{}/{}", bytes.len() - 1, bytes.len());
            Response::new(206, &bytes[at..]).header("content-range", &range)
        }
    };
    if let Hub::Cut(after) = hub { response.cut_after(after) } else { response }
}

#[test]
fn an_interrupted_download_is_continued_and_checked_as_a_whole() {
    let stage = Stage::new();
    let ran = stage.fetch(Hub::Cut(30_000));
    assert_eq!((ran.code, ran.stdout.as_str()), (1, ""), "{ran:#?}");
    ran.assert_tells("No model was put in place");
    assert_eq!((stage.kept(""), stage.kept(".part")), (None, Some(model()[..30_000].to_vec())));

    let ran = stage.fetch(Hub::Good).ok();
    let path = stage.env.path("models").canonicalize().unwrap().join(format!("ggml-{NAME}.bin"));
    assert_eq!(ran.stdout, format!("{}\n", path.display()));
    assert_eq!((stage.kept(""), stage.kept(".part")), (Some(model()), None));
    assert_eq!(stage.ranges(), [None, Some("bytes=30000-".to_owned())]);

    // An existing file is checked and used.
    assert_eq!(stage.fetch(Hub::Wrong).ok().stdout, ran.stdout);
    assert_eq!(stage.ranges().len(), 2);
}

#[test]
fn a_file_that_is_not_the_model_is_deleted() {
    let stage = Stage::new();
    // The beginning comes from the right file, the rest from another one.
    stage.fetch(Hub::Cut(30_000));
    let ran = stage.fetch(Hub::Wrong);
    assert_eq!((ran.code, ran.stdout.as_str()), (1, ""), "{ran:#?}");
    ran.assert_tells("isn't small.en");
    assert_eq!((stage.kept(""), stage.kept(".part")), (None, None));
    // No part is left from which a download could continue.
    stage.fetch(Hub::Good).ok();
    assert_eq!(stage.ranges().last(), Some(&None));
    // A damaged model is fetched again.
    fs::write(stage.env.path("models").join(format!("ggml-{NAME}.bin")), "damaged").unwrap();
    stage.fetch(Hub::Good).ok();
    assert_eq!(stage.kept(""), Some(model()));
}
