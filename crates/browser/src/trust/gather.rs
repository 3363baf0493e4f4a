//! The facts that decide whether a verb asks, as the page tells them.

use url::Url;

use super::{ElementFacts, Trust, TrustFacts, judge_verb};
use crate::{
    browser::Browser,
    cdp::CallError,
    error::{BrowserError, Fault},
    references::NodeAddress,
    scripts,
    verb::{ActPlace, TabAct, Verb},
};

impl Browser {
    /// Judges a verb on the page as it is. `named` are the addresses that a person named.
    ///
    /// # Errors
    /// As for [`Browser::run`]: the element may be gone, or the page may hang.
    pub async fn consider(&mut self, verb: &Verb, named: &[String]) -> Result<Trust, BrowserError> {
        let element = match self.describe_element(verb).await {
            Ok(element) => element,
            Err(Fault::Told(error)) => return Err(error),
            // The verb itself reports what is wrong with the page.
            Err(Fault::Call(CallError::Dialog)) => None,
            Err(Fault::Call(error)) => return Err(BrowserError::TryOnce(error.to_string())),
        };
        let facts = TrustFacts {
            page: self.address(),
            element,
            is_known_address: self.is_known_address(verb, named),
            dialog: self.open_dialog().map(|dialog| dialog.message),
        };
        match judge_verb(verb, &facts) {
            Trust::Free => Ok(Trust::Free),
            Trust::Asks(mut question) => {
                question.what = self.mask.mask_text(question.what);
                for value in &mut question.values {
                    value.value = value.value.take().map(|value| self.mask.mask_text(value));
                }
                Ok(Trust::Asks(question))
            }
        }
    }

    fn is_known_address(&self, verb: &Verb, named: &[String]) -> bool {
        let (Verb::Navigate { url } | Verb::Tabs(TabAct::Open { url })) = verb else { return false };
        let Ok(url) = Url::parse(url) else { return false };
        let is_named = named.iter().any(|named| is_same_address(named, &url));
        is_named || self.seen_links.contains(url.as_str())
    }

    async fn describe_element(&mut self, verb: &Verb) -> Result<Option<ElementFacts>, Fault> {
        let address = match verb {
            Verb::Click(place) | Verb::DoubleClick(place) | Verb::Drag { from: place, .. } => {
                self.find_place_node(place).await?
            }
            Verb::Type { reference, .. } | Verb::Upload { reference, .. } => Some(self.find_node(reference).await?),
            Verb::Press { reference: Some(reference), .. } | Verb::Download { reference: Some(reference) } => {
                Some(self.find_node(reference).await?)
            }
            Verb::Press { .. } => return self.describe_focused().await,
            _ => None,
        };
        let Some(address) = address else { return Ok(None) };
        let is_secret = self.secrets.contains(&address);
        let facts = self.call_on_node(&address, scripts::DESCRIBE, &[]).await?;
        Ok(serde_json::from_value(facts)
            .ok()
            .map(|facts: ElementFacts| ElementFacts { is_secret: facts.is_secret || is_secret, ..facts }))
    }

    async fn describe_focused(&mut self) -> Result<Option<ElementFacts>, Fault> {
        let function = format!(
            "function () {{ let e = document.activeElement; while (e && e.shadowRoot && e.shadowRoot.activeElement) \
             e = e.shadowRoot.activeElement; return e ? ({}).call(e) : null; }}",
            scripts::DESCRIBE
        );
        let tab = self.ensure_tab().await?;
        let facts = self.call_in_frame(&tab.frame, &function, &[]).await?;
        Ok(serde_json::from_value(facts).ok())
    }

    async fn find_place_node(&mut self, place: &ActPlace) -> Result<Option<NodeAddress>, Fault> {
        if let Some(reference) = &place.reference {
            return Ok(Some(self.find_node(reference).await?));
        }
        let (Some(name), Some(x), Some(y)) = (&place.picture, place.x, place.y) else { return Ok(None) };
        self.find_picture_node(name, x, y).await
    }
}

/// Compares an address that a person named with a URL. A person leaves out the scheme and the last slash.
fn is_same_address(named: &str, url: &Url) -> bool {
    let named = named.trim();
    let candidates = [named.to_owned(), format!("https://{named}"), format!("http://{named}")];
    candidates.iter().filter_map(|text| Url::parse(text).ok()).any(|named| named.as_str() == url.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_named_address_is_compared_whole() {
        assert!(is_same_address("shop.example", &Url::parse("https://shop.example/").unwrap()));
        assert!(!is_same_address("shop.example", &Url::parse("https://shop.example/?a=b").unwrap()));
    }
}
