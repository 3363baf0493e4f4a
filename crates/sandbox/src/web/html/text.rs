//! A page's tree as text with some Markdown: headings, lists, links after their words, tables as rows. Hidden content
//! is left out as far as the page itself declares it hidden.

use reqwest::Url;

use super::dom::{Id, PageTree};

/// Maximum bytes of text from a page; nested lists can make the text longer than the page.
const MAX_TEXT_BYTES: usize = 4 * 1024 * 1024;
/// Maximum nesting of indented lists and quotations.
const MAX_INDENTS: usize = 8;
/// Maximum length of a shown link address, in bytes.
const MAX_LINK_BYTES: usize = 300;
/// A main part shorter than this, in bytes, doesn't replace the whole page.
const MIN_MAIN_BYTES: usize = 200;

/// The readable content of a page.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::web) struct Readable {
    pub(in crate::web) title: Option<String>,
    pub(in crate::web) text: String,
    /// False if the content was cut.
    pub(in crate::web) is_all: bool,
}

/// Converts a page at `url` to text.
pub(in crate::web) fn extract_readable(document: &PageTree, url: &Url) -> Readable {
    let find = |tag: &str| document.iter_subtree(document.root()).find(|id| document.tag(*id) == Some(tag));
    let title = ["title", "h1"]
        .iter()
        .find_map(|tag| Some(document.all_text(find(tag)?)).filter(|text| !text.trim().is_empty()));
    let base = find("base").and_then(|base| url.join(document.attribute(base, "href")?).ok());
    let written = |from| Writer::new(document, base.as_ref().unwrap_or(url)).write(from);
    let main = document
        .iter_subtree(document.root())
        .find(|id| document.tag(*id) == Some("main") || document.attribute(*id, "role") == Some("main"));
    let main = main.map(written).filter(|(text, _)| text.len() >= MIN_MAIN_BYTES);
    let (text, is_all) = match main {
        Some((text, is_all)) => (format!("{text}\n\n(The page's menus and margins are left out.)"), is_all),
        None => written(document.root()),
    };
    Readable { title, text, is_all: is_all && document.is_all }
}

/// The separation between the text so far and the next text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Gap {
    None,
    Space,
    Line,
    Paragraph,
}

/// Pending steps, the next one last.
enum Step {
    Enter(Id),
    Leave(Id),
}

struct Writer<'a> {
    document: &'a PageTree,
    base: &'a Url,
    out: String,
    gap: Gap,
    /// The prefixes of each further line.
    indents: Vec<&'static str>,
    /// The enclosing lists, with the next item's number in a numbered list.
    lists: Vec<Option<u64>>,
    /// The prefix of the next words: a list mark, or a heading mark.
    mark: String,
    /// The offset of the text of each enclosing link.
    links: Vec<usize>,
    /// The number of enclosing preformatted elements.
    preformatted: usize,
}

impl<'a> Writer<'a> {
    fn new(document: &'a PageTree, base: &'a Url) -> Self {
        Self {
            document,
            base,
            out: String::new(),
            gap: Gap::None,
            indents: Vec::new(),
            lists: Vec::new(),
            mark: String::new(),
            links: Vec::new(),
            preformatted: 0,
        }
    }

    fn write(mut self, from: Id) -> (String, bool) {
        let mut steps = vec![Step::Enter(from)];
        while let Some(step) = steps.pop() {
            if self.out.len() > MAX_TEXT_BYTES {
                return (self.out, false);
            }
            match step {
                Step::Enter(id) => {
                    if let Some(text) = self.document.text(id) {
                        self.write_text(text);
                    } else if self.enter_element(id) {
                        steps.push(Step::Leave(id));
                        steps.extend(self.document.children(id).iter().rev().map(|child| Step::Enter(*child)));
                    }
                }
                Step::Leave(id) => self.leave_element(id),
            }
        }
        (self.out, true)
    }

