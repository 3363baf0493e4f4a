//! The browser's state as its events tell it: tabs, frames, dialogs and downloads.

use std::collections::{BTreeSet, HashMap};

use serde_json::Value;

use crate::fields::MessageFields as _;

/// Maximum number of tabs; a page that opens more has them closed.
pub(crate) const MAX_TABS: usize = 12;
/// Maximum number of dialogs of one document; a page that shows more is ended.
pub(crate) const MAX_DIALOGS: u32 = 8;
/// Maximum number of notes and downloads that are kept.
const MAX_KEPT: usize = 200;

/// A dialog that holds its page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OpenDialog {
    /// `alert`, `confirm` or `prompt`.
    pub(crate) kind: String,
    pub(crate) message: String,
}

/// An element that asked for files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FileChooser {
    pub(crate) session: String,
    pub(crate) node: i64,
}

/// One tab.
#[derive(Debug, Clone, Default)]
pub(crate) struct TabState {
    /// Its number in reports, never reused.
    pub(crate) number: u32,
    pub(crate) target: String,
    pub(crate) session: String,
    pub(crate) title: String,
    /// The main frame, once known.
    pub(crate) frame: String,
    pub(crate) dialog: Option<OpenDialog>,
    pub(crate) dialogs_shown: u32,
    /// Why we ended its page.
    pub(crate) end_reason: Option<String>,
    pub(crate) is_crashed: bool,
    pub(crate) is_ready: bool,
    pub(crate) is_loading: bool,
    /// The lifecycle states that the current document has reached.
    pub(crate) reached: BTreeSet<String>,
    pub(crate) file_chooser: Option<FileChooser>,
    /// What a drag that has begun carries.
    pub(crate) drag: Option<Value>,
}

/// One frame of a page.
#[derive(Debug, Clone, Default)]
pub(crate) struct FrameState {
    pub(crate) parent: Option<String>,
    /// The session that the frame's document belongs to.
    pub(crate) session: String,
    /// The document.
    pub(crate) loader: String,
    pub(crate) url: String,
}

/// The progress of a download.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DownloadProgress {
    Running,
    Completed,
    Canceled,
    /// Cancelled by us because of its size.
    TooLarge,
}

/// A download.
#[derive(Debug, Clone)]
pub(crate) struct DownloadState {
    pub(crate) guid: String,
    pub(crate) url: String,
    pub(crate) suggested_name: String,
    pub(crate) bytes: u64,
    pub(crate) progress: DownloadProgress,
    /// True once it has been reported.
    pub(crate) is_reported: bool,
}

/// Something to do in answer to an event.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Reaction {
    /// Prepare a new session: switch its events on and let it run.
    SetUp { session: String, is_tab: bool },
    /// Let a worker run.
    LetRun { session: String },
    /// Leave a page that asks whether to stay.
    AcceptDialog { session: String },
    /// Close a surplus tab.
    CloseTab { target: String },
    /// End a page that shows dialogs without end.
    EndPage { session: String },
    /// Stop a download that is too large.
    CancelDownload { guid: String },
}

/// Everything that events tell.
#[derive(Debug, Default)]
pub(crate) struct BrowserState {
    pub(crate) tabs: Vec<TabState>,
    last_tab: u32,
    pub(crate) frames: HashMap<String, FrameState>,
    pub(crate) downloads: Vec<DownloadState>,
    /// Happenings since the last report, in our own words.
    pub(crate) notes: Vec<String>,
    pub(crate) max_download_bytes: u64,
    pub(crate) is_gone: bool,
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value.text(key)
}

impl BrowserState {
    pub(crate) fn tab(&self, number: u32) -> Option<&TabState> {
        self.tabs.iter().find(|tab| tab.number == number)
    }

    pub(crate) fn tab_mut(&mut self, number: u32) -> Option<&mut TabState> {
        self.tabs.iter_mut().find(|tab| tab.number == number)
    }

    /// The frames of a tab, from the main frame down.
    pub(crate) fn list_frames(&self, tab: &TabState) -> Vec<String> {
        let mut found = vec![tab.frame.clone()];
        let mut next = 0;
        while let Some(parent) = found.get(next).cloned() {
            let is_child = |frame: &FrameState| frame.parent.as_ref() == Some(&parent);
            let mut children: Vec<String> =
                self.frames.iter().filter(|(_, frame)| is_child(frame)).map(|(id, _)| id.clone()).collect();
            children.retain(|id| !found.contains(id));
            children.sort();
            found.extend(children);
            next += 1;
        }
        found.retain(|id| self.frames.contains_key(id));
        found
    }

