//! The verbs of the browser: the input of its tool, and what comes back.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One thing to do in the browser.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "verb", rename_all = "snake_case", deny_unknown_fields)]
pub enum Verb {
    /// Open an address in the current tab.
    Navigate {
        /// An http or https address.
        url: String,
    },
    /// Look at the page: whole once, then only what changed.
    Look {
        /// Show the whole page again.
        #[serde(default)]
        whole: bool,
        /// Begin at this line of the page, for long pages.
        #[serde(default)]
        from: usize,
    },
    /// Find the lines of the page that contain a text.
    Find {
        /// The text, in any case.
        text: String,
    },
    /// Click an element.
    Click(ActPlace),
    /// Click an element twice.
    DoubleClick(ActPlace),
    /// Click an element with the right button.
    RightClick(ActPlace),
    /// Move the pointer over an element.
    Hover(ActPlace),
    /// Drag an element to another one.
    Drag {
        /// What to drag.
        from: ActPlace,
        /// Where to drop it.
        to: ActPlace,
    },
    /// Type into a field, in place of what it holds.
    Type {
        /// The field, such as `r12`.
        #[serde(rename = "ref")]
        reference: String,
        /// The text.
        text: String,
        /// Keep what the field holds, and add the text.
        #[serde(default)]
        append: bool,
        /// Press Enter afterwards.
        #[serde(default)]
        enter: bool,
    },
    /// Choose options of a list by their labels.
    Select {
        /// The list, such as `r12`.
        #[serde(rename = "ref")]
        reference: String,
        /// The labels; all others are deselected.
        options: Vec<String>,
    },
    /// Press a key, such as `Enter`, `Escape`, `ArrowDown` or `Control+A`.
    Press {
        /// The key.
        key: String,
        /// The element to focus first.
        #[serde(rename = "ref", default)]
        reference: Option<String>,
    },
    /// Scroll the page, or the scrollable part that an element lies in.
    Scroll {
        /// Where to.
        direction: ScrollDirection,
        /// An element inside the part to scroll.
        #[serde(rename = "ref", default)]
        reference: Option<String>,
    },
    /// Go back to the previous page of this tab.
    Back,
    /// List, open, switch or close tabs.
    Tabs(TabAct),
    /// Read the page's text without references.
    Read {
        /// Begin at this character.
        #[serde(default)]
        from: usize,
    },
    /// Take a picture of the visible part of the page, or of one element.
    Screenshot {
        /// The element.
        #[serde(rename = "ref", default)]
        reference: Option<String>,
    },
    /// Wait for a state of the page.
    Wait(AwaitedState),
    /// Put files into a field for files, or into the chooser that a button opens.
    Upload {
        /// The field or the button.
        #[serde(rename = "ref")]
        reference: String,
        /// The files, in a folder that is open for this.
        files: Vec<PathBuf>,
    },
    /// Click something that starts a download and wait for it; without `ref` wait for running downloads.
    Download {
        /// The element.
        #[serde(rename = "ref", default)]
        reference: Option<String>,
    },
    /// Answer a dialog.
    Dialog {
        /// Accept or dismiss it.
        answer: DialogAnswer,
        /// The text for a prompt.
        #[serde(default)]
        text: Option<String>,
    },
    /// Show the address and the title of the current tab.
    Url,
}

/// A place to act on: an element by its reference, or a point of a picture.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ActPlace {
    /// The element, such as `r12`.
    #[serde(rename = "ref", default, skip_serializing_if = "Option::is_none")]
    pub reference: Option<String>,
    /// The picture that x and y belong to, such as `p3`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub picture: Option<String>,
    /// Pixels from the picture's left edge.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub x: Option<f64>,
    /// Pixels from the picture's top edge.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub y: Option<f64>,
}

/// A direction to scroll in: by most of a window, or to an end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ScrollDirection {
    /// One window up.
    Up,
    /// One window down.
    Down,
    /// One window to the left.
    Left,
    /// One window to the right.
    Right,
    /// To the beginning.
    Top,
    /// To the end.
    Bottom,
}

/// Something to do with tabs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "act", rename_all = "snake_case", deny_unknown_fields)]
pub enum TabAct {
    /// List all tabs.
    List,
    /// Open a tab, and switch to it.
    Open {
        /// Its address.
        url: String,
    },
    /// Switch to a tab.
    Switch {
        /// Its number.
        tab: u32,
    },
    /// Close a tab.
    Close {
        /// Its number.
        tab: u32,
    },
}

/// A state to wait for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "for", rename_all = "snake_case", deny_unknown_fields)]
pub enum AwaitedState {
    /// The page shows a text.
    Text {
        /// The text, in any case.
        text: String,
    },
    /// The page no longer shows a text.
    TextGone {
        /// The text, in any case.
        text: String,
    },
    /// An element can be clicked.
    Element {
        /// The element.
        #[serde(rename = "ref")]
        reference: String,
    },
    /// The address contains a text.
    Address {
        /// The text.
        text: String,
    },
    /// The page has loaded and requests hardly anything.
    Idle,
}

/// The answer to a dialog.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DialogAnswer {
    /// OK.
    Accept,
    /// Cancel.
    Dismiss,
}

/// What a verb did.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct BrowserOutcome {
    /// The report. What stands in it from the page is untrusted.
    pub text: String,
    /// A picture of the page.
    pub picture: Option<PagePicture>,
    /// What is different now, in our own words: address, tabs, dialog, downloads. Empty if nothing is.
    pub changes: Vec<String>,
    /// Files that arrived, in the folder for downloads.
    pub files: Vec<PathBuf>,
}

/// A picture of a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PagePicture {
    /// Its name for clicks, such as `p3`.
    pub name: String,
    /// The picture as PNG.
    pub png: Vec<u8>,
    /// Width in pixels.
    pub width: u32,
    /// Height in pixels.
    pub height: u32,
}