    /// Enters an element. Returns false if its content is hidden.
    fn enter_element(&mut self, id: Id) -> bool {
        if self.document.is_foreign(id) || is_hidden(self.document, id) {
            return false;
        }
        let Some(tag) = self.document.tag(id) else { return true };
        match tag {
            "br" => self.break_line(),
            "hr" => {
                self.widen_gap(Gap::Paragraph);
                self.write_word("---");
                self.widen_gap(Gap::Paragraph);
            }
            "img" => {
                let alt = self.document.attribute(id, "alt").map(str::trim).filter(|alt| !alt.is_empty());
                if let Some(alt) = alt {
                    self.write_text(&format!("(picture: {alt})"));
                }
            }
            "h1" | "h2" | "h3" | "h4" | "h5" | "h6" => {
                self.widen_gap(Gap::Paragraph);
                let level = tag.trim_start_matches('h').parse().unwrap_or(1);
                self.mark = format!("{} ", "#".repeat(level));
            }
            "ul" | "menu" | "ol" => {
                self.widen_gap(if self.lists.is_empty() { Gap::Paragraph } else { Gap::Line });
                let first =
                    self.document.attribute(id, "start").and_then(|first| first.trim().parse().ok()).unwrap_or(1);
                self.lists.push((tag == "ol").then_some(first));
            }
            "li" => {
                self.widen_gap(Gap::Line);
                self.mark = match self.lists.last_mut() {
                    Some(Some(number)) => {
                        *number = number.saturating_add(1);
                        format!("{}. ", number.saturating_sub(1))
                    }
                    _ => "- ".to_owned(),
                };
                self.indents.push("  ");
            }
            "blockquote" => {
                self.widen_gap(Gap::Paragraph);
                self.indents.push("> ");
            }
            "pre" => {
                self.widen_gap(Gap::Paragraph);
                self.write_word("```");
                self.widen_gap(Gap::Line);
                self.preformatted += 1;
            }
            "a" => self.links.push(self.out.len()),
            "td" | "th" => {
                let is_first = self.out.ends_with('\n') || self.gap >= Gap::Line || self.out.is_empty();
                if !is_first {
                    self.widen_gap(Gap::Space);
                    self.write_word("|");
                    self.widen_gap(Gap::Space);
                }
            }
            tag => self.widen_gap(choose_gap(tag)),
        }
        true
    }

    fn leave_element(&mut self, id: Id) {
        let Some(tag) = self.document.tag(id) else { return };
        match tag {
            "a" => {
                let began = self.links.pop().unwrap_or_default();
                // A link without text is a picture, or not meant for people.
                if let Some(url) = self.find_link(id).filter(|_| self.out.len() > began) {
                    self.widen_gap(Gap::Space);
                    self.write_word(&format!("({url})"));
                }
            }
            "h1" | "h2" | "h3" | "h4" | "h5" | "h6" => {
                self.mark.clear();
                self.widen_gap(Gap::Paragraph);
            }
            "ul" | "menu" | "ol" => {
                self.lists.pop();
                self.widen_gap(if self.lists.is_empty() { Gap::Paragraph } else { Gap::Line });
            }
            "li" => {
                self.mark.clear();
                self.indents.pop();
                self.widen_gap(Gap::Line);
            }
            "blockquote" => {
                self.indents.pop();
                self.widen_gap(Gap::Paragraph);
            }
            "pre" => {
                self.preformatted = self.preformatted.saturating_sub(1);
                self.widen_gap(Gap::Line);
                self.write_word("```");
                self.widen_gap(Gap::Paragraph);
            }
            "br" | "hr" | "img" | "td" | "th" => {}
            tag => self.widen_gap(choose_gap(tag)),
        }
    }

    /// Returns the address of a link to another page.
    fn find_link(&self, id: Id) -> Option<String> {
        let href = self.document.attribute(id, "href")?.trim();
        if href.is_empty() || href.starts_with('#') || href.len() > MAX_LINK_BYTES {
            return None;
        }
        let url = self.base.join(href).ok()?;
        let is_shown = matches!(url.scheme(), "http" | "https") && url.as_str().len() <= MAX_LINK_BYTES;
        is_shown.then(|| url.to_string())
    }

