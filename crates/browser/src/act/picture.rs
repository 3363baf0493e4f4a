//! Pictures of a page, and clicks on them.

use base64::Engine as _;
use serde_json::{Value, json};

use super::point::{CheckMode, PagePoint};
use crate::{
    browser::Browser,
    cdp::CallError,
    error::{Fault, wrong},
    fields::MessageFields as _,
    references::NodeAddress,
    scripts,
    verb::{BrowserOutcome, PagePicture},
};

/// Maximum number of pictures that clicks may refer to.
const MAX_PICTURES: usize = 8;

/// A picture that was taken: clicks on it are bound to the page as it was.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct TakenPicture {
    name: String,
    tab: u32,
    loader: String,
    /// How far the page was scrolled.
    scroll: PagePoint,
    /// The picture's left upper corner in the window.
    origin: PagePoint,
    width: u32,
    height: u32,
}

impl Browser {
    /// The verb `screenshot`.
    pub(crate) async fn take_picture(&mut self, reference: Option<&str>) -> Result<BrowserOutcome, Fault> {
        // A look finds the secret fields, which are masked in the picture.
        let look = self.look_fresh().await?;
        let part = match reference {
            Some(reference) => Some(self.find_box(reference, CheckMode::See).await?),
            None => None,
        };
        let session = self.tab_session()?;
        let scroll = self.find_scroll(&session).await?;
        let mut params = json!({"format": "png", "optimizeForSpeed": true});
        let mut origin = PagePoint { x: 0.0, y: 0.0 };
        if let Some(part) = part {
            origin = PagePoint { x: part.left, y: part.top };
            params.set(
                "clip",
                json!({"x": part.left + scroll.x, "y": part.top + scroll.y,
                "width": part.width, "height": part.height, "scale": 1}),
            );
        }
        let masked = self.list_shown_secrets();
        self.mask_secrets(&masked, "on").await?;
        let answer = self.call_page(&session, "Page.captureScreenshot", params).await;
        self.mask_secrets(&masked, "off").await?;
        let png = decode_picture(&answer?)?;
        let (width, height) = (read_size(&png, 16), read_size(&png, 20));
        self.last_picture += 1;
        let name = format!("p{}", self.last_picture);
        let taken =
            TakenPicture { name: name.clone(), tab: self.current, loader: look.loader, scroll, origin, width, height };
        self.pictures.push(taken);
        let surplus = self.pictures.len().saturating_sub(MAX_PICTURES);
        self.pictures.drain(..surplus);
        let text = format!(
            "{}\nPicture {name}, {width} × {height} pixels. To click on it, give `picture`: \"{name}\" with `x` and `y`.",
            self.head_line()
        );
        let picture = Some(PagePicture { name, png, width, height });
        Ok(BrowserOutcome { text, picture, ..BrowserOutcome::default() })
    }

    async fn find_scroll(&self, session: &str) -> Result<PagePoint, CallError> {
        let metrics = self.call_page(session, "Page.getLayoutMetrics", json!({})).await?;
        let view = &metrics.at("cssVisualViewport");
        Ok(PagePoint { x: view.number("pageX"), y: view.number("pageY") })
    }

    fn list_shown_secrets(&self) -> Vec<NodeAddress> {
        let is_shown =
            |address: &&NodeAddress| self.frame(&address.frame).is_some_and(|frame| frame.loader == address.loader);
        self.secrets.iter().filter(is_shown).cloned().collect()
    }

    async fn mask_secrets(&mut self, secrets: &[NodeAddress], how: &str) -> Result<(), Fault> {
        for secret in secrets {
            match self.call_on_node(secret, scripts::MASK, &[json!(how)]).await {
                // A field that is gone isn't in the picture.
                Ok(_) | Err(Fault::Call(CallError::Detached)) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// The point of the window that a point of a picture shows. Refused if the page has moved since.
    pub(crate) async fn find_picture_point(&mut self, name: &str, point: PagePoint) -> Result<PagePoint, Fault> {
        let Some(picture) = self.pictures.iter().find(|picture| picture.name == name).cloned() else {
            return Err(wrong(format!("There is no picture {name}; take one with `screenshot`.")));
        };
        let is_inside =
            (0.0..f64::from(picture.width)).contains(&point.x) && (0.0..f64::from(picture.height)).contains(&point.y);
        if !is_inside {
            return Err(wrong(format!(
                "The point lies outside the picture of {} × {} pixels.",
                picture.width, picture.height
            )));
        }
        let tab = self.ensure_tab().await?;
        let loader = self.frame(&tab.frame).map(|frame| frame.loader).unwrap_or_default();
        let scroll = self.find_scroll(&tab.session).await?;
        let has_moved = (scroll.x - picture.scroll.x).abs() >= 1.0 || (scroll.y - picture.scroll.y).abs() >= 1.0;
        if picture.tab != self.current || picture.loader != loader || has_moved {
            let why = format!("{name} shows the page as it was before: take another picture.");
            return Err(self.refuse_stale(why).await);
        }
        Ok(PagePoint { x: picture.origin.x + point.x, y: picture.origin.y + point.y })
    }

    /// The node at a point of a picture; `None` if the page names none.
    pub(crate) async fn find_picture_node(&mut self, name: &str, x: f64, y: f64) -> Result<Option<NodeAddress>, Fault> {
        let point = self.find_picture_point(name, PagePoint { x, y }).await?;
        let session = self.tab_session()?;
        let place = json!({"x": point.x.round(), "y": point.y.round(), "includeUserAgentShadowDOM": false});
        let Ok(found) = self.call_page(&session, "DOM.getNodeForLocation", place).await else { return Ok(None) };
        let id = found.text("frameId");
        let Some(frame) = self.frame(id) else { return Ok(None) };
        let Some(node) = found.at("backendNodeId").as_i64() else { return Ok(None) };
        Ok(Some(NodeAddress { session: frame.session, frame: id.to_owned(), loader: frame.loader, node }))
    }
}

fn decode_picture(answer: &Value) -> Result<Vec<u8>, CallError> {
    let data = answer.text("data");
    let decoded = base64::engine::general_purpose::STANDARD.decode(data);
    decoded.map_err(|_| CallError::Refused("the picture can't be read".to_owned()))
}

/// Reads a number of a PNG's header.
fn read_size(png: &[u8], at: usize) -> u32 {
    let bytes = png.get(at..at + 4).and_then(|bytes| <[u8; 4]>::try_from(bytes).ok());
    bytes.map_or(0, u32::from_be_bytes)
}
