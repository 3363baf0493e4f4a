//! The browser against real Chromium and a small server of pages.

mod acting;
mod endings;
mod hostile;
mod looking;
mod miniwob;
mod site;

use std::{path::PathBuf, time::Duration};

use tempfile::TempDir;

use self::site::Site;
use crate::{
    ActPlace, Browser, BrowserError, BrowserOptions, BrowserOutcome, BrowserPatience, HostGrants, Verb, WindowKind,
};

/// The program that the tests use; `None` if there is none. One that is promised must exist.
#[expect(clippy::disallowed_methods, reason = "names the browser for tests")]
fn program() -> Option<PathBuf> {
    let promised = std::env::var_os("REVEILLE_TEST_CHROMIUM").filter(|program| !program.is_empty()).map(PathBuf::from);
    let program = promised.clone().unwrap_or_else(|| "/usr/bin/chromium".into());
    if !program.exists() {
        assert!(promised.is_none(), "{} isn't there, which REVEILLE_TEST_CHROMIUM names", program.display());
        eprintln!("NOT RUN: the browser: {} isn't installed, and REVEILLE_TEST_CHROMIUM names none", program.display());
        return None;
    }
    Some(program)
}

/// A browser with a site of pages.
struct World {
    browser: Browser,
    site: Site,
    folder: TempDir,
}

fn options(program: PathBuf, folder: &TempDir, site: &Site) -> BrowserOptions {
    BrowserOptions {
        program: Some(program),
        profile: folder.path().join("profile"),
        downloads: folder.path().join("downloads"),
        uploads: vec![folder.path().join("uploads")],
        grants: HostGrants::parse([site.place("127.0.0.1").as_str(), site.place("localhost").as_str()]),
        window: WindowKind::Headless,
        patience: BrowserPatience {
            answer: Duration::from_secs(20),
            load: Duration::from_secs(30),
            state: Duration::from_secs(30),
            download: Duration::from_secs(60),
        },
        max_download_bytes: 10 << 20,
    }
}

impl World {
    async fn start(pages: &[(&'static str, &str)]) -> Option<Self> {
        Self::start_with(pages, |_| ()).await
    }

    async fn start_with(pages: &[(&'static str, &str)], change: impl FnOnce(&mut BrowserOptions)) -> Option<Self> {
        let program = program()?;
        let (site, folder) = (Site::serve(pages), TempDir::new().unwrap());
        std::fs::create_dir(folder.path().join("uploads")).unwrap();
        let mut options = options(program, &folder, &site);
        change(&mut options);
        let browser = Browser::start(options).await.unwrap();
        Some(Self { browser, site, folder })
    }

    async fn run(&mut self, verb: &str) -> Result<BrowserOutcome, BrowserError> {
        let verb: Verb = serde_json::from_str(verb).unwrap_or_else(|error| panic!("{verb}: {error}"));
        self.browser.run(&verb).await
    }

    /// Runs a verb and returns its report.
    #[track_caller]
    fn done(&mut self, verb: &str) -> impl Future<Output = String> {
        let caller = std::panic::Location::caller();
        async move { self.run(verb).await.unwrap_or_else(|error| panic!("{caller}: {verb}: {error}")).text }
    }

    async fn open(&mut self, path: &str) -> String {
        let url = self.site.url("127.0.0.1", path);
        self.done(&format!(r#"{{"verb": "navigate", "url": "{url}"}}"#)).await
    }

    /// Runs a verb on the element that a line of the page names. `REF` in the verb stands for it.
    async fn on(&mut self, line: &str, verb: &str) -> Result<BrowserOutcome, BrowserError> {
        let reference = self.reference(line).await;
        self.run(&verb.replace("REF", &reference)).await
    }

    async fn reference(&mut self, line: &str) -> String {
        let page = self.done(r#"{"verb": "look", "whole": true}"#).await;
        let found = page.lines().find(|candidate| candidate.contains('[') && candidate.contains(line));
        let found = found.unwrap_or_else(|| panic!("{line} isn't on the page:\n{page}"));
        found.trim_start().trim_start_matches('[').split_once(']').unwrap().0.to_owned()
    }

    async fn click(&mut self, line: &str) -> Result<BrowserOutcome, BrowserError> {
        self.on(line, r#"{"verb": "click", "ref": "REF"}"#).await
    }

    fn place(reference: &str) -> ActPlace {
        ActPlace { reference: Some(reference.to_owned()), ..ActPlace::default() }
    }
}
