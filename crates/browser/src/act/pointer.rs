//! The mouse: clicking, hovering, dragging, scrolling.

use std::time::Duration;

use serde_json::{Value, json};

use super::point::{CheckMode, PagePoint, VisibleBox};
use crate::{
    browser::Browser,
    cdp::CallError,
    error::Fault,
    events::BrowserState,
    fields::MessageFields as _,
    scripts,
    verb::{ActPlace, BrowserOutcome, ScrollDirection},
};

/// How far beyond the middle of its target a drag ends, as a part of the target's size.
const BEYOND: f64 = 0.2;
/// Number of moves between the ends of a drag.
const DRAG_STEPS: u32 = 12;
/// Pixels that the pointer moves first.
const DRAG_THRESHOLD: [f64; 3] = [2.0, 5.0, 9.0];
/// How long a page has to begin a drag of its own after the pointer moved.
const DRAG_BEGINS: Duration = Duration::from_millis(300);

/// A kind of click.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ClickKind {
    Single,
    Double,
    Right,
}

impl ClickKind {
    fn done(self) -> &'static str {
        match self {
            Self::Single => "Clicked.",
            Self::Double => "Clicked twice.",
            Self::Right => "Clicked with the right button.",
        }
    }
}

/// A mouse event at a point.
#[derive(Debug, Clone, Copy)]
struct MouseEvent {
    kind: &'static str,
    point: PagePoint,
    button: &'static str,
    /// The buttons that are down, as the protocol numbers them.
    buttons: u32,
    clicks: u32,
}

impl Browser {
    /// Clicks a place after checking it.
    pub(crate) async fn click(&mut self, place: &ActPlace, kind: ClickKind) -> Result<BrowserOutcome, Fault> {
        let before = self.note_state();
        let point = self.find_point(place, CheckMode::Act).await?;
        self.send_mouse(MouseEvent { kind: "mouseMoved", point, button: "none", buttons: 0, clicks: 0 }).await?;
        // Some elements change under the pointer.
        let point = self.find_point(place, CheckMode::Act).await?;
        self.click_point(point, kind).await?;
        self.report(&before, kind.done()).await
    }

