//! Converts measures: "5 miles in km", "350 F in C", "how many ounces are in a pound?".

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Dimension {
    Length,
    Mass,
    Volume,
    Time,
    Speed,
    Area,
    Data,
    Temperature,
}

use Dimension::{Area, Data, Length, Mass, Speed, Temperature, Time, Volume};

/// Each unit's names, dimension, and size in the dimension's base unit. The first name is displayed.
const UNITS: &[(&str, Dimension, f64)] = &[
    ("km|kilometre|kilometer|kilometres|kilometers|kms", Length, 1000.0),
    ("m|metre|meter|metres|meters", Length, 1.0),
    ("cm|centimetre|centimeter|centimetres|centimeters", Length, 0.01),
    ("mm|millimetre|millimeter|millimetres|millimeters", Length, 0.001),
    ("miles|mile|mi", Length, 1609.344),
    ("yards|yard|yd|yds", Length, 0.9144),
    ("feet|foot|ft", Length, 0.3048),
    ("inches|inch|in", Length, 0.0254),
    ("kg|kilo|kilos|kilogram|kilograms|kilogramme|kilogrammes|kgs", Mass, 1000.0),
    ("g|gram|grams|gramme|grammes|gr", Mass, 1.0),
    ("tonnes|tonne", Mass, 1_000_000.0),
    ("pounds|pound|lb|lbs", Mass, 453.592_37),
    ("ounces|ounce|oz", Mass, 28.349_523_125),
    ("stone|stones|st", Mass, 6_350.293_18),
    ("litres|litre|liter|liters|l", Volume, 1.0),
    ("ml|millilitre|milliliter|millilitres|milliliters", Volume, 0.001),
    ("cl|centilitre|centiliter|centilitres|centiliters", Volume, 0.01),
    ("dl|decilitre|deciliter|decilitres|deciliters", Volume, 0.1),
    ("US gallons|gallon|gallons|gal", Volume, 3.785_411_784),
    ("US pints|pint|pints", Volume, 0.473_176_473),
    ("US cups|cup|cups", Volume, 0.236_588_236_5),
    ("US tablespoons|tablespoon|tablespoons|tbsp", Volume, 0.014_786_764_781),
    ("US teaspoons|teaspoon|teaspoons|tsp", Volume, 0.004_928_921_594),
    ("seconds|second|sec|secs|s", Time, 1.0),
    ("minutes|minute|min|mins", Time, 60.0),
    ("hours|hour|h|hr|hrs", Time, 3600.0),
    ("days|day", Time, 86_400.0),
    ("weeks|week", Time, 604_800.0),
    ("km/h|kmh|kph", Speed, 1.0),
    ("mph", Speed, 1.609_344),
    ("m²|sqm|m2", Area, 1.0),
    ("sq ft|sqft|ft2", Area, 0.092_903_04),
    ("acres|acre", Area, 4_046.856_422_4),
    ("hectares|hectare|ha", Area, 10_000.0),
    ("kB|kb|kilobyte|kilobytes", Data, 1e3),
    ("MB|mb|megabyte|megabytes", Data, 1e6),
    ("GB|gb|gigabyte|gigabytes", Data, 1e9),
    ("TB|tb|terabyte|terabytes", Data, 1e12),
    ("°C|c|celsius|centigrade", Temperature, 0.0),
    ("°F|f|fahrenheit", Temperature, 0.0),
];

/// Unit names of several words, each with its one-word form.
const LONG_NAMES: &[(&str, &str)] = &[
    ("us gallon", "gallon"),
    ("us pint", "pint"),
    ("us cup", "cup"),
    ("square feet", "sqft"),
    ("square foot", "sqft"),
    ("sq feet", "sqft"),
    ("sq ft", "sqft"),
    ("square metres", "sqm"),
    ("square meters", "sqm"),
    ("square metre", "sqm"),
    ("square meter", "sqm"),
    ("sq metres", "sqm"),
    ("sq meters", "sqm"),
    ("sq m", "sqm"),
    ("km an hour", "km/h"),
    ("km per hour", "km/h"),
    ("miles per hour", "mph"),
    ("miles an hour", "mph"),
];
/// Pairs of units stated together ("6 feet 1"), and how many of the second make one of the first. The second unit's name is optional.
const PARTS: &[(&str, &str, f64)] = &[("feet", "inches", 12.0), ("stone", "pounds", 14.0), ("pounds", "ounces", 16.0)];

