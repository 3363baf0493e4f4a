//! Looking at a page: its accessibility tree over all frames as lines, whole once and then what changed.

pub(crate) mod changes;
pub(crate) mod clean;
mod controls;
mod lines;
pub(crate) mod render;
mod roles;
pub(crate) mod tree;

use std::collections::HashMap;

use reveille_base::words::{format_count, truncate_text};
use serde_json::json;

use self::{
    changes::describe_changes,
    clean::clean_line,
    render::{LookPurpose, PageContent, PageDocument, RenderedPage, render_page},
    tree::{AxTree, parse_snapshot},
};
use crate::fields::MessageFields as _;
use crate::{browser::Browser, cdp::CallError, error::Fault, events::TabState, verb::BrowserOutcome};

/// Maximum length of a look, in bytes.
const MAX_LOOK_BYTES: usize = 12_000;
/// Maximum length of the changes after an act, in bytes.
const MAX_CHANGES_BYTES: usize = 4_000;
/// Maximum length of one piece of a page's text, in characters.
const MAX_READ_CHARS: usize = 12_000;
/// Maximum number of lines that a search shows.
const MAX_FOUND: usize = 30;
/// Maximum number of links that are remembered.
const MAX_LINKS: usize = 20_000;

/// The last look at a tab.
#[derive(Debug, Clone, Default)]
pub(crate) struct LastLook {
    /// The document.
    pub(crate) loader: String,
    pub(crate) lines: Vec<String>,
}

/// A fresh look, as lines.
pub(crate) struct FreshLook {
    pub(crate) lines: Vec<String>,
    pub(crate) loader: String,
    pub(crate) is_drawn: bool,
}

impl Browser {
    /// Reads the page with all its frames.
    async fn fetch_page(&mut self, tab: &TabState) -> Result<PageContent, Fault> {
        let ids = self.shared.with(|state| state.list_frames(tab));
        let mut content = PageContent::default();
        let mut places: HashMap<String, usize> = HashMap::new();
        for id in ids {
            let Some(frame) = self.frame(&id) else { continue };
            let fetched = self.call_page(&frame.session, "Accessibility.getFullAXTree", json!({"frameId": id})).await;
            let tree = match fetched {
                Ok(answer) => AxTree::parse(&answer),
                // A frame that went away meanwhile isn't on the page any more.
                Err(CallError::Refused(_) | CallError::Detached) if id != tab.frame => continue,
                Err(error) => return Err(error.into()),
            };
            if !content.facts.contains_key(&frame.session) {
                let asked = json!({"computedStyles": ["cursor", "background-color", "fill"]});
                let answer = self.call_page(&frame.session, "DOMSnapshot.captureSnapshot", asked).await?;
                content.facts.insert(frame.session.clone(), parse_snapshot(&answer));
            }
            let place = content.documents.len();
            if let Some(parent) = frame.parent.as_ref().and_then(|parent| places.get(parent)).copied() {
                self.link_frame(&mut content, parent, place, &id).await;
            }
            places.insert(id.clone(), place);
            content.documents.push(PageDocument {
                session: frame.session,
                frame: id,
                loader: frame.loader,
                tree,
                children: HashMap::new(),
            });
        }
        Ok(content)
    }

    /// Notes the element that shows a frame.
    async fn link_frame(&self, content: &mut PageContent, parent: usize, place: usize, id: &str) {
        if let Some(parent) = content.documents.get_mut(parent) {
            let owner = self.call_page(&parent.session, "DOM.getFrameOwner", json!({"frameId": id})).await;
            if let Some(node) = owner.ok().and_then(|owner| owner.at("backendNodeId").as_i64()) {
                parent.children.insert(node, place);
            }
        }
    }

    async fn render_tab(&mut self, tab: &TabState, purpose: LookPurpose) -> Result<RenderedPage, Fault> {
        let content = self.fetch_page(tab).await?;
        self.remember_links(tab, &content);
        let secrets = &self.secrets;
        let page = render_page(&content, &mut self.references, &|address| secrets.contains(address), purpose);
        self.secrets.extend(page.secrets.iter().cloned());
        Ok(page)
    }

    fn remember_links(&mut self, tab: &TabState, content: &PageContent) {
        let Some(base) = self.frame(&tab.frame).and_then(|frame| url::Url::parse(&frame.url).ok()) else { return };
        let links = content.facts.values().flat_map(HashMap::values).filter_map(|facts| facts.link.as_deref());
        for link in links.filter_map(|link| base.join(link).ok()) {
            if self.seen_links.len() < MAX_LINKS {
                self.seen_links.insert(link.to_string());
            }
        }
    }

    /// Looks at the current tab.
    pub(crate) async fn look_fresh(&mut self) -> Result<FreshLook, Fault> {
        let tab = self.ensure_tab().await?;
        let page = self.render_tab(&tab, LookPurpose::Act).await?;
        let loader = self.frame(&tab.frame).map(|frame| frame.loader).unwrap_or_default();
        let lines = page.lines.iter().map(|line| format!("{}{}", " ".repeat(line.depth), line.text)).collect();
        Ok(FreshLook { lines, loader, is_drawn: page.is_drawn })
    }

