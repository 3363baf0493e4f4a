//! Addresses, history, tabs and dialogs.

use reveille_base::words::truncate_text;
use serde_json::json;
use url::Url;

use crate::{
    browser::Browser,
    cdp::CallError,
    error::{BrowserError, Fault, blocked, wrong},
    events::{BrowserState, MAX_TABS},
    fields::MessageFields as _,
    look::clean::clean_line,
    shared::OWN_CALL,
    verb::{BrowserOutcome, DialogAnswer, TabAct},
};

/// Maximum length of an address, in bytes.
const MAX_URL_BYTES: usize = 4_000;

impl Browser {
    /// Checks an address as far as its text tells.
    pub(crate) fn check_address(&self, text: &str) -> Result<Url, Fault> {
        if text.len() > MAX_URL_BYTES {
            return Err(wrong("The address is too long."));
        }
        let url = Url::parse(text.trim())
            .map_err(|_| wrong("This isn't an address: it has to begin with https:// or http://."))?;
        match self.options.grants.find_objection(&url) {
            Some(why) => Err(wrong(why)),
            None => Ok(url),
        }
    }

    /// Opens an address and waits until it has loaded.
    pub(crate) async fn navigate(&mut self, text: &str) -> Result<BrowserOutcome, Fault> {
        let url = self.check_address(text)?;
        let before = self.note_state();
        let session = self.tab_session()?;
        let params = json!({"url": url.as_str()});
        let answer = match self.client.call(&session, "Page.navigate", params, self.options.patience.load).await {
            Err(CallError::Deadline) => {
                self.call_page(&session, "Page.stopLoading", json!({})).await?;
                self.settle().await?;
                return Err(blocked("The server did not answer in time."));
            }
            answer => answer?,
        };
        let error = answer.text("errorText");
        if answer.is_true("isDownload") || error == "net::ERR_ABORTED" {
            return self.report(&before, "The address is a download or sent no page.").await;
        }
        if !error.is_empty() {
            let why = explain_network_error(error);
            return Err(BrowserError::TryOnce(format!("{why} ({error})")).into());
        }
        if let Some(loader) = answer.at("loaderId").as_str() {
            self.wait_until_loaded(loader).await;
        }
        let done = if self.is_loading() { "Opened; it is still loading." } else { "Opened." };
        self.report(&before, done).await
    }

    fn is_loading(&self) -> bool {
        self.shared.with(|state| {
            state.tab(self.current).is_some_and(|tab| !tab.reached.contains("load") && tab.dialog.is_none())
        })
    }

    async fn wait_until_loaded(&self, loader: &str) {
        let current = self.current;
        let loaded = |state: &mut BrowserState| {
            let Some(tab) = state.tab(current) else { return Some(()) };
            let is_there = state.frames.get(&tab.frame).is_some_and(|frame| frame.loader == loader);
            let has_loaded = is_there && tab.reached.contains("load");
            (has_loaded || tab.dialog.is_some() || tab.is_crashed).then_some(())
        };
        self.shared.wait_for(self.options.patience.load, loaded).await;
    }

    /// Goes back in the tab's history.
    pub(crate) async fn go_back(&mut self) -> Result<BrowserOutcome, Fault> {
        let before = self.note_state();
        let session = self.tab_session()?;
        let history = self.call_page(&session, "Page.getNavigationHistory", json!({})).await?;
        let current =
            history.at("currentIndex").as_u64().and_then(|index| usize::try_from(index).ok()).unwrap_or_default();
        let entry = current.checked_sub(1).and_then(|previous| history.at("entries").get(previous));
        // A tab begins empty.
        let entry = entry.filter(|entry| entry.at("url") != "about:blank");
        let Some(id) = entry.map(|entry| entry.at("id").clone()) else {
            return Err(blocked("There is no previous page in this tab."));
        };
        let old = self.note_state().loader;
        self.call_page(&session, "Page.navigateToHistoryEntry", json!({"entryId": id})).await?;
        let number = self.current;
        let gone = |state: &mut BrowserState| {
            let Some(tab) = state.tab(number) else { return Some(()) };
            let frame = state.frames.get(&tab.frame)?;
            let has_moved = frame.url != before.url || frame.loader != old;
            (has_moved && !tab.is_loading || tab.dialog.is_some()).then_some(())
        };
        self.shared.wait_for(self.options.patience.load, gone).await;
        self.report(&before, "Went back.").await
    }

