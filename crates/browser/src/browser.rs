//! The browser as its tool uses it: one verb after the other.

use std::{
    collections::{HashMap, HashSet},
    path::PathBuf,
    sync::Arc,
    time::Duration,
};

use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::{
    act::picture::TakenPicture,
    cdp::{CallError, CdpClient},
    error::{BrowserError, Fault},
    events::{FrameState, TabState},
    fields::MessageFields as _,
    gateway::{Gateway, HostGrants},
    launch::{self, BrowserProcess, LaunchError, ProcessOptions, WindowKind},
    look::{LastLook, clean::clean_line},
    mask::SecretMask,
    references::{NodeAddress, References},
    shared::{OWN_CALL, SharedState, follow_events},
    verb::{BrowserOutcome, TabAct, Verb},
};

/// Maximum length of a dialog's message, in characters.
pub(crate) const MAX_DIALOG_CHARS: usize = 500;

/// How a browser is started and what it may do.
#[derive(Debug, Clone)]
pub struct BrowserOptions {
    /// The program; found by its usual names if `None`.
    pub program: Option<PathBuf>,
    /// The folder of the profile, created if missing. Only this browser uses it.
    pub profile: PathBuf,
    /// The folder for downloads.
    pub downloads: PathBuf,
    /// The folders whose files may be uploaded.
    pub uploads: Vec<PathBuf>,
    /// Places outside the public internet that may be opened.
    pub grants: HostGrants,
    /// The form of its windows.
    pub window: WindowKind,
    /// How long it waits.
    pub patience: BrowserPatience,
    /// Maximum size of a download, in bytes. A larger one is cancelled.
    pub max_download_bytes: u64,
}

/// How long a browser waits before it gives up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BrowserPatience {
    /// For an answer of a page. A page that gives none hangs and is ended.
    pub answer: Duration,
    /// For a page to load. What is there by then is shown.
    pub load: Duration,
    /// For a state that a verb waits for.
    pub state: Duration,
    /// For a download.
    pub download: Duration,
}

impl Default for BrowserPatience {
    fn default() -> Self {
        Self {
            answer: Duration::from_secs(10),
            load: Duration::from_secs(20),
            state: Duration::from_secs(20),
            download: Duration::from_secs(120),
        }
    }
}

/// A running browser of our own. Dropping it ends all its processes.
pub struct Browser {
    pub(crate) options: BrowserOptions,
    pub(crate) client: CdpClient,
    pub(crate) shared: Arc<SharedState>,
    pub(crate) references: References,
    /// The number of the tab that verbs act on.
    pub(crate) current: u32,
    pub(crate) last_looks: HashMap<u32, LastLook>,
    pub(crate) pictures: Vec<TakenPicture>,
    pub(crate) last_picture: u32,
    /// Fields that were once secret, which stay so.
    pub(crate) secrets: HashSet<NodeAddress>,
    /// What was typed into secret fields. It is masked wherever a page repeats it.
    pub(crate) mask: SecretMask,
    /// Links that pages have shown.
    pub(crate) seen_links: HashSet<String>,
    worlds: HashMap<World, i64>,
    process: Option<BrowserProcess>,
    following: JoinHandle<()>,
    _gateway: Gateway,
}

/// The world of our scripts in one document.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct World {
    frame: String,
    loader: String,
}

impl std::fmt::Debug for Browser {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Browser").field("current", &self.current).finish_non_exhaustive()
    }
}

impl Browser {
    /// Starts a browser with one empty tab.
    ///
    /// # Errors
    /// No browser is installed, the profile is in use, or the process failed.
    pub async fn start(options: BrowserOptions) -> Result<Self, LaunchError> {
        let program = launch::find_browser(options.program.as_deref())?;
        for path in [&options.profile, &options.downloads] {
            reveille_base::file::create_private_dirs(path)
                .map_err(|source| LaunchError::Folder { path: path.clone(), source })?;
        }
        let protocol = |error: String| LaunchError::Protocol(error);
        let gateway =
            Gateway::listen(options.grants.clone()).await.map_err(|error| LaunchError::Protocol(error.to_string()))?;
        let launched = launch::launch_process(&ProcessOptions {
            program: &program,
            profile: &options.profile,
            window: options.window,
            proxy_port: gateway.port(),
        })?;
        let (client, shared) = (launched.client, Arc::new(SharedState::new(options.max_download_bytes)));
        let following = tokio::spawn(follow_events(client.clone(), Arc::clone(&shared), launched.events));
        let mut browser = Self {
            client,
            shared,
            references: References::default(),
            current: 0,
            last_looks: HashMap::new(),
            pictures: Vec::new(),
            last_picture: 0,
            secrets: HashSet::new(),
            mask: SecretMask::default(),
            seen_links: HashSet::new(),
            worlds: HashMap::new(),
            process: Some(launched.process),
            following,
            _gateway: gateway,
            options,
        };
        browser.prepare().await.map_err(|error| protocol(format!("{error:?}")))?;
        Ok(browser)
    }

