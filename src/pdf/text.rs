//! Reading itself: a page is drawn on a device that keeps nothing but letters, and where they stand. From that come lines and
//! blanks, in the order in which the page draws them.

use hayro_interpret::{
    BlendMode, ClipPath, Context, Device, DrawMode, DrawProps, Image, ImageDrawProps, InterpreterCache,
    InterpreterSettings, SoftMask,
    font::{Glyph, GlyphRun},
    hayro_cmap::BfString,
    hayro_syntax::{LoadPdfError, Pdf},
    interpret_page,
    kurbo::{Affine, BezPath, Point, Rect},
};

use super::{MAX_PAGES_READ, MAX_TEXT_BYTES, PdfAnswer, PdfFault, PdfText};

/// How far the next letter of a line may be above or below the last one, in shares of the letters' height.
const SAME_LINE: f64 = 0.5;
/// A gap between two letters from which on it is a blank, in shares of the letters' height.
const BLANK: f64 = 0.18;
/// How high and how wide a font's letters are counted, in its own units.
const EM: f64 = 1_000.0;
/// How wide a letter is whose font doesn't say it, in the font's units.
const USUAL_WIDTH: f32 = 500.0;

/// The text of a PDF.
///
/// # Errors
/// It is locked or damaged.
pub fn text_of(bytes: Vec<u8>) -> PdfAnswer {
    let pdf = Pdf::new(bytes).map_err(|error| match error {
        LoadPdfError::Decryption(_) => PdfFault::Locked,
        LoadPdfError::Invalid => PdfFault::Damaged,
    })?;
    let pages = pdf.pages();
    let (mut texts, mut bytes) = (Vec::new(), 0);
    for page in pages.iter().take(MAX_PAGES_READ) {
        let (cache, mut letters) = (InterpreterCache::new(), Letters::default());
        let area = Rect::new(0.0, 0.0, 1.0, 1.0);
        let settings = InterpreterSettings::default();
        let mut context = Context::new(Affine::IDENTITY, area, &cache, pdf.xref(), settings);
        interpret_page(page, &mut context, &mut letters);
        bytes += letters.text.len();
        if bytes > MAX_TEXT_BYTES {
            break;
        }
        texts.push(letters.text);
    }
    if pages.is_empty() { Err(PdfFault::Damaged) } else { Ok(PdfText { pages: pages.len(), texts }) }
}

/// The letters so far, and where the last one ends.
#[derive(Default)]
struct Letters {
    text: String,
    last: Option<Place>,
}

/// Where a letter begins and ends, and how high its line is.
#[derive(Clone, Copy)]
struct Place {
    begin: Point,
    end: Point,
    height: f64,
}

impl Letters {
    fn add(&mut self, letters: &str, place: Place) {
        if let Some(last) = self.last {
            let height = last.height.max(place.height);
            let gap = place.begin.x - last.end.x;
            let is_blank = |c: Option<char>| c.is_none_or(char::is_whitespace);
            if (place.begin.y - last.end.y).abs() > SAME_LINE * height || gap < -2.0 * height {
                self.text.push('\n');
            } else if gap > BLANK * height
                && !is_blank(self.text.chars().next_back())
                && !is_blank(letters.chars().next())
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
                Some(BfString::Char(letter)) => self.add(letter.encode_utf8(&mut [0; 4]), place),
                Some(BfString::String(letters)) => self.add(&letters, place),
                None => self.add("\u{fffd}", place),
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
