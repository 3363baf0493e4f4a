//! JSON of others, read one element at a time: a list may be larger than what fits, and one odd element costs itself alone.

use std::{fmt, io::Read};

use serde::de::{Deserializer as _, SeqAccess, Visitor};
use serde_json::value::RawValue;

/// Gives each element of a list to `work`, as raw JSON.
pub(super) fn each_of_list(reader: &mut dyn Read, work: &mut dyn FnMut(&str)) -> serde_json::Result<()> {
    let reader = std::io::BufReader::new(reader);
    let mut deserializer = serde_json::Deserializer::from_reader(reader);
    deserializer.deserialize_seq(EachElement(work))?;
    deserializer.end()
}

struct EachElement<'a>(&'a mut dyn FnMut(&str));

impl<'de> Visitor<'de> for EachElement<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        while let Some(element) = list.next_element::<Box<RawValue>>()? {
            (self.0)(element.get());
        }
        Ok(())
    }
}

/// The first of these fields that is a text with something in it.
pub(super) fn text_of<'a>(object: &'a serde_json::Value, names: &[&str]) -> Option<&'a str> {
    let texts = names.iter().filter_map(|name| object.get(name)?.as_str());
    texts.map(str::trim).find(|text| !text.is_empty())
}