    async fn prepare(&mut self) -> Result<(), Fault> {
        let downloads = self.options.downloads.display().to_string();
        let behavior = json!({"behavior": "allowAndName", "downloadPath": downloads, "eventsEnabled": true});
        // The first call waits for the start of the process.
        self.client.call("", "Browser.getVersion", json!({}), self.options.patience.load).await?;
        self.call_browser("Browser.setDownloadBehavior", behavior).await?;
        self.call_browser("Target.setDiscoverTargets", json!({"discover": true})).await?;
        let attach = json!({"autoAttach": true, "waitForDebuggerOnStart": true, "flatten": true});
        self.call_browser("Target.setAutoAttach", attach).await?;
        let first =
            |state: &mut crate::events::BrowserState| state.tabs.iter().find(|tab| tab.is_ready).map(|tab| tab.number);
        match self.shared.wait_for(self.options.patience.answer, first).await {
            Some(tab) => self.current = tab,
            None => self.current = self.open_tab().await?,
        }
        Ok(())
    }

    /// Carries out one verb.
    ///
    /// # Errors
    /// Says what the caller can do about it.
    pub async fn run(&mut self, verb: &Verb) -> Result<BrowserOutcome, BrowserError> {
        if self.shared.with(|state| state.is_gone) {
            return Err(BrowserError::StartAgain);
        }
        if self.shared.with(|state| state.tab(self.current).is_some_and(|tab| tab.is_crashed)) {
            return Err(self.replace_page("The page had crashed.").await);
        }
        let is_beside = matches!(
            verb,
            Verb::Dialog { .. } | Verb::Url | Verb::Tabs(TabAct::List | TabAct::Switch { .. } | TabAct::Close { .. })
        );
        if let Some(dialog) = self.open_dialog().filter(|_| !is_beside) {
            let message = clean_line(&dialog.message, MAX_DIALOG_CHARS);
            return Err(self.mask.mask_error(BrowserError::AnswerDialog { kind: dialog.kind, message }));
        }
        let result = match Box::pin(self.perform(verb)).await {
            Ok(outcome) => Ok(outcome),
            Err(Fault::Told(error)) => Err(error),
            Err(Fault::Call(error)) => self.explain(error).await,
        };
        result.map(|outcome| self.mask.mask_outcome(outcome)).map_err(|error| self.mask.mask_error(error))
    }

    /// Turns a failed call into what the caller can do.
    async fn explain(&mut self, error: CallError) -> Result<BrowserOutcome, BrowserError> {
        let is_crashed = self.shared.with(|state| state.tab(self.current).is_some_and(|tab| tab.is_crashed));
        match error {
            _ if self.shared.with(|state| state.is_gone) => Err(BrowserError::StartAgain),
            _ if is_crashed => Err(self.replace_page("The page was ended.").await),
            CallError::Dialog => Ok(self.report_dialog()),
            CallError::Deadline => {
                let seconds = self.options.patience.answer.as_secs_f64();
                Err(self.replace_page(&format!("The page did not react for {seconds} seconds and was ended.")).await)
            }
            CallError::Detached => {
                if self.ensure_tab().await.is_err() {
                    return Err(BrowserError::StartAgain);
                }
                Err(BrowserError::TryOnce("the page changed meanwhile; look again.".to_owned()))
            }
            CallError::Closed => Err(BrowserError::StartAgain),
            CallError::Refused(why) => Err(BrowserError::TryOnce(why)),
        }
    }

    /// Ends a page that hangs or has crashed, and puts an empty one in its place.
    async fn replace_page(&mut self, why: &str) -> BrowserError {
        let notes = self.take_notes();
        let tab = self.shared.with(|state| state.tab(self.current).cloned());
        let tab_reason = tab.as_ref().and_then(|tab| tab.end_reason.clone());
        if let Some(tab) = tab {
            if !tab.is_crashed {
                self.client.call(&tab.session, "Page.crash", json!({}), Duration::from_secs(1)).await.ok();
                let crashed = |state: &mut crate::events::BrowserState| {
                    state.tab(tab.number).is_none_or(|tab| tab.is_crashed).then_some(())
                };
                self.shared.wait_for(Duration::from_secs(3), crashed).await;
            }
            self.call_browser("Target.closeTarget", json!({"targetId": tab.target})).await.ok();
            let number = tab.number;
            let closed = |state: &mut crate::events::BrowserState| state.tab(number).is_none().then_some(());
            self.shared.wait_for(OWN_CALL, closed).await;
        }
        let why = tab_reason.as_deref().unwrap_or(why);
        let reports: String = notes.iter().map(|note| format!(" {note}")).collect();
        match self.open_tab().await {
            Ok(number) => {
                self.current = number;
                BrowserError::OpenAgain(format!("{why}{reports} An empty tab, number {number}, takes its place."))
            }
            Err(_) => BrowserError::StartAgain,
        }
    }

