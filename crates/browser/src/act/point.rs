//! From a reference or a picture to a point of the page that can be clicked.

use reveille_base::words::truncate_text;
use serde_json::{Value, json};

use crate::{
    browser::Browser,
    cdp::CallError,
    error::{BrowserError, Fault, blocked, wrong},
    events::FrameState,
    fields::MessageFields as _,
    look::clean::clean_line,
    references::NodeAddress,
    scripts,
    verb::ActPlace,
};

/// Maximum number of frames around an element.
const MAX_FRAMES: usize = 20;

/// How strictly an element is checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CheckMode {
    /// It can be acted on: visible, enabled, not covered.
    Act,
    /// The pointer can reach it: visible, not covered.
    Reach,
    /// It can be seen.
    See,
}

impl CheckMode {
    fn word(self) -> &'static str {
        match self {
            Self::Act => "act",
            Self::Reach => "reach",
            Self::See => "see",
        }
    }
}

/// A point of the visible page, in CSS pixels.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct PagePoint {
    pub(crate) x: f64,
    pub(crate) y: f64,
}

/// The visible part of an element.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct VisibleBox {
    /// The point to click.
    pub(crate) point: PagePoint,
    pub(crate) left: f64,
    pub(crate) top: f64,
    pub(crate) width: f64,
    pub(crate) height: f64,
}

impl Browser {
    /// Finds the node of a reference. One that is out of date is refused with a fresh look.
    pub(crate) async fn find_node(&mut self, reference: &str) -> Result<NodeAddress, Fault> {
        let Some(address) = self.references.find(reference).cloned() else {
            let why = format!("\"{}\" isn't a reference of this browser.", truncate_text(reference, 40));
            return Err(self.refuse_stale(why).await);
        };
        let owner = self.shared.with(|state| {
            let is_current = state.frames.get(&address.frame).is_some_and(|frame| frame.loader == address.loader);
            let owns = |tab: &&crate::events::TabState| state.list_frames(tab).contains(&address.frame);
            state.tabs.iter().filter(|_| is_current).find(owns).map(|tab| tab.number)
        });
        match owner {
            Some(number) if number == self.current => Ok(address),
            Some(number) => Err(wrong(format!("{reference} is in tab {number}: switch to that tab first."))),
            None => {
                let why = format!("{reference} belongs to a page that is no longer shown.");
                Err(self.refuse_stale(why).await)
            }
        }
    }

    /// A refusal with a fresh look.
    pub(crate) async fn refuse_stale(&mut self, why: String) -> Fault {
        match self.look_fresh().await {
            Ok(fresh) => {
                let look = format!("{}\n{}", self.head_line(), self.format_whole(&fresh, 0));
                self.keep_look(fresh);
                BrowserError::ChooseFromLook { why, look }.into()
            }
            Err(error) => error,
        }
    }

    /// Calls a function on the node of a reference; a node that is gone is refused with a fresh look.
    pub(crate) async fn call_on_reference(
        &mut self,
        reference: &str,
        function: &str,
        args: &[Value],
    ) -> Result<Value, Fault> {
        let address = self.find_node(reference).await?;
        match self.call_on_node(&address, function, args).await {
            Err(Fault::Call(CallError::Detached)) => {
                Err(self.refuse_stale(format!("{reference} is no longer on the page.")).await)
            }
            result => result,
        }
    }

    /// Finds a point to act on.
    pub(crate) async fn find_point(&mut self, place: &ActPlace, mode: CheckMode) -> Result<PagePoint, Fault> {
        match (&place.reference, &place.picture, place.x, place.y) {
            (Some(reference), None, None, None) => Ok(self.find_box(reference, mode).await?.point),
            (None, Some(picture), Some(x), Some(y)) => self.find_picture_point(picture, PagePoint { x, y }).await,
            _ => Err(wrong("Give either `ref`, or `picture` with `x` and `y`.")),
        }
    }

    /// Brings an element into view and finds its visible part.
    pub(crate) async fn find_box(&mut self, reference: &str, mode: CheckMode) -> Result<VisibleBox, Fault> {
        let answer = self.call_on_reference(reference, scripts::PREPARE, &[json!(mode.word())]).await?;
        self.check_problem(reference, &answer).await?;
        let number = |key: &str| answer.number(key);
        let (x, y) = (number("x"), number("y"));
        let address = self.find_node(reference).await?;
        let point = self.leave_frames(reference, &address, PagePoint { x, y }, mode).await?;
        let (left, top) = (number("left") + point.x - x, number("top") + point.y - y);
        Ok(VisibleBox { point, left, top, width: number("width"), height: number("height") })
    }

    /// Moves a point out of all frames around its element, into the page.
    async fn leave_frames(
        &mut self,
        reference: &str,
        address: &NodeAddress,
        point: PagePoint,
        mode: CheckMode,
    ) -> Result<PagePoint, Fault> {
        let (mut point, mut id) = (point, address.frame.clone());
        for _ in 0..MAX_FRAMES {
            let Some(parent) = self.frame(&id).and_then(|frame| frame.parent) else { break };
            let Some(FrameState { session, loader, .. }) = self.frame(&parent) else { break };
            let owner = self.call_page(&session, "DOM.getFrameOwner", json!({"frameId": id})).await?;
            let node = owner.at("backendNodeId").as_i64().ok_or(CallError::Detached)?;
            let owner = NodeAddress { session, frame: parent.clone(), loader, node };
            let args = [json!(point.x), json!(point.y), json!(mode.word())];
            let answer = self.call_on_node(&owner, scripts::THROUGH_FRAME, &args).await?;
            self.check_problem(reference, &answer).await?;
            point = PagePoint { x: answer.number("x"), y: answer.number("y") };
            id = parent;
        }
        Ok(point)
    }

    /// Refuses an element that a script found a problem with.
    pub(crate) async fn check_problem(&mut self, reference: &str, answer: &Value) -> Result<(), Fault> {
        let Some(problem) = answer.at("problem").as_str() else { return Ok(()) };
        let why = match problem {
            "gone" => return Err(self.refuse_stale(format!("{reference} is no longer on the page.")).await),
            "disabled" => format!("{reference} is disabled."),
            "hidden" => format!("{reference} isn't visible, and can't be scrolled into view."),
            "read-only" => format!("{reference} is read-only."),
            "no-text" => format!("{reference} isn't a field for text."),
            "select" => format!("{reference} is a list: use `select`."),
            "no-list" => format!("{reference} isn't a plain list: click it, and then click an option."),
            "covered" => {
                let by = clean_line(answer.at("by").as_str().unwrap_or("something"), 60);
                let said = clean_line(answer.text("said"), 60);
                let said = if said.is_empty() { String::new() } else { format!(" (\"{said}\")") };
                format!("{reference} is covered by {by}{said}.")
            }
            other => format!("{reference} can't be used: {other}."),
        };
        Err(blocked(why))
    }
}