/// Maximum words of a question.
const MAX_WORDS: usize = 12;
/// Phrases that may come before the measure.
const OPENERS: &[&str] = &[
    "convert",
    "what's",
    "whats",
    "what is",
    "what are",
    "how much is",
    "how much are",
    "how tall is",
    "how far is",
    "how long is",
    "how heavy is",
    "how hot is",
    "how many is",
];

#[derive(Clone, Copy)]
struct Unit {
    name: &'static str,
    dimension: Dimension,
    factor: f64,
}

impl Unit {
    /// Formats a measure: "1 pound", "2 pounds".
    fn format_measure(self, value: f64) -> String {
        let value = format_number(value);
        let name = match (value.as_str(), self.name) {
            ("1", "feet") => "foot",
            ("1", "inches") => "inch",
            ("1", name) if name.len() > 3 => name.trim_end_matches('s'),
            (_, name) => name,
        };
        format!("{value} {name}")
    }
}

/// Converts the measure in a text and renders both. `None` if the text isn't a conversion.
pub(super) fn answer_conversion(text: &str) -> Option<String> {
    let lower = text.to_lowercase().replace('’', "'").replace(['°', 'º'], " ");
    let lower = LONG_NAMES.iter().fold(lower, |text, (long, short)| text.replace(long, short));
    let lower = lower.trim().trim_end_matches(['?', '.', '!', ' ']);
    let lower = OPENERS.iter().find_map(|opener| lower.strip_prefix(opener)?.strip_prefix(' ')).unwrap_or(lower);
    let words: Vec<&str> = lower.split_whitespace().flat_map(cut_number).filter(|word| !is_filler(word)).collect();
    if let Some(area) = answer_area(&words) {
        return Some(area);
    }
    if words.len() > MAX_WORDS {
        return None;
    }
    let words = merge_units(&words);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let (amount, from, to) = match words.as_slice() {
        // "How many km are in 5 miles?"
        ["how", "many" | "much", to, "are" | "is", "there", "in", amount, from]
        | ["how", "many" | "much", to, "are" | "is", "in" | "there" | "to", amount, from]
        | ["how", "many" | "much", to, "is" | "are" | "in" | "make" | "makes", amount, from]
        | ["how", "many" | "much", to, "does", amount, from, "have" | "make"] => (*amount, *from, *to),
        [amount, from, "in" | "to" | "into" | "as", to] => (*amount, *from, *to),
        _ => return None,
    };
    let value = match amount {
        "a" | "an" | "one" => 1.0,
        amount => match amount.split_once('/') {
            Some((part, whole)) => {
                part.parse::<f64>().ok()? / whole.parse::<f64>().ok().filter(|whole| *whole != 0.0)?
            }
            None => amount.replace(',', "").parse::<f64>().ok().filter(|value| value.is_finite())?,
        },
    };
    let (from, to) = (find_unit(from)?, find_unit(to)?);
    let result = convert(value, from, to)?;
    Some(format!("{} = {}", from.format_measure(value), to.format_measure(result)))
}

/// Answers "The room is 4.2 by 5.5 m, how many square metres is that?"
fn answer_area(words: &[&str]) -> Option<String> {
    const MAX_AREA_WORDS: usize = 20;
    if words.len() > MAX_AREA_WORDS || !(words.contains(&"sqm") || words.contains(&"sqft") || words.contains(&"area")) {
        return None;
    }
    let number = |word: &str| word.trim_end_matches(',').parse::<f64>().ok();
    (0..words.len()).find_map(|at| {
        let (one, by) = (number(words.get(at)?)?, words.get(at + 1)?);
        // "4.2 m by 5.5 m" names its unit twice.
        let skipped = usize::from(find_unit(by).is_some());
        let by = words.get(at + 1 + skipped)?;
        let (other, name) = (number(words.get(at + 2 + skipped)?)?, words.get(at + 3 + skipped)?.trim_end_matches(','));
        let unit = find_unit(name).filter(|unit| unit.dimension == Length && matches!(*by, "by" | "x" | "×"))?;
        let square_metres = one * other * unit.factor * unit.factor;
        let (value, name) =
            if words.contains(&"sqft") { (square_metres / 0.092_903_04, "sq ft") } else { (square_metres, "m²") };
        Some(format!(
            "{} × {} {} = {} {name}",
            format_number(one),
            format_number(other),
            unit.name,
            format_number(value)
        ))
    })
}