    /// The verb `look`.
    pub(crate) async fn look(&mut self, is_whole: bool, from: usize) -> Result<BrowserOutcome, Fault> {
        let look = self.look_fresh().await?;
        let known =
            self.last_looks.get(&self.current).filter(|last| last.loader == look.loader && !is_whole && from == 0);
        let changes = known.and_then(|last| describe_changes(&last.lines, &look.lines));
        let body = match changes {
            Some(changes) if changes.is_empty() => "Nothing has changed since the last look.".to_owned(),
            Some(changes) => format!("Changed since the last look:\n{}", bound_lines(&changes, 0, MAX_LOOK_BYTES)),
            None => self.format_whole(&look, from),
        };
        let head = self.head_line();
        self.keep_look(look);
        Ok(BrowserOutcome { text: format!("{head}\n{body}"), ..BrowserOutcome::default() })
    }

    /// The whole page as text, within the limit.
    pub(crate) fn format_whole(&self, look: &FreshLook, from: usize) -> String {
        let body = match look.lines.len() {
            0 => "(The page shows nothing that can be read.)".to_owned(),
            _ => bound_lines(&look.lines, from, MAX_LOOK_BYTES),
        };
        let is_poor = look.is_drawn || look.lines.is_empty() && self.address() != "about:blank";
        let note = if is_poor { "\n(Parts of this page are drawn: `screenshot` shows them.)" } else { "" };
        format!("{body}{note}")
    }

    pub(crate) fn keep_look(&mut self, look: FreshLook) {
        self.last_looks.insert(self.current, LastLook { loader: look.loader, lines: look.lines });
    }

    /// The changes since the last look after an act, or the whole of a new page.
    pub(crate) async fn describe_since(&mut self) -> Result<String, Fault> {
        let look = self.look_fresh().await?;
        let last = self.last_looks.get(&self.current).filter(|last| last.loader == look.loader);
        let text = match last.and_then(|last| describe_changes(&last.lines, &look.lines)) {
            Some(changes) if changes.is_empty() => String::new(),
            Some(changes) => bound_lines(&changes, 0, MAX_CHANGES_BYTES),
            None => self.format_whole(&look, 0),
        };
        self.keep_look(look);
        Ok(text)
    }

    /// One line with tab, title and address.
    pub(crate) fn head_line(&self) -> String {
        let (current, count) = (self.current, self.shared.with(|state| state.tabs.len()));
        let url = self.address();
        let title = self.shared.with(|state| state.tab(current).map(|tab| tab.title.clone())).unwrap_or_default();
        let tabs = if count > 1 { format!("Tab {current} of {}: ", format_count(count, "tab")) } else { String::new() };
        let title = clean_line(&title, 100);
        format!("{tabs}\"{title}\" {}", truncate_text(&url, 200))
    }

    /// The address of the current tab.
    pub(crate) fn address(&self) -> String {
        self.shared.with(|state| {
            let frame = state.tab(self.current).and_then(|tab| state.frames.get(&tab.frame));
            frame.map(|frame| frame.url.clone()).unwrap_or_default()
        })
    }

    /// The verb `find`.
    pub(crate) async fn find(&mut self, text: &str) -> Result<BrowserOutcome, Fault> {
        let look = self.look_fresh().await?;
        let wanted = text.trim().to_lowercase();
        let is_match = |line: &&String| !wanted.is_empty() && line.to_lowercase().contains(&wanted);
        let all: Vec<String> = look.lines.iter().filter(is_match).map(|line| line.trim_start().to_owned()).collect();
        let shown: Vec<String> = all.iter().take(MAX_FOUND).cloned().collect();
        let more = all.len().saturating_sub(MAX_FOUND);
        let more = if more > 0 { format!("\n({more} more)") } else { String::new() };
        let text = match all.len() {
            0 => format!("Nothing on the page contains \"{}\".", truncate_text(text, 100)),
            count => format!("{}:\n{}{more}", format_count(count, "line"), bound_lines(&shown, 0, MAX_LOOK_BYTES)),
        };
        Ok(BrowserOutcome { text, ..BrowserOutcome::default() })
    }

    /// The page's text.
    pub(crate) async fn page_text(&mut self) -> Result<String, Fault> {
        let tab = self.ensure_tab().await?;
        let page = self.render_tab(&tab, LookPurpose::Read).await?;
        Ok(page.lines.iter().map(|line| line.text.as_str()).collect::<Vec<_>>().join("\n"))
    }

    /// The verb `read`.
    pub(crate) async fn read(&mut self, from: usize) -> Result<BrowserOutcome, Fault> {
        let text = self.page_text().await?;
        let count = text.chars().count();
        let piece: String = text.chars().skip(from).take(MAX_READ_CHARS).collect();
        let end = from.saturating_add(piece.chars().count());
        let more = if end < count {
            format!("\n(Characters {from} to {end} of {count}; go on with `from`: {end})")
        } else {
            String::new()
        };
        let head = self.head_line();
        Ok(BrowserOutcome { text: format!("{head}\n{piece}{more}"), ..BrowserOutcome::default() })
    }
}

/// Joins lines from one on, within a limit, and says how many are left out.
fn bound_lines(lines: &[String], from: usize, max_bytes: usize) -> String {
    let mut text = String::new();
    let mut end = from;
    for line in lines.get(from..).unwrap_or_default() {
        if text.len() + line.len() + 1 > max_bytes {
            break;
        }
        text.push_str(line);
        text.push('\n');
        end += 1;
    }
    match lines.len().saturating_sub(end) {
        0 => {
            text.pop();
        }
        left => text
            .push_str(&format!("({left} more lines: `find` searches all of them, `look` with `from`: {end} goes on)")),
    }
    text
}
