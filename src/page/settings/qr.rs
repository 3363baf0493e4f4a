//! A link as a QR code: inline SVG, dark on light in both themes, since cameras expect that.

use std::fmt::Write as _;

use maud::{Markup, html};
use qrcode::{Color, QrCode};

/// The blank squares around a code that cameras need.
const QUIET: usize = 4;

/// Renders the code. `None` if the text is too long for one.
pub(super) fn render_qr(text: &str, label: &str) -> Option<Markup> {
    let code = QrCode::new(text.as_bytes()).ok()?;
    let (width, colors) = (code.width(), code.to_colors());
    let mut path = String::new();
    for (row, squares) in colors.chunks(width).enumerate() {
        for (column, _) in squares.iter().enumerate().filter(|(_, color)| **color == Color::Dark) {
            write!(path, "M{} {}h1v1h-1z", column + QUIET, row + QUIET).ok()?;
        }
    }
    let side = width + 2 * QUIET;
    Some(html! {
        svg .qr viewBox={ "0 0 " (side) " " (side) } role="img" aria-label=(label) shape-rendering="crispEdges" {
            rect width=(side) height=(side) fill="#fff" {}
            path d=(path) fill="#000" {}
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_becomes_squares_with_a_blank_edge() {
        let svg = render_qr("https://t.me/reveille_bot?start=K7QM-201X", "a code").unwrap().into_string();
        // The finder pattern in the corner begins after the blank edge.
        assert!(svg.contains("M4 4h1v1h-1z") && !svg.contains("M3 "), "{svg}");
        assert!(render_qr(&"x".repeat(5_000), "too long").is_none());
    }
}