/// Merges a measure stated in two units: "6 foot 1" becomes "6.08333 foot".
fn merge_units(words: &[&str]) -> Vec<String> {
    let mut all: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
    let number = |word: Option<&&str>| word.and_then(|word| word.parse::<f64>().ok());
    let found = (0..words.len()).find_map(|at| {
        let (whole, part) = (number(words.get(at))?, number(words.get(at + 2))?);
        let first = find_unit(words.get(at + 1)?)?;
        let (_, second, count) = PARTS.iter().find(|(name, ..)| *name == first.name)?;
        let is_named = words
            .get(at + 3)
            .filter(|word| **word != "in")
            .and_then(|word| find_unit(word))
            .is_some_and(|named| named.name == *second);
        Some((at, whole + part / count, if is_named { 4 } else { 3 }))
    });
    if let Some((at, value, len)) = found {
        let name = words.get(at + 1).map_or_else(String::new, |word| (*word).to_owned());
        all.splice(at..at + len, [value.to_string(), name]);
    }
    all
}

fn convert(value: f64, from: Unit, to: Unit) -> Option<f64> {
    if from.dimension != to.dimension || from.name == to.name {
        return None;
    }
    Some(match (from.dimension, from.name) {
        (Temperature, "°F") => (value - 32.0) * 5.0 / 9.0,
        (Temperature, _) => value * 9.0 / 5.0 + 32.0,
        _ => value * from.factor / to.factor,
    })
}

fn find_unit(word: &str) -> Option<Unit> {
    let (names, dimension, factor) = UNITS.iter().find(|(names, ..)| names.split('|').any(|name| name == word))?;
    Some(Unit { name: names.split('|').next()?, dimension: *dimension, factor: *factor })
}

/// Splits "5mi" into number and unit.
fn cut_number(word: &str) -> Vec<&str> {
    let end = word.find(|c: char| !c.is_ascii_digit() && !matches!(c, '.' | ',' | '-' | '/')).unwrap_or(word.len());
    let (number, unit) = word.split_at(end);
    if number.is_empty() || unit.is_empty() { vec![word] } else { vec![number, unit] }
}

fn is_filler(word: &str) -> bool {
    matches!(word, "degree" | "degrees" | "about" | "exactly" | "the" | "please" | "pls" | "plz")
}

/// Formats a number with at most two decimal places, or five for small values.
fn format_number(value: f64) -> String {
    let places = if value != 0.0 && value.abs() < 0.1 { 5 } else { 2 };
    let text = format!("{value:.places$}");
    let text = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    if text == "-0" { "0".to_owned() } else { text.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn measures_are_converted() {
        for (text, expected) in [
            ("5 miles in km", "5 miles = 8.05 km"),
            ("what's 5 miles in km?", "5 miles = 8.05 km"),
            ("convert 10 kg to pounds", "10 kg = 22.05 pounds"),
            ("350 F in C", "350 °F = 176.67 °C"),
            ("350°F in Celsius", "350 °F = 176.67 °C"),
            ("what is -40 degrees c in f", "-40 °C = -40 °F"),
            ("how many km are in 5 miles?", "5 miles = 8.05 km"),
            ("how many ounces in a pound", "1 pound = 16 ounces"),
            ("how many cm is 6 feet", "6 feet = 182.88 cm"),
            ("5mi to km", "5 miles = 8.05 km"),
            ("2 cups in ml", "2 US cups = 473.18 ml"),
            ("how many minutes are there in 2 hours", "2 hours = 120 minutes"),
            ("60 mph in km/h", "60 mph = 96.56 km/h"),
            ("6 foot 1 in cm", "6.08 feet = 185.42 cm"),
            ("how many mm is 3/4 inch", "0.75 inches = 19.05 mm"),
            ("bed is 3.2 by 1.4 m, how many square metres is that", "3.2 × 1.4 m = 4.48 m²"),
            ("how much is 68 square metres in sq feet", "68 m² = 731.95 sq ft"),
            ("11 stone 4 in kg", "11.29 stone = 71.67 kg"),
        ] {
            assert_eq!(answer_conversion(text).as_deref(), Some(expected), "{text}");
        }
    }

    #[test]
    fn other_texts_are_left_alone() {
        for text in
            ["5 miles in kg", "100 euros in dollars", "be there in 5", "call me in 5 min", "5 km in km", "", "a in b"]
        {
            assert_eq!(answer_conversion(text), None, "{text}");
        }
    }
}