    /// Clicks a point. A dialog that opens is no failure.
    pub(crate) async fn click_point(&mut self, point: PagePoint, kind: ClickKind) -> Result<(), Fault> {
        let (button, buttons) = if kind == ClickKind::Right { ("right", 2) } else { ("left", 1) };
        let mut events = vec![MouseEvent { kind: "mouseMoved", point, button: "none", buttons: 0, clicks: 0 }];
        for clicks in 1..=if kind == ClickKind::Double { 2 } else { 1 } {
            events.push(MouseEvent { kind: "mousePressed", point, button, buttons, clicks });
            events.push(MouseEvent { kind: "mouseReleased", point, button, buttons: 0, clicks });
        }
        for event in events {
            match self.send_mouse(event).await {
                Ok(()) => {}
                // The page went elsewhere, closed itself, or shows a dialog: the report tells.
                Err(CallError::Dialog | CallError::Detached) => return Ok(()),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    async fn send_mouse(&self, event: MouseEvent) -> Result<(), CallError> {
        let MouseEvent { kind, point, button, buttons, clicks } = event;
        let params = json!({"type": kind, "x": point.x, "y": point.y, "button": button, "buttons": buttons, "clickCount": clicks});
        self.call_page(&self.tab_session()?, "Input.dispatchMouseEvent", params).await.map(drop)
    }

    pub(crate) fn tab_session(&self) -> Result<String, CallError> {
        self.shared.with(|state| state.tab(self.current).map(|tab| tab.session.clone())).ok_or(CallError::Detached)
    }

    /// Moves the pointer over a place.
    pub(crate) async fn hover(&mut self, place: &ActPlace) -> Result<BrowserOutcome, Fault> {
        let before = self.note_state();
        let point = self.find_point(place, CheckMode::Reach).await?;
        self.send_mouse(MouseEvent { kind: "mouseMoved", point, button: "none", buttons: 0, clicks: 0 }).await?;
        self.report(&before, "The pointer is there.").await
    }

    /// Drags from one place to another.
    pub(crate) async fn drag(&mut self, from: &ActPlace, to: &ActPlace) -> Result<BrowserOutcome, Fault> {
        let before = self.note_state();
        // Both are brought into view; the second may have moved the first, which is checked last.
        self.find_point(to, CheckMode::See).await?;
        let start = self.find_point(from, CheckMode::Act).await?;
        let end = match &to.reference {
            Some(reference) => aim_beyond(start, &self.find_box(reference, CheckMode::See).await?),
            None => self.find_point(to, CheckMode::See).await?,
        };
        let session = self.tab_session()?;
        self.shared.with(|state| state.tab_mut(self.current).map(|tab| tab.drag = None));
        self.call_page(&session, "Input.setInterceptDrags", json!({"enabled": true})).await?;
        let moved = self.move_pressed(start, end).await;
        self.call_page(&session, "Input.setInterceptDrags", json!({"enabled": false})).await.ok();
        moved?;
        self.report(&before, "Dragged.").await
    }

    async fn move_pressed(&mut self, start: PagePoint, end: PagePoint) -> Result<(), Fault> {
        let event = |kind, point, buttons| MouseEvent { kind, point, button: "left", buttons, clicks: 1 };
        self.send_mouse(MouseEvent { kind: "mouseMoved", point: start, button: "none", buttons: 0, clicks: 0 }).await?;
        self.send_mouse(event("mousePressed", start, 1)).await?;
        // A drag begins once the pointer has left its place by some pixels.
        for away in DRAG_THRESHOLD {
            let point = PagePoint { x: start.x + away, y: start.y + away };
            self.send_mouse(event("mouseMoved", point, 1)).await?;
        }
        // A page with elements of its own to drag says so now.
        let current = self.current;
        let begun = |state: &mut BrowserState| state.tab(current).and_then(|tab| tab.drag.clone());
        let drag = self.shared.wait_for(DRAG_BEGINS, begun).await;
        for step in 1..=DRAG_STEPS {
            let part = f64::from(step) / f64::from(DRAG_STEPS);
            let point = PagePoint { x: start.x + (end.x - start.x) * part, y: start.y + (end.y - start.y) * part };
            match &drag {
                Some(data) => self.send_drag(if step == 1 { "dragEnter" } else { "dragOver" }, point, data).await?,
                None => self.send_mouse(event("mouseMoved", point, 1)).await?,
            }
        }
        if let Some(data) = &drag {
            self.send_drag("dragOver", end, data).await?;
            self.send_drag("drop", end, data).await?;
        }
        self.send_mouse(event("mouseReleased", end, 0)).await?;
        Ok(())
    }

    async fn send_drag(&self, kind: &str, point: PagePoint, data: &Value) -> Result<(), CallError> {
        let params = json!({"type": kind, "x": point.x, "y": point.y, "data": data});
        self.call_page(&self.tab_session()?, "Input.dispatchDragEvent", params).await.map(drop)
    }

    /// Scrolls the page or a part of it.
    pub(crate) async fn scroll(
        &mut self,
        direction: ScrollDirection,
        reference: Option<&str>,
    ) -> Result<BrowserOutcome, Fault> {
        let before = self.note_state();
        let args = [json!(direction)];
        let tab = self.ensure_tab().await?;
        let answer = match reference {
            Some(reference) => self.call_on_reference(reference, scripts::SCROLL, &args).await?,
            None => self.call_in_frame(&tab.frame, scripts::SCROLL, &args).await?,
        };
        let position = format!("{} of {} pixels", answer.at("at"), answer.at("of"));
        let done = match answer.at("moved").as_bool() {
            Some(true) => format!("Scrolled; now at {position}."),
            _ => format!("It doesn't scroll further; at {position}."),
        };
        self.report(&before, &done).await
    }
}

/// A point a bit beyond the middle of a target: lists that are sorted by dragging want that.
fn aim_beyond(start: PagePoint, target: &VisibleBox) -> PagePoint {
    let PagePoint { x, y } = target.point;
    let (across, down) = (x - start.x, y - start.y);
    if across.abs() > down.abs() {
        PagePoint { x: x + BEYOND * target.width * across.signum(), y }
    } else {
        PagePoint { x, y: y + BEYOND * target.height * down.signum() }
    }
}