    fn tab_of_session(&mut self, session: &str) -> Option<&mut TabState> {
        self.tabs.iter_mut().find(|tab| tab.session == session)
    }

    /// The tab that a session of a frame or a page belongs to.
    fn tab_with_session(&mut self, session: &str) -> Option<&mut TabState> {
        let number = self.tabs.iter().find_map(|tab| {
            let owns = tab.session == session
                || self.list_frames(tab).iter().any(|id| self.frames.get(id).is_some_and(|it| it.session == session));
            owns.then_some(tab.number)
        })?;
        self.tab_mut(number)
    }

    fn note(&mut self, note: String) {
        if self.notes.len() < MAX_KEPT {
            self.notes.push(note);
        }
    }

    /// Takes an event in, and returns what has to be done about it.
    pub(crate) fn apply_event(&mut self, method: &str, session: &str, params: &Value) -> Option<Reaction> {
        match method {
            "Target.attachedToTarget" => return self.attach(params),
            "Target.detachedFromTarget" => self.detach(text(params, "sessionId")),
            "Target.targetInfoChanged" => self.update_title(params.at("targetInfo")),
            "Target.targetCrashed" => {
                let target = text(params, "targetId");
                if let Some(tab) = self.tabs.iter_mut().find(|tab| tab.target == target) {
                    tab.is_crashed = true;
                    tab.dialog = None;
                }
            }
            "Page.frameNavigated" => self.navigate_frame(session, params.at("frame")),
            "Page.navigatedWithinDocument" => {
                if let Some(frame) = self.frames.get_mut(text(params, "frameId")) {
                    frame.url = text(params, "url").to_owned();
                }
            }
            "Page.frameAttached" => {
                let parent = Some(text(params, "parentFrameId").to_owned());
                let frame = FrameState { parent, session: session.to_owned(), ..FrameState::default() };
                self.frames.entry(text(params, "frameId").to_owned()).or_insert(frame);
            }
            "Page.frameDetached" if text(params, "reason") != "swap" => {
                self.frames.remove(text(params, "frameId"));
            }
            "Page.frameStartedLoading" | "Page.frameStoppedLoading" => {
                let frame = text(params, "frameId").to_owned();
                if let Some(tab) = self.tab_of_session(session).filter(|tab| tab.frame == frame) {
                    tab.is_loading = method == "Page.frameStartedLoading";
                }
            }
            "Page.lifecycleEvent" => self.reach(session, params),
            "Page.javascriptDialogOpening" => return self.open_dialog(session, params),
            "Page.javascriptDialogClosed" => {
                if let Some(tab) = self.tab_with_session(session) {
                    tab.dialog = None;
                }
            }
            "Page.fileChooserOpened" => {
                let node = params.at("backendNodeId").as_i64();
                if let (Some(tab), Some(node)) = (self.tab_with_session(session), node) {
                    tab.file_chooser = Some(FileChooser { session: session.to_owned(), node });
                }
            }
            "Input.dragIntercepted" => {
                if let Some(tab) = self.tab_with_session(session) {
                    tab.drag = Some(params.at("data").clone());
                }
            }
            "Browser.downloadWillBegin" => return self.begin_download(params),
            "Browser.downloadProgress" => return self.advance_download(params),
            _ => {}
        }
        None
    }

    fn attach(&mut self, params: &Value) -> Option<Reaction> {
        let info = &params.at("targetInfo");
        let (session, target) = (text(params, "sessionId").to_owned(), text(info, "targetId").to_owned());
        match text(info, "type") {
            "page" => {
                if self.tabs.len() >= MAX_TABS {
                    self.note(format!("The page opened more than {MAX_TABS} tabs; the surplus was closed."));
                    self.notes.dedup();
                    return Some(Reaction::CloseTab { target });
                }
                self.last_tab += 1;
                let opener = text(info, "openerId");
                if let Some(number) = self.tabs.iter().find(|tab| tab.target == opener).map(|tab| tab.number) {
                    self.note(format!("Tab {number} opened a new tab, number {}.", self.last_tab));
                }
                let tab = TabState {
                    number: self.last_tab,
                    frame: target.clone(),
                    target,
                    session: session.clone(),
                    ..TabState::default()
                };
                self.tabs.push(tab);
                Some(Reaction::SetUp { session, is_tab: true })
            }
            "iframe" => {
                let frame = self.frames.entry(target).or_default();
                frame.session.clone_from(&session);
                text(info, "url").clone_into(&mut frame.url);
                if frame.parent.is_none() {
                    frame.parent = info.at("parentFrameId").as_str().map(str::to_owned);
                }
                Some(Reaction::SetUp { session, is_tab: false })
            }
            _ => Some(Reaction::LetRun { session }),
        }
    }

