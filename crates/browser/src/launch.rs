//! Starting a browser of our own: its program, its flags, its profile, and its end.

use std::{
    fs::{File, TryLockError},
    io,
    path::{Path, PathBuf},
    time::Duration,
};

use reveille_base::{
    file::create_private_dirs,
    process::{Leashed, Pipes, ProcessError, Spec, find_program},
};
use tokio::sync::mpsc;

use crate::cdp::{CdpClient, ProtocolEvent};

/// Names of browsers on `PATH`, the most common first.
const PROGRAMS: [&str; 9] = [
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
    "chrome",
    "microsoft-edge",
    "microsoft-edge-stable",
    "brave-browser",
    "brave",
];
/// Browsers on a Mac.
const MAC_PROGRAMS: [&str; 4] = [
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
    "/Applications/Microsoft Edge.app/Contents/MacOS/Microsoft Edge",
    "/Applications/Brave Browser.app/Contents/MacOS/Brave Browser",
];
/// Variables that a browser inherits. `DISPLAY` and its like serve a visible window.
const INHERITED: [&str; 8] =
    ["PATH", "LANG", "LC_ALL", "TZ", "DISPLAY", "WAYLAND_DISPLAY", "XAUTHORITY", "XDG_RUNTIME_DIR"];
/// The browser reads from descriptor 3 and writes to descriptor 4.
const REDIRECT: &str = "exec \"$@\" 3<&0 4>&1 </dev/null >/dev/null 2>&1";
/// How long a browser may take to store its cookies when it is asked to close.
const CLOSING: Duration = Duration::from_secs(3);
/// Size of the page in a window, in pixels.
pub(crate) const WINDOW: Size = Size { width: 1280, height: 800 };

/// A width and a height, in CSS pixels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Size {
    pub(crate) width: u32,
    pub(crate) height: u32,
}

/// The form of the browser's windows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum WindowKind {
    /// No window: pages are drawn in memory.
    #[default]
    Headless,
    /// A window on the screen, for signing in by hand.
    Visible,
}

/// Why a browser didn't start.
#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    /// No browser is installed.
    #[error("No browser was found. Install Chromium, Chrome, Edge or Brave, or name one with REVEILLE_BROWSER.")]
    NoBrowser,
    /// The named program doesn't exist.
    #[error("{0} isn't a program that can be started.")]
    NoProgram(PathBuf),
    /// Another process uses the profile.
    #[error("The browser's profile {0} is in use by another process.")]
    ProfileInUse(PathBuf),
    /// A folder can't be used.
    #[error("{path}: {source}")]
    Folder {
        /// The folder.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The process couldn't be started.
    #[error(transparent)]
    Process(#[from] ProcessError),
    /// The browser started, but did not speak the protocol.
    #[error("The browser did not start properly: {0}")]
    Protocol(String),
}

/// Finds a browser: the named one, or the first that is installed.
///
/// # Errors
/// The named one doesn't exist, or none is installed.
pub fn find_browser(named: Option<&Path>) -> Result<PathBuf, LaunchError> {
    if let Some(named) = named {
        return find_program(named).ok_or_else(|| LaunchError::NoProgram(named.to_owned()));
    }
    let candidates = MAC_PROGRAMS.iter().filter(|_| cfg!(target_os = "macos")).chain(&PROGRAMS);
    candidates.copied().find_map(|name| find_program(Path::new(name))).ok_or(LaunchError::NoBrowser)
}

/// The arguments of the process.
pub(crate) struct ProcessOptions<'a> {
    pub(crate) program: &'a Path,
    pub(crate) profile: &'a Path,
    pub(crate) window: WindowKind,
    /// The loopback port of the proxy that all requests go through.
    pub(crate) proxy_port: u16,
}

/// A running browser. Dropping it kills all its processes.
pub(crate) struct BrowserProcess {
    leashed: Option<Leashed>,
    profile: PathBuf,
    /// Held while the profile is in use. The system releases it if we die.
    _lock: File,
}

/// A started browser with its connection.
pub(crate) struct Launched {
    pub(crate) process: BrowserProcess,
    pub(crate) client: CdpClient,
    pub(crate) events: mpsc::UnboundedReceiver<ProtocolEvent>,
}

