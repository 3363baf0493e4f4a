//! Text extraction: a page is drawn on a device that records only letters and their positions, in drawing order. Line breaks and spaces
//! are inferred from the positions.

use std::collections::HashSet;

use hayro_interpret::{
    BlendMode, ClipPath, Context, Device, DrawMode, DrawProps, Image, ImageDrawProps, InterpreterCache,
    InterpreterSettings, SoftMask,
    font::{Glyph, GlyphRun},
    hayro_cmap::BfString,
    hayro_syntax::{LoadPdfError, Pdf},
    interpret_page,
    kurbo::{Affine, BezPath, Point, Rect},
};

use super::{MAX_PAGES_READ, MAX_TEXT_BYTES, NO_TEXT, PdfAnswer, PdfFault, PdfText, form::FormReader};

/// The maximum vertical distance between letters of one line, as a share of the letters' height.
const SAME_LINE: f64 = 0.5;
/// The minimum gap between two letters that counts as a space, as a share of the letters' height.
const SPACE_GAP: f64 = 0.18;
/// The distance within which a repeated letter counts as one letter made bold, as a share of the letters' height.
const SAME_PLACE: f64 = 0.05;
/// The height and width of an em in font units.
const EM: f64 = 1_000.0;
/// The width of a letter whose font gives none, in font units.
const USUAL_WIDTH: f32 = 500.0;

/// Extracts the text of a PDF.
///
/// # Errors
/// The PDF is locked or damaged.
pub fn extract_text(bytes: Vec<u8>) -> PdfAnswer {
    let pdf = Pdf::new(bytes).map_err(|error| match error {
        LoadPdfError::Decryption(_) => PdfFault::Locked,
        LoadPdfError::Invalid => PdfFault::Damaged,
    })?;
    let pages = pdf.pages();
    let (mut texts, mut bytes, mut form) = (Vec::new(), 0, FormReader::new(&pdf));
    for page in pages.iter().take(MAX_PAGES_READ) {
        let (cache, mut letters) = (InterpreterCache::new(), Letters::default());
        let area = Rect::new(0.0, 0.0, 1.0, 1.0);
        let settings = InterpreterSettings::default();
        let mut context = Context::new(Affine::IDENTITY, area, &cache, pdf.xref(), settings);
        interpret_page(page, &mut context, &mut letters);
        let mut text = letters.text;
        let fields = form.read_page(page, &text);
        if text.trim().is_empty() && !fields.is_empty() {
            text = NO_TEXT.to_owned();
        }
        text.push_str(&fields);
        bytes += text.len();
        if bytes > MAX_TEXT_BYTES {
            break;
        }
        texts.push(text);
    }
    let mut rest = form.read_rest();
    rest.truncate(rest.floor_char_boundary(MAX_TEXT_BYTES));
    if pages.is_empty() { Err(PdfFault::Damaged) } else { Ok(PdfText { pages: pages.len(), texts, rest }) }
}

/// Splits a ligature into its letters, so that a search finds the word. `None` for any other character.
fn split_ligature(letter: char) -> Option<&'static str> {
    let letters = match letter {
        '\u{fb00}' => "ff",
        '\u{fb01}' => "fi",
        '\u{fb02}' => "fl",
        '\u{fb03}' => "ffi",
        '\u{fb04}' => "ffl",
        '\u{fb05}' | '\u{fb06}' => "st",
        _ => return None,
    };
    Some(letters)
}

/// The text drawn so far, and the place of the last letter.
#[derive(Default)]
struct Letters {
    text: String,
    last: Option<Place>,
    /// The first character of each glyph, with its position in units of [`SAME_PLACE`].
    drawn: HashSet<(char, i64, i64)>,
}

/// The start and end of a letter, and the height of its line.
#[derive(Clone, Copy)]
struct Place {
    begin: Point,
    end: Point,
    height: f64,
}

impl Letters {
    /// Returns `true` if the letter was already drawn at this place: outlines and shadows repeat the text.
    fn is_repeated(&mut self, letters: &str, place: Place) -> bool {
        let Some(letter) = letters.chars().next().filter(|letter| !letter.is_whitespace()) else { return false };
        let unit = (place.height * SAME_PLACE).max(f64::MIN_POSITIVE);
        // Values beyond the type's range are clamped.
        let (x, y) = ((place.begin.x / unit).round() as i64, (place.begin.y / unit).round() as i64);
        let near = |at: i64| at.saturating_sub(1)..=at.saturating_add(1);
        let is_repeated = near(x).any(|x| near(y).any(|y| self.drawn.contains(&(letter, x, y))));
        self.drawn.insert((letter, x, y));
        is_repeated
    }

    fn add_letters(&mut self, letters: &str, place: Place) {
        if self.is_repeated(letters, place) {
            return;
        }
        if let Some(last) = self.last {
            let height = last.height.max(place.height);
            let gap = place.begin.x - last.end.x;
            let is_space = |c: Option<char>| c.is_none_or(char::is_whitespace);
            if (place.begin.y - last.end.y).abs() > SAME_LINE * height || gap < -2.0 * height {
                self.text.push('\n');
            } else if gap > SPACE_GAP * height
                && !is_space(self.text.chars().next_back())
                && !is_space(letters.chars().next())
            {
                self.text.push(' ');
            }
        }
        self.last = Some(place);
        self.text.push_str(letters);
    }
}

impl Device<'_> for Letters {
    fn draw_glyph_run(&mut self, run: &GlyphRun<'_, '_>, props: DrawProps<'_>, _: &DrawMode) {
        if self.text.len() > MAX_TEXT_BYTES {
            return;
        }
        for glyph in run.glyphs() {
            let to_page = props.transform * glyph.transform();
            let width = match &**glyph {
                Glyph::Outline(outline) => outline.advance_width(),
                Glyph::Type3(drawn) => drawn.advance_width(),
            };
            let begin = to_page * Point::ZERO;
            let end = to_page * Point::new(f64::from(width.unwrap_or(USUAL_WIDTH)), 0.0);
            let place = Place { begin, end, height: begin.distance(to_page * Point::new(0.0, EM)) };
            match glyph.as_unicode() {
                Some(BfString::Char(letter)) => match split_ligature(letter) {
                    Some(letters) => self.add_letters(letters, place),
                    None => self.add_letters(letter.encode_utf8(&mut [0; 4]), place),
                },
                Some(BfString::String(letters)) => self.add_letters(&letters, place),
                None => self.add_letters("\u{fffd}", place),
            }
        }
    }

    fn draw_path(&mut self, _: &BezPath, _: DrawProps<'_>, _: &DrawMode) {}
    fn push_clip_path(&mut self, _: &ClipPath) {}
    fn push_transparency_group(&mut self, _: f32, _: Option<SoftMask<'_>>, _: BlendMode) {}
    fn draw_image(&mut self, _: Image<'_, '_>, _: ImageDrawProps<'_>) {}
    fn pop_clip(&mut self) {}
    fn pop_transparency_group(&mut self) {}
}