    fn detach(&mut self, session: &str) {
        self.tabs.retain(|tab| tab.session != session);
        self.frames.retain(|_, frame| frame.session != session);
    }

    /// Takes the title of a tab from what the browser tells about it.
    pub(crate) fn update_title(&mut self, info: &Value) {
        let target = text(info, "targetId");
        if let Some(tab) = self.tabs.iter_mut().find(|tab| tab.target == target) {
            text(info, "title").clone_into(&mut tab.title);
        }
    }

    /// Records the document of a frame. A frame that moved to another process keeps its id and changes its session.
    pub(crate) fn navigate_frame(&mut self, session: &str, frame: &Value) {
        let id = text(frame, "id").to_owned();
        let parent = frame.at("parentId").as_str().map(str::to_owned);
        let known = self.frames.entry(id.clone()).or_default();
        let is_new = known.loader != text(frame, "loaderId");
        session.clone_into(&mut known.session);
        text(frame, "loaderId").clone_into(&mut known.loader);
        known.url = format!("{}{}", text(frame, "url"), text(frame, "urlFragment"));
        if parent.is_some() {
            known.parent = parent;
        }
        if let Some(tab) = self.tab_of_session(session).filter(|tab| tab.frame == id && is_new) {
            tab.dialogs_shown = 0;
            tab.is_crashed = false;
        }
    }

    fn reach(&mut self, session: &str, params: &Value) {
        let (frame, name) = (text(params, "frameId").to_owned(), text(params, "name"));
        if let Some(tab) = self.tab_of_session(session).filter(|tab| tab.frame == frame) {
            if name == "init" {
                tab.reached.clear();
            }
            tab.reached.insert(name.to_owned());
        }
    }

    fn open_dialog(&mut self, session: &str, params: &Value) -> Option<Reaction> {
        let kind = text(params, "type").to_owned();
        let tab = self.tab_with_session(session)?;
        let session = tab.session.clone();
        if kind == "beforeunload" {
            self.note("The page asked whether to leave it; it was left.".to_owned());
            return Some(Reaction::AcceptDialog { session });
        }
        tab.dialogs_shown += 1;
        if tab.dialogs_shown > MAX_DIALOGS {
            tab.dialog = None;
            tab.end_reason = Some(format!("The page showed more than {MAX_DIALOGS} dialogs, so it was ended."));
            return Some(Reaction::EndPage { session });
        }
        tab.dialog = Some(OpenDialog { kind, message: text(params, "message").to_owned() });
        None
    }

    fn begin_download(&mut self, params: &Value) -> Option<Reaction> {
        let guid = text(params, "guid").to_owned();
        if self.downloads.len() >= MAX_KEPT {
            return Some(Reaction::CancelDownload { guid });
        }
        self.downloads.push(DownloadState {
            guid,
            url: text(params, "url").to_owned(),
            suggested_name: text(params, "suggestedFilename").to_owned(),
            bytes: 0,
            progress: DownloadProgress::Running,
            is_reported: false,
        });
        None
    }

    fn advance_download(&mut self, params: &Value) -> Option<Reaction> {
        let guid = text(params, "guid");
        let count = |key: &str| params.at(key).as_f64().map_or(0, |bytes| bytes.max(0.0) as u64);
        let max_bytes = self.max_download_bytes;
        let download = self.downloads.iter_mut().find(|download| download.guid == guid)?;
        if download.progress == DownloadProgress::TooLarge {
            return None;
        }
        download.bytes = count("receivedBytes");
        match text(params, "state") {
            "completed" => download.progress = DownloadProgress::Completed,
            "canceled" => download.progress = DownloadProgress::Canceled,
            _ => {}
        }
        if count("receivedBytes").max(count("totalBytes")) > max_bytes {
            download.progress = DownloadProgress::TooLarge;
            return Some(Reaction::CancelDownload { guid: guid.to_owned() });
        }
        None
    }
}