/// Starts a browser.
pub(crate) fn launch_process(options: &ProcessOptions<'_>) -> Result<Launched, LaunchError> {
    let folder = |source| LaunchError::Folder { path: options.profile.to_owned(), source };
    let temporary = options.profile.join("tmp");
    create_private_dirs(&temporary).map_err(folder)?;
    let lock = lock_profile(options.profile)?;
    remove_leftovers(options.profile);
    create_private_dirs(&temporary).map_err(folder)?;
    let spec = Spec::new("/bin/sh")
        .args(["-c", REDIRECT, "sh"])
        .args([options.program.as_os_str()])
        .args(list_flags(options))
        .only_inheriting(&INHERITED)
        .env("HOME", options.profile)
        .env("TMPDIR", &temporary);
    let (leashed, Pipes { stdin, stdout, .. }) = Leashed::start_with_pipes(&spec)?;
    let process = BrowserProcess { leashed: Some(leashed), profile: options.profile.to_owned(), _lock: lock };
    let (client, events) =
        CdpClient::connect(stdin, stdout).map_err(|error| LaunchError::Protocol(error.to_string()))?;
    Ok(Launched { process, client, events })
}

fn list_flags(options: &ProcessOptions<'_>) -> Vec<String> {
    let port = options.proxy_port;
    let mut flags: Vec<String> = [
        "--remote-debugging-pipe",
        "--no-first-run",
        "--no-default-browser-check",
        "--disable-gpu",
        "--disable-quic",
        "--disable-dev-shm-usage",
        "--disable-background-networking",
        "--disable-background-timer-throttling",
        "--disable-backgrounding-occluded-windows",
        "--disable-renderer-backgrounding",
        "--disable-breakpad",
        "--disable-crash-reporter",
        "--disable-component-update",
        "--disable-default-apps",
        "--disable-extensions",
        "--disable-sync",
        "--disable-features=Translate,MediaRouter,OptimizationHints,DialMediaRouteProvider,AutofillServerCommunication",
        "--deny-permission-prompts",
        "--no-pings",
        "--password-store=basic",
        "--use-mock-keychain",
        "--metrics-recording-only",
        "--mute-audio",
        "--force-color-profile=srgb",
        // WebRTC would send packets past the proxy.
        "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
        "--webrtc-ip-handling-policy=disable_non_proxied_udp",
        // Loopback goes through the proxy too.
        "--proxy-bypass-list=<-loopback>",
        // Names are only looked up by the proxy.
        "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1",
    ]
    .map(str::to_owned)
    .to_vec();
    flags.push(format!("--proxy-server=http://127.0.0.1:{port}"));
    flags.push(format!("--user-data-dir={}", options.profile.display()));
    flags.push(format!("--window-size={},{}", WINDOW.width, WINDOW.height));
    if options.window == WindowKind::Headless {
        flags.push("--headless=new".to_owned());
    }
    // Chromium's own sandbox refuses to run as root.
    if rustix::process::geteuid().is_root() {
        flags.push("--no-sandbox".to_owned());
    }
    flags.push("about:blank".to_owned());
    flags
}

fn lock_profile(profile: &Path) -> Result<File, LaunchError> {
    let path = profile.join("in-use");
    let lock = File::create(&path).map_err(|source| LaunchError::Folder { path: path.clone(), source })?;
    match lock.try_lock() {
        Ok(()) => Ok(lock),
        Err(TryLockError::WouldBlock) => Err(LaunchError::ProfileInUse(profile.to_owned())),
        Err(TryLockError::Error(source)) => Err(LaunchError::Folder { path, source }),
    }
}

/// Removes what a killed browser leaves in its profile. Nobody else uses the profile: we hold its lock.
fn remove_leftovers(profile: &Path) {
    for name in ["SingletonLock", "SingletonCookie", "SingletonSocket"] {
        std::fs::remove_file(profile.join(name)).ok();
    }
    std::fs::remove_dir_all(profile.join("tmp")).ok();
}

impl BrowserProcess {
    /// Asks the browser to close, so that it stores its cookies, and then makes sure that it is gone.
    pub(crate) async fn close(mut self, client: &CdpClient) {
        client.call("", "Browser.close", serde_json::json!({}), CLOSING).await.ok();
        let deadline = tokio::time::Instant::now() + CLOSING;
        while self.is_running() && tokio::time::Instant::now() < deadline {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    fn is_running(&mut self) -> bool {
        self.leashed.as_mut().is_some_and(|leashed| matches!(leashed.try_wait(), Ok(None)))
    }
}

impl Drop for BrowserProcess {
    fn drop(&mut self) {
        // Kills the group and waits for its leader.
        drop(self.leashed.take());
        remove_leftovers(&self.profile);
    }
}
