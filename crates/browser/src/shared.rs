//! The state that the connection's events keep up to date, and waiting for a change of it.

use std::{sync::Mutex, time::Duration};

use serde_json::{Value, json};
use tokio::sync::{mpsc, watch};

use crate::{
    cdp::{CallError, CdpClient, ProtocolEvent, lock},
    events::{BrowserState, Reaction},
    fields::MessageFields as _,
};

/// Deadline of calls that the browser itself answers.
pub(crate) const OWN_CALL: Duration = Duration::from_secs(10);

/// The state of a browser, shared with the task that follows its events.
pub(crate) struct SharedState {
    state: Mutex<BrowserState>,
    version: watch::Sender<u64>,
}

impl SharedState {
    pub(crate) fn new(max_download_bytes: u64) -> Self {
        let mut state = BrowserState::default();
        state.max_download_bytes = max_download_bytes;
        Self { state: Mutex::new(state), version: watch::Sender::new(0) }
    }

    /// Reads or changes the state.
    pub(crate) fn with<T>(&self, act: impl FnOnce(&mut BrowserState) -> T) -> T {
        act(&mut lock(&self.state))
    }

    fn announce_change(&self) {
        self.version.send_modify(|version| *version += 1);
    }

    /// Waits until a condition gives a value; `None` at the deadline.
    pub(crate) async fn wait_for<T>(
        &self,
        deadline: Duration,
        mut condition: impl FnMut(&mut BrowserState) -> Option<T>,
    ) -> Option<T> {
        let mut version = self.version.subscribe();
        let wait = async {
            loop {
                version.mark_unchanged();
                if let Some(found) = self.with(&mut condition) {
                    return Some(found);
                }
                if version.changed().await.is_err() {
                    return None;
                }
            }
        };
        tokio::time::timeout(deadline, wait).await.ok().flatten()
    }
}

/// Follows the events until the browser ends.
pub(crate) async fn follow_events(
    client: CdpClient,
    shared: std::sync::Arc<SharedState>,
    mut events: mpsc::UnboundedReceiver<ProtocolEvent>,
) {
    while let Some(ProtocolEvent { method, session, params }) = events.recv().await {
        let reaction = shared.with(|state| state.apply_event(&method, &session, &params));
        shared.announce_change();
        if let Some(reaction) = reaction {
            let (client, shared) = (client.clone(), std::sync::Arc::clone(&shared));
            tokio::spawn(async move {
                if let Err(error) = react(&client, &shared, reaction).await {
                    tracing::debug!(%error, "a reaction to the browser failed");
                }
                shared.announce_change();
            });
        }
    }
    shared.with(|state| state.is_gone = true);
    shared.announce_change();
}

async fn react(client: &CdpClient, shared: &SharedState, reaction: Reaction) -> Result<(), CallError> {
    let (session, method, params) = match reaction {
        Reaction::SetUp { session, is_tab } => return set_up_session(client, shared, &session, is_tab).await,
        Reaction::LetRun { session } => (session, "Runtime.runIfWaitingForDebugger", json!({})),
        Reaction::AcceptDialog { session } => (session, "Page.handleJavaScriptDialog", json!({"accept": true})),
        Reaction::CloseTab { target } => (String::new(), "Target.closeTarget", json!({"targetId": target})),
        Reaction::EndPage { session } => (session, "Page.crash", json!({})),
        Reaction::CancelDownload { guid } => (String::new(), "Browser.cancelDownload", json!({"guid": guid})),
    };
    client.call(&session, method, params, OWN_CALL).await.map(drop)
}

/// Switches a session's events on, and lets it run. The page waits meanwhile, so that no event is missed.
async fn set_up_session(
    client: &CdpClient,
    shared: &SharedState,
    session: &str,
    is_tab: bool,
) -> Result<(), CallError> {
    let attach = json!({"autoAttach": true, "waitForDebuggerOnStart": true, "flatten": true});
    let call = |method, params| client.call(session, method, params, OWN_CALL);
    let (page, lifecycle, chooser, dom, children, tree, run) = tokio::join!(
        call("Page.enable", json!({})),
        call("Page.setLifecycleEventsEnabled", json!({"enabled": true})),
        call("Page.setInterceptFileChooserDialog", json!({"enabled": true})),
        call("DOM.enable", json!({})),
        call("Target.setAutoAttach", attach),
        call("Page.getFrameTree", json!({})),
        call("Runtime.runIfWaitingForDebugger", json!({})),
    );
    // A frame has no chooser of its own.
    drop(chooser);
    for done in [page, lifecycle, dom, children, run] {
        done?;
    }
    let tree = tree?;
    shared.with(|state| {
        add_frames(state, session, tree.at("frameTree"));
        if let Some(tab) = state.tabs.iter_mut().find(|tab| is_tab && tab.session == session) {
            tab.is_ready = true;
        }
    });
    Ok(())
}

/// Adds the frames of a session that no event has told yet.
fn add_frames(state: &mut BrowserState, session: &str, tree: &Value) {
    let frame = &tree.at("frame");
    let id = frame.text("id");
    if state.frames.get(id).is_none_or(|known| known.session != session || known.loader.is_empty()) {
        state.navigate_frame(session, frame);
    }
    for child in tree.list("childFrames").iter() {
        add_frames(state, session, child);
    }
}
