//! The keyboard: keys by name, and characters.

use serde_json::{Value, json};

use crate::{
    browser::Browser,
    cdp::CallError,
    error::{Fault, wrong},
    verb::BrowserOutcome,
};

/// A key press as the protocol wants it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct KeyPress {
    key: String,
    code: String,
    number: u32,
    text: String,
    /// Alt 1, Control 2, Meta 4, Shift 8.
    modifiers: u32,
}

/// A named key.
struct NamedKey {
    name: &'static str,
    number: u32,
    text: &'static str,
}

const fn key(name: &'static str, number: u32) -> NamedKey {
    NamedKey { name, number, text: "" }
}

/// Keys by their names in the DOM.
const KEYS: [NamedKey; 28] = [
    NamedKey { name: "Enter", number: 13, text: "\r" },
    key("Tab", 9),
    key("Escape", 27),
    key("Backspace", 8),
    key("Delete", 46),
    key("Insert", 45),
    key("Home", 36),
    key("End", 35),
    key("PageUp", 33),
    key("PageDown", 34),
    key("ArrowLeft", 37),
    key("ArrowUp", 38),
    key("ArrowRight", 39),
    key("ArrowDown", 40),
    key("F1", 112),
    key("F2", 113),
    key("F3", 114),
    key("F4", 115),
    key("F5", 116),
    key("F6", 117),
    key("F7", 118),
    key("F8", 119),
    key("F9", 120),
    key("F10", 121),
    key("F11", 122),
    key("F12", 123),
    key("ContextMenu", 93),
    key("Pause", 19),
];
/// Other names that people use.
const OTHER_NAMES: [[&str; 2]; 10] = [
    ["return", "Enter"],
    ["esc", "Escape"],
    ["del", "Delete"],
    ["left", "ArrowLeft"],
    ["up", "ArrowUp"],
    ["right", "ArrowRight"],
    ["down", "ArrowDown"],
    ["page_up", "PageUp"],
    ["page_down", "PageDown"],
    ["space", " "],
];

impl KeyPress {
    /// Reads a key such as `Enter`, `a` or `Control+Shift+K`.
    fn parse(text: &str) -> Option<Self> {
        let (modifiers, name) = split_modifiers(text)?;
        let lower = name.to_lowercase();
        let name = OTHER_NAMES.iter().find(|[other, _]| *other == lower).map_or(name, |[_, name]| *name);
        if let Some(known) = KEYS.iter().find(|known| known.name.eq_ignore_ascii_case(name)) {
            let text = if modifiers & 7 == 0 { known.text } else { "" };
            return Some(Self {
                key: known.name.to_owned(),
                code: known.name.to_owned(),
                number: known.number,
                text: text.to_owned(),
                modifiers,
            });
        }
        let mut chars = name.chars();
        let char = chars.next().filter(|_| chars.next().is_none())?;
        let mut press = Self::from_char(char);
        press.modifiers = modifiers;
        if modifiers & 7 != 0 {
            press.text.clear();
        }
        Some(press)
    }

    fn from_char(char: char) -> Self {
        let upper = char.to_ascii_uppercase();
        let (code, number) = match upper {
            'A'..='Z' => (format!("Key{upper}"), u32::from(upper)),
            '0'..='9' => (format!("Digit{upper}"), u32::from(upper)),
            ' ' => ("Space".to_owned(), 32),
            _ => (String::new(), 0),
        };
        let modifiers = if char.is_ascii_uppercase() { 8 } else { 0 };
        Self { key: char.to_string(), code, number, text: char.to_string(), modifiers }
    }

    fn event(&self, kind: &str) -> Value {
        let text = if kind == "keyDown" { self.text.as_str() } else { "" };
        let kind = if kind == "keyDown" && text.is_empty() { "rawKeyDown" } else { kind };
        json!({"type": kind, "key": self.key, "code": self.code, "windowsVirtualKeyCode": self.number,
            "nativeVirtualKeyCode": self.number, "modifiers": self.modifiers, "text": text, "unmodifiedText": text})
    }
}

fn split_modifiers(text: &str) -> Option<(u32, &str)> {
    let (mut modifiers, mut rest) = (0, if text == " " { text } else { text.trim() });
    while let Some((modifier, after)) =
        rest.split_once('+').filter(|(before, after)| !before.is_empty() && !after.is_empty())
    {
        modifiers |= match modifier.to_lowercase().as_str() {
            "alt" | "option" => 1,
            "control" | "ctrl" => 2,
            "meta" | "cmd" | "command" => 4,
            "shift" => 8,
            _ => return None,
        };
        rest = after;
    }
    Some((modifiers, rest))
}

impl Browser {
    /// The verb `press`.
    pub(crate) async fn press(&mut self, key: &str, reference: Option<&str>) -> Result<BrowserOutcome, Fault> {
        let press = KeyPress::parse(key).ok_or_else(|| {
            wrong(format!("\"{key}\" isn't a key; keys are such as Enter, Escape, ArrowDown, a, Control+A."))
        })?;
        let before = self.note_state();
        if let Some(reference) = reference {
            self.call_on_reference(reference, "function () { this.focus({preventScroll: true}); }", &[]).await?;
        }
        self.send_key(&press).await?;
        self.report(&before, "Pressed.").await
    }

    /// Presses Enter in the focused element.
    pub(super) async fn press_enter(&mut self) -> Result<(), Fault> {
        match KeyPress::parse("Enter") {
            Some(press) => self.send_key(&press).await,
            None => Ok(()),
        }
    }

    /// Presses Delete in the focused element.
    pub(super) async fn press_delete(&mut self) -> Result<(), Fault> {
        match KeyPress::parse("Delete") {
            Some(press) => self.send_key(&press).await,
            None => Ok(()),
        }
    }

    /// Types a character with its key events, which pages that suggest or format listen to.
    pub(super) async fn type_char(&mut self, char: char) -> Result<(), Fault> {
        self.send_key(&KeyPress::from_char(char)).await
    }

    async fn send_key(&self, press: &KeyPress) -> Result<(), Fault> {
        for kind in ["keyDown", "keyUp"] {
            match self.call_page(&self.tab_session()?, "Input.dispatchKeyEvent", press.event(kind)).await {
                Ok(_) => {}
                // The page went elsewhere or shows a dialog: the report tells.
                Err(CallError::Dialog | CallError::Detached) => return Ok(()),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_read_by_name() {
        let parsed = |text: &str| KeyPress::parse(text).map(|press| (press.key, press.text, press.modifiers));
        let press = |key: &str, text: &str, modifiers| Some((key.to_owned(), text.to_owned(), modifiers));
        assert_eq!(parsed("Enter"), press("Enter", "\r", 0));
        assert_eq!(parsed("return"), press("Enter", "\r", 0));
        assert_eq!(parsed("Control+A"), press("A", "", 2));
        assert_eq!(parsed("ctrl+shift+ArrowDown"), press("ArrowDown", "", 10));
        assert_eq!(parsed("+"), press("+", "+", 0));
        assert_eq!(parsed("Space"), press(" ", " ", 0));
        assert_eq!(parsed("ü"), press("ü", "ü", 0));
        for unknown in ["", "Hyper+A", "Nonsense", "ab"] {
            assert_eq!(parsed(unknown), None, "{unknown}");
        }
    }
}