    /// Closes the browser, so that it keeps its cookies.
    pub async fn end(mut self) {
        if let Some(process) = self.process.take() {
            process.close(&self.client).await;
        }
    }

    pub(crate) fn take_notes(&self) -> Vec<String> {
        self.shared.with(|state| std::mem::take(&mut state.notes))
    }

    pub(crate) async fn call_browser(&self, method: &str, params: Value) -> Result<Value, CallError> {
        self.client.call("", method, params, OWN_CALL).await
    }

    /// Calls a method of a page. A dialog that opens meanwhile ends the wait, because it holds the page.
    pub(crate) async fn call_page(&self, session: &str, method: &str, params: Value) -> Result<Value, CallError> {
        let current = self.current;
        let held = self.shared.wait_for(Duration::MAX, |state| {
            state.tab(current).is_some_and(|tab| tab.dialog.is_some() || tab.is_crashed).then_some(())
        });
        tokio::select! {
            biased;
            result = self.client.call(session, method, params, self.options.patience.answer) => result,
            _ = held => Err(CallError::Dialog),
        }
    }

    /// The tab that verbs act on. If a page closed it, another one takes its place.
    pub(crate) async fn ensure_tab(&mut self) -> Result<TabState, Fault> {
        if let Some(tab) = self.shared.with(|state| state.tab(self.current).cloned()) {
            return Ok(tab);
        }
        let other = self.shared.with(|state| state.tabs.last().map(|tab| tab.number));
        self.current = match other {
            Some(number) => number,
            None => self.open_tab().await?,
        };
        self.shared.with(|state| state.tab(self.current).cloned()).ok_or(Fault::Call(CallError::Detached))
    }

    pub(crate) fn frame(&self, id: &str) -> Option<FrameState> {
        self.shared.with(|state| state.frames.get(id).cloned())
    }

    /// Calls a function in a frame's document, in our own world.
    pub(crate) async fn call_in_frame(&mut self, id: &str, function: &str, args: &[Value]) -> Result<Value, Fault> {
        let frame = self.frame(id).ok_or(CallError::Detached)?;
        let world = self.world_of(id, &frame).await?;
        let args: Vec<Value> = args.iter().map(|value| json!({"value": value})).collect();
        let call = json!({"functionDeclaration": function, "executionContextId": world, "arguments": args,
            "returnByValue": true, "awaitPromise": true, "userGesture": false});
        let answer = self.call_page(&frame.session, "Runtime.callFunctionOn", call).await?;
        Ok(unpack_result(&answer)?)
    }

    /// Calls a function on a node, in our own world. `Detached` if the node is gone.
    pub(crate) async fn call_on_node(
        &mut self,
        address: &NodeAddress,
        function: &str,
        args: &[Value],
    ) -> Result<Value, Fault> {
        let frame = self.frame(&address.frame).filter(|frame| frame.loader == address.loader);
        let frame = frame.ok_or(CallError::Detached)?;
        let world = self.world_of(&address.frame, &frame).await?;
        let resolve = json!({"backendNodeId": address.node, "executionContextId": world});
        let found = match self.call_page(&address.session, "DOM.resolveNode", resolve).await {
            Err(CallError::Refused(_)) => return Err(CallError::Detached.into()),
            found => found?,
        };
        let object = found.at("object").at("objectId").clone();
        let args: Vec<Value> = args.iter().map(|value| json!({"value": value})).collect();
        let call = json!({"functionDeclaration": function, "objectId": object, "arguments": args,
            "returnByValue": true, "awaitPromise": true});
        let answer = self.call_page(&address.session, "Runtime.callFunctionOn", call).await?;
        self.call_page(&address.session, "Runtime.releaseObject", json!({"objectId": object})).await.ok();
        Ok(unpack_result(&answer)?)
    }

    async fn world_of(&mut self, id: &str, frame: &FrameState) -> Result<i64, CallError> {
        let key = World { frame: id.to_owned(), loader: frame.loader.clone() };
        if let Some(world) = self.worlds.get(&key) {
            return Ok(*world);
        }
        let create = json!({"frameId": id, "worldName": "reveille"});
        let answer = self.call_page(&frame.session, "Page.createIsolatedWorld", create).await?;
        let world = answer.at("executionContextId").as_i64().ok_or(CallError::Detached)?;
        self.worlds.retain(|known, _| known.frame != id);
        self.worlds.insert(key, world);
        Ok(world)
    }
}

/// The value that a function returned. A context that is gone counts as detached.
fn unpack_result(answer: &Value) -> Result<Value, CallError> {
    if answer.get("exceptionDetails").is_some() {
        let text =
            answer.at("exceptionDetails").at("exception").at("description").as_str().unwrap_or("a script failed");
        return Err(CallError::Refused(text.lines().next().unwrap_or_default().to_owned()));
    }
    Ok(answer.at("result").at("value").clone())
}

impl Drop for Browser {
    fn drop(&mut self) {
        self.following.abort();
    }
}
