//! Acting on a page: each act is checked before and reported after.

mod fields;
mod files;
mod keys;
mod navigate;
pub(crate) mod picture;
mod point;
mod pointer;
mod wait;

use serde_json::json;

use crate::{
    browser::{Browser, MAX_DIALOG_CHARS},
    cdp::CallError,
    error::Fault,
    events::{BrowserState, OpenDialog},
    fields::MessageFields as _,
    look::clean::clean_line,
    scripts,
    verb::{BrowserOutcome, Verb},
};

/// The state before an act, to compare with.
pub(crate) struct Before {
    url: String,
    title: String,
    loader: String,
    tabs: Vec<u32>,
}

impl Browser {
    /// Carries out a verb on the current tab.
    pub(crate) async fn perform(&mut self, verb: &Verb) -> Result<BrowserOutcome, Fault> {
        self.ensure_tab().await?;
        match verb {
            Verb::Navigate { url } => self.navigate(url).await,
            Verb::Look { whole, from } => self.look(*whole, *from).await,
            Verb::Find { text } => self.find(text).await,
            Verb::Click(place) => self.click(place, pointer::ClickKind::Single).await,
            Verb::DoubleClick(place) => self.click(place, pointer::ClickKind::Double).await,
            Verb::RightClick(place) => self.click(place, pointer::ClickKind::Right).await,
            Verb::Hover(place) => self.hover(place).await,
            Verb::Drag { from, to } => self.drag(from, to).await,
            Verb::Type { reference, text, append, enter } => {
                let text = fields::TypedText {
                    text,
                    mode: if *append { fields::TypeMode::Append } else { fields::TypeMode::Replace },
                    ending: if *enter { fields::FieldEnding::Enter } else { fields::FieldEnding::Stay },
                };
                self.type_text(reference, &text).await
            }
            Verb::Select { reference, options } => self.select(reference, options).await,
            Verb::Press { key, reference } => self.press(key, reference.as_deref()).await,
            Verb::Scroll { direction, reference } => self.scroll(*direction, reference.as_deref()).await,
            Verb::Back => self.go_back().await,
            Verb::Tabs(act) => self.act_on_tabs(act).await,
            Verb::Read { from } => self.read(*from).await,
            Verb::Screenshot { reference } => self.take_picture(reference.as_deref()).await,
            Verb::Wait(state) => self.wait(state).await,
            Verb::Upload { reference, files } => self.upload(reference, files).await,
            Verb::Download { reference } => self.download(reference.as_deref()).await,
            Verb::Dialog { answer, text } => self.answer_dialog(*answer, text.as_deref()).await,
            Verb::Url => Ok(BrowserOutcome { text: self.head_line(), ..BrowserOutcome::default() }),
        }
    }

    /// Notes the state before an act.
    pub(crate) fn note_state(&self) -> Before {
        self.shared.with(|state| {
            let tab = state.tab(self.current);
            let frame = tab.and_then(|tab| state.frames.get(&tab.frame));
            Before {
                url: frame.map(|frame| frame.url.clone()).unwrap_or_default(),
                title: tab.map(|tab| tab.title.clone()).unwrap_or_default(),
                loader: frame.map(|frame| frame.loader.clone()).unwrap_or_default(),
                tabs: state.tabs.iter().map(|tab| tab.number).collect(),
            }
        })
    }

    pub(crate) fn open_dialog(&self) -> Option<OpenDialog> {
        self.shared.with(|state| state.tab(self.current)?.dialog.clone())
    }

    /// Waits until the page has settled after an act: quiet, or loaded if it went elsewhere.
    pub(crate) async fn settle(&mut self) -> Result<(), Fault> {
        let tab = self.ensure_tab().await?;
        match self.call_in_frame(&tab.frame, scripts::QUIET, &[]).await {
            Ok(_) | Err(Fault::Call(CallError::Detached | CallError::Dialog)) => {}
            Err(error) => return Err(error),
        }
        let current = self.current;
        let has_settled = |state: &mut BrowserState| {
            let Some(tab) = state.tab(current) else { return Some(()) };
            (tab.dialog.is_some() || tab.is_crashed || !tab.is_loading).then_some(())
        };
        self.shared.wait_for(self.options.patience.load, has_settled).await;
        self.update_titles().await;
        Ok(())
    }

    /// Asks for the titles of all tabs, whose events come late.
    pub(crate) async fn update_titles(&self) {
        let Ok(answer) = self.call_browser("Target.getTargets", json!({})).await else { return };
        self.shared.with(|state| {
            for info in answer.list("targetInfos").iter() {
                state.update_title(info);
            }
        });
    }

    /// Reports an act: what was done, what is different, and the page.
    pub(crate) async fn report(&mut self, before: &Before, done: &str) -> Result<BrowserOutcome, Fault> {
        self.settle().await?;
        self.ensure_tab().await?;
        let (mut changes, files) = self.list_changes(before).await;
        if self.open_dialog().is_some() {
            let mut outcome = self.report_dialog();
            outcome.text = format!("{done} {}", outcome.text);
            outcome.changes.splice(0..0, changes);
            return Ok(outcome);
        }
        let page = match self.describe_since().await {
            Ok(page) => page,
            Err(Fault::Call(CallError::Dialog)) if self.open_dialog().is_some() => {
                let mut outcome = self.report_dialog();
                outcome.text = format!("{done} {}", outcome.text);
                return Ok(outcome);
            }
            // The page went elsewhere just now.
            Err(Fault::Call(CallError::Detached)) => {
                self.settle().await?;
                self.describe_since().await?
            }
            Err(error) => return Err(error),
        };
        // The title often comes last.
        let late = self.list_changes(before).await.0;
        changes.extend(late.into_iter().filter(|change| !changes.contains(change)).collect::<Vec<_>>());
        let mut text = done.to_owned();
        for change in &changes {
            text.push_str(&format!("\n{change}"));
        }
        match (page.is_empty(), changes.is_empty()) {
            (true, true) => text.push_str(" Nothing changed on the page."),
            (true, false) => {}
            (false, _) => text.push_str(&format!("\n{page}")),
        }
        Ok(BrowserOutcome { text, changes, files, picture: None })
    }

    /// A report of the dialog that holds the page.
    pub(crate) fn report_dialog(&self) -> BrowserOutcome {
        let Some(dialog) = self.open_dialog() else { return BrowserOutcome::default() };
        let change =
            format!("A dialog opened ({}): \"{}\"", dialog.kind, clean_line(&dialog.message, MAX_DIALOG_CHARS));
        let text = format!("{change}. Answer it with the verb `dialog`.");
        BrowserOutcome { text, changes: vec![change], ..BrowserOutcome::default() }
    }

    /// Lists what is different outside the page's own text, and the files that arrived.
    async fn list_changes(&self, before: &Before) -> (Vec<String>, Vec<std::path::PathBuf>) {
        let now = self.note_state();
        let mut changes = Vec::new();
        if now.url != before.url {
            changes.push(format!("Address: {}", clean_line(&now.url, 300)));
        } else if now.loader != before.loader {
            changes.push("The page was loaded again.".to_owned());
        }
        if now.title != before.title {
            changes.push(format!("Title: {}", clean_line(&now.title, 150)));
        }
        for closed in before.tabs.iter().filter(|tab| !now.tabs.contains(tab)) {
            changes.push(format!("Tab {closed} was closed."));
        }
        changes.extend(self.take_notes());
        let arrived = self.collect_downloads();
        changes.extend(arrived.reports);
        (changes, arrived.files)
    }
}