    /// Opens an empty tab and returns its number.
    pub(crate) async fn open_tab(&mut self) -> Result<u32, Fault> {
        let answer = self.call_browser("Target.createTarget", json!({"url": "about:blank"})).await?;
        let target = answer.text("targetId").to_owned();
        let ready = |state: &mut BrowserState| {
            state.tabs.iter().find(|tab| tab.target == target && tab.is_ready).map(|tab| tab.number)
        };
        self.shared.wait_for(OWN_CALL, ready).await.ok_or(Fault::Call(CallError::Detached))
    }

    /// The verb `tabs`.
    pub(crate) async fn act_on_tabs(&mut self, act: &TabAct) -> Result<BrowserOutcome, Fault> {
        match act {
            TabAct::List => {
                self.update_titles().await;
                Ok(BrowserOutcome { text: self.list_tabs(), ..BrowserOutcome::default() })
            }
            TabAct::Open { url } => {
                self.check_address(url)?;
                if self.shared.with(|state| state.tabs.len()) >= MAX_TABS {
                    return Err(blocked(format!("{MAX_TABS} tabs are open: close one first.")));
                }
                self.current = self.open_tab().await?;
                self.navigate(url).await
            }
            TabAct::Switch { tab } => {
                self.require_tab(*tab)?;
                self.current = *tab;
                let number = *tab;
                let ready = |state: &mut BrowserState| {
                    state.tab(number).is_none_or(|tab| tab.is_ready || tab.dialog.is_some()).then_some(())
                };
                self.shared.wait_for(OWN_CALL, ready).await;
                if self.open_dialog().is_some() {
                    return Ok(self.report_dialog());
                }
                self.call_page(&self.tab_session()?, "Page.bringToFront", json!({})).await?;
                self.settle().await?;
                self.look(false, 0).await
            }
            TabAct::Close { tab } => {
                let target = self.require_tab(*tab)?;
                self.call_browser("Target.closeTarget", json!({"targetId": target})).await?;
                let number = *tab;
                self.shared.wait_for(OWN_CALL, |state| state.tab(number).is_none().then_some(())).await;
                self.last_looks.remove(tab);
                self.ensure_tab().await?;
                let text = format!("Closed tab {tab}.\n{}", self.list_tabs());
                Ok(BrowserOutcome {
                    text,
                    changes: vec![format!("Tab {tab} was closed.")],
                    ..BrowserOutcome::default()
                })
            }
        }
    }

    fn require_tab(&self, number: u32) -> Result<String, Fault> {
        let target = self.shared.with(|state| state.tab(number).map(|tab| tab.target.clone()));
        target.ok_or_else(|| wrong(format!("There is no tab {number}.\n{}", self.list_tabs())))
    }

    fn list_tabs(&self) -> String {
        self.shared.with(|state| {
            let line = |tab: &crate::events::TabState| {
                let url = state.frames.get(&tab.frame).map(|frame| frame.url.as_str()).unwrap_or_default();
                let mark = if tab.number == self.current { " (current)" } else { "" };
                let dialog = if tab.dialog.is_some() { " (shows a dialog)" } else { "" };
                let title = clean_line(&tab.title, 80);
                format!("Tab {}{mark}{dialog}: \"{title}\" {}", tab.number, truncate_text(url, 150))
            };
            state.tabs.iter().map(line).collect::<Vec<_>>().join("\n")
        })
    }

    /// Answers the dialog that holds the page.
    pub(crate) async fn answer_dialog(
        &mut self,
        answer: DialogAnswer,
        text: Option<&str>,
    ) -> Result<BrowserOutcome, Fault> {
        if self.open_dialog().is_none() {
            return Err(wrong("No dialog is open."));
        }
        let before = self.note_state();
        let mut params = json!({"accept": answer == DialogAnswer::Accept});
        if let Some(text) = text {
            params.set("promptText", text);
        }
        self.shared.with(|state| state.tab_mut(self.current).map(|tab| tab.dialog = None));
        self.client.call(&self.tab_session()?, "Page.handleJavaScriptDialog", params, OWN_CALL).await?;
        let done = if answer == DialogAnswer::Accept { "Accepted." } else { "Dismissed." };
        self.report(&before, done).await
    }
}

fn explain_network_error(error: &str) -> &'static str {
    match error {
        "net::ERR_TUNNEL_CONNECTION_FAILED" | "net::ERR_NAME_NOT_RESOLVED" => {
            "The host wasn't found, can't be reached, or isn't on the public internet."
        }
        "net::ERR_TIMED_OUT" | "net::ERR_CONNECTION_TIMED_OUT" => "The server did not answer.",
        error if error.contains("CERT") || error.contains("SSL") => "The server's certificate isn't valid.",
        _ => "The address could not be opened.",
    }
}