    /// Writes text of the page.
    fn write_text(&mut self, text: &str) {
        if self.preformatted > 0 {
            for line in text.split_inclusive('\n') {
                let words = line.trim_end_matches(['\n', '\r']);
                if !words.is_empty() {
                    self.write_word(words);
                }
                if line.ends_with('\n') {
                    self.break_line();
                }
            }
            return;
        }
        for (index, word) in text.split([' ', '\t', '\n', '\r', '\x0c']).enumerate() {
            if index > 0 {
                self.widen_gap(Gap::Space);
            }
            if !word.is_empty() {
                self.write_word(word);
            }
        }
    }

    /// Starts a new line; a second call adds an empty line.
    fn break_line(&mut self) {
        self.gap = if self.gap >= Gap::Line { Gap::Paragraph } else { Gap::Line };
    }

    fn widen_gap(&mut self, gap: Gap) {
        self.gap = self.gap.max(gap);
    }

    fn write_word(&mut self, word: &str) {
        let is_start = self.out.is_empty();
        match self.gap {
            Gap::Space if !is_start => self.out.push(' '),
            Gap::Line | Gap::Paragraph if !is_start => {
                self.out.push('\n');
                if self.gap == Gap::Paragraph {
                    self.out.push('\n');
                }
            }
            _ => {}
        }
        if is_start || self.gap >= Gap::Line {
            // A list mark takes the place of its item's indent; a heading mark doesn't.
            let own =
                usize::from(!self.mark.is_empty() && self.indents.last() == Some(&"  ") && !self.mark.starts_with('#'));
            let around = self.indents.len().saturating_sub(own).min(MAX_INDENTS);
            self.out.extend(self.indents.iter().take(around).copied());
        }
        self.gap = Gap::None;
        self.out.push_str(&std::mem::take(&mut self.mark));
        self.out.push_str(word);
    }
}

/// Returns the separation before and after an element.
fn choose_gap(tag: &str) -> Gap {
    match tag {
        "p" | "table" | "figure" | "dl" | "form" | "fieldset" | "article" | "section" | "header" | "footer" | "nav"
        | "aside" | "main" | "details" => Gap::Paragraph,
        "div" | "tr" | "caption" | "figcaption" | "dt" | "dd" | "address" | "summary" | "legend" | "option"
        | "body" | "thead" | "tbody" | "hgroup" | "search" | "center" => Gap::Line,
        "button" | "label" | "select" | "textarea" => Gap::Space,
        _ => Gap::None,
    }
}

/// Returns true if a browser hides an element, by its kind or its attributes. Style sheets aren't evaluated.
fn is_hidden(document: &PageTree, id: Id) -> bool {
    let Some(tag) = document.tag(id) else { return false };
    let attribute = |name| document.attribute(id, name);
    match tag {
        "head" | "script" | "style" | "template" | "iframe" | "object" | "embed" | "audio" | "video" | "canvas"
        | "datalist" | "noembed" | "noframes" | "input" | "title" | "link" | "meta" => return true,
        "dialog" if attribute("open").is_none() => return true,
        _ => {}
    }
    if attribute("hidden").is_some() {
        return true;
    }
    let Some(style) = attribute("style") else { return false };
    style.split(';').filter_map(|rule| rule.split_once(':')).any(|(name, value)| {
        let value = value.trim().to_ascii_lowercase();
        let value = value.trim_end_matches("!important").trim_end();
        match name.trim().to_ascii_lowercase().as_str() {
            "display" => value == "none",
            "visibility" => matches!(value, "hidden" | "collapse"),
            "content-visibility" => value == "hidden",
            "opacity" | "font-size" => {
                let number = value.trim_end_matches(|c: char| c.is_ascii_alphabetic() || c == '%');
                number.parse::<f64>().is_ok_and(|number| number <= 0.01)
            }
            _ => false,
        }
    })
}

#[cfg(test)]
mod tests;
