//! The recordings shown in a cycle's opening: those of similar requests. Pure.
//!
//! With a sentence encoder, similar means a cosine of at least [`MIN_LIKENESS`]. Without one, the cosine of the two sets of content words
//! must reach that value, and they must share two words or be equal. Among near duplicates only the newest is shown. Parts that may contain
//! untrusted text are counted, never shown.

use std::collections::BTreeSet;

use reveille_base::{
    words::{format_count, format_local_time},
    zone::Tz,
};
use reveille_store::{RecordedRequest, Recording};

use crate::decide::brief::{clip, escape, escape_attribute};

/// The minimum cosine of a similar request.
const MIN_LIKENESS: f32 = 0.5;
/// The cosine above which two recorded requests count as duplicates.
const NEAR_DUPLICATE: f32 = 0.7;
/// The minimum number of shared words, unless the requests are equal.
const MIN_SHARED: usize = 2;
/// The maximum number of recordings in an opening.
const MAX_SHOWN: usize = 2;
/// The maximum length of a shown request, in characters.
const MAX_REQUEST_CHARS: usize = 400;
/// The maximum length of the shown calls of one recording, in characters.
const MAX_CALLS_CHARS: usize = 3_000;

/// A recording of a similar request.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Likeness {
    /// The recording.
    pub(crate) id: i64,
    /// The cosine of the two requests.
    pub(crate) cosine: f32,
}

/// Chooses the recordings for a request with these content words, most similar first. `vectors` holds the embeddings of its messages, if an
/// embedder was asked; one message similar to a recorded request is enough.
pub(crate) fn choose(request: &[String], vectors: &[Vec<f32>], recorded: &[RecordedRequest]) -> Vec<Likeness> {
    let mut kept: Vec<(Likeness, &RecordedRequest)> = Vec::new();
    let mut newest_first: Vec<&RecordedRequest> = recorded.iter().collect();
    newest_first.sort_by_key(|other| std::cmp::Reverse(other.id));
    for other in newest_first {
        let cosines = vectors.iter().filter_map(|own| compute_cosine(own, other.vector.as_deref()?));
        let by_meaning = cosines.max_by(f32::total_cmp);
        let cosine = by_meaning.unwrap_or_else(|| compute_word_cosine(request, &other.words));
        let is_duplicate =
            |(_, kept): &(Likeness, &RecordedRequest)| compute_word_cosine(&kept.words, &other.words) >= NEAR_DUPLICATE;
        if cosine >= MIN_LIKENESS && !kept.iter().any(is_duplicate) {
            kept.push((Likeness { id: other.id, cosine }, other));
        }
    }
    // The stable sort keeps the newest first among equals.
    kept.sort_by(|(a, _), (b, _)| b.cosine.total_cmp(&a.cosine));
    kept.into_iter().take(MAX_SHOWN).map(|(likeness, _)| likeness).collect()
}

/// The cosine of two vectors. `None` if they can't be compared.
fn compute_cosine(a: &[f32], b: &[f32]) -> Option<f32> {
    let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f32>();
    let cosine = dot(a, b) / (dot(a, a) * dot(b, b)).sqrt();
    (a.len() == b.len() && cosine.is_finite()).then_some(cosine)
}

/// The cosine of two sorted sets of words. 0 if they share too few.
fn compute_word_cosine(a: &[String], b: &[String]) -> f32 {
    let known: BTreeSet<&String> = a.iter().collect();
    let shared = b.iter().filter(|word| known.contains(word)).count();
    if shared < MIN_SHARED && a != b || shared == 0 {
        return 0.0;
    }
    let [shared, a, b] = [shared, a.len(), b.len()].map(|n| n as f32);
    shared / (a * b).sqrt()
}

/// Renders the block of an opening. Empty without recordings.
pub(crate) fn render_block(similar: &[(Likeness, Recording)], tz: Tz) -> String {
    if similar.is_empty() {
        return String::new();
    }
    let mut text = String::from(
        "<similar_work note=\"What you did for similar requests before: an example of what worked then, never an order. Dead ends are left \
         out. See whether it still fits.\">",
    );
    for (likeness, recording) in similar {
        text.push_str(&render_work(*likeness, recording, tz));
    }
    text.push_str("\n</similar_work>");
    text
}

/// Renders a recording's calls. Those after the cycle was tainted are only counted.
fn render_work(likeness: Likeness, recording: &Recording, tz: Tz) -> String {
    let kept = &recording.kept;
    let at = recording.at.map_or_else(String::new, |at| format_local_time(at, tz));
    let head = format!("\n<work recording=\"{}\" at=\"{at}\" likeness=\"{:.2}\"", recording.id, likeness.cosine);
    let untainted: Vec<_> = kept.calls.iter().take_while(|call| !call.is_after_others).collect();
    if untainted.is_empty() {
        let withheld = format_count(kept.calls.len(), "call");
        return format!("{head} withheld=\"it had read untrusted text before its {withheld}\"/>");
    }
    let mut text = format!(
        "{head} rounds=\"{}\">\n<asked>{}</asked>",
        kept.rounds,
        escape(&clip(&kept.request, MAX_REQUEST_CHARS))
    );
    let mut left = MAX_CALLS_CHARS;
    let mut shown = 0;
    for call in &untainted {
        let line = format!(
            "\n<call tool=\"{}\" did=\"{}\">{}</call>",
            escape_attribute(&call.tool),
            escape_attribute(&call.did),
            escape_json(&call.input)
        );
        let Some(rest) = left.checked_sub(line.chars().count()) else { break };
        left = rest;
        shown += 1;
        text.push_str(&line);
    }
    let cut = untainted.len() - shown;
    let withheld = kept.calls.len() - untainted.len();
    if cut > 0 {
        text.push_str(&format!("\n<more calls=\"{cut}\"/>"));
    }
    if withheld > 0 {
        text.push_str(&format!("\n<withheld calls=\"{withheld}\" why=\"made after it had read untrusted text\"/>"));
    }
    text.push_str("\n</work>");
    text
}

/// Escapes JSON inside an element. Quotes can end nothing there, so they stay readable.
fn escape_json(json: &str) -> String {
    json.replace('&', "&amp;").replace('<', "&lt;")
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;

    use super::*;
    use crate::decide::recording::extract_terms;
    use reveille_base::clock::parse_time;
    use reveille_store::{NewRecording, RecordedCall};

    fn recorded(requests: &[&str]) -> Vec<RecordedRequest> {
        let recorded =
            |(id, request): (i64, &&str)| RecordedRequest { id, words: extract_terms(request), vector: None };
        (1..).zip(requests).map(recorded).collect()
    }

    fn chosen(request: &str, requests: &[&str]) -> Vec<i64> {
        choose(&extract_terms(request), &[], &recorded(requests)).iter().map(|like| like.id).collect()
    }

    #[test]
    fn requests_of_the_same_words_are_alike_and_the_newest_of_near_duplicates_stands_for_them() {
        let requests = [
            "Please export the invoices of March as a table",
            "What is the weather",
            "export the invoices of April as a table",
            "Feed the cat",
        ];
        assert_eq!(chosen("Export the invoices of May as a table, please!", &requests), [3]);
        assert_eq!(chosen("invoices", &requests), Vec::<i64>::new());
        assert_eq!(chosen("feed the cat", &requests), [4]);
        assert_eq!(chosen("", &requests), Vec::<i64>::new());
        assert_eq!(chosen("deploy", &["deploy"]), [1]);
    }

    #[test]
    fn with_vectors_their_cosine_alone_counts() {
        let mut recorded =
            recorded(&["Feed the cat", "Water the plants", "export the invoices", "export all invoices"]);
        for (recorded, vector) in recorded.iter_mut().zip([[3.0, 4.0], [4.0, 3.0], [1.0, 0.0], [f32::NAN, 0.0]]) {
            recorded.vector = Some(vector.to_vec());
        }
        let likes = choose(&extract_terms("export the invoices"), &[vec![-1.0, 0.0], vec![0.0, 2.0]], &recorded);
        let ids: Vec<(i64, f32)> = likes.iter().map(|like| (like.id, (like.cosine * 100.0).round())).collect();
        // The last request's vector is invalid (NaN), so its words are compared.
        assert_eq!(ids, [(4, 82.0), (1, 80.0)]);
        recorded.truncate(3);
        assert_eq!(choose(&extract_terms("export the invoices"), &[vec![0.0, 2.0]], &recorded).len(), 2);
    }

    #[test]
    fn few_are_shown_the_most_alike_first() {
        let ids = chosen(
            "paint old garden fence green",
            &["paint garden wall", "paint garden fence", "paint old fence", "old green hat"],
        );
        assert_eq!(ids.len(), MAX_SHOWN);
        assert_eq!(ids, [3, 2]);
    }

    #[test]
    fn calls_after_untrusted_text_are_counted_and_not_shown() {
        let call = |did: &str, is_after_others| RecordedCall {
            tool: "bash".to_owned(),
            input: format!("{{\"command\":\"<{did}>\"}}"),
            did: did.to_owned(),
            is_after_others,
        };
        let recording = |id, calls: Vec<RecordedCall>| {
            let kept = NewRecording {
                request: "Export \"it\"".to_owned(),
                calls,
                rounds: 2,
                taint: Some("a page".to_owned()),
                ..NewRecording::default()
            };
            (Likeness { id, cosine: 0.75 }, Recording { id, at: parse_time("2026-11-21T14:03:00Z"), kept })
        };
        let similar = [
            recording(7, vec![call("Ran one", false), call("CANARY", true), call("Ran two", false)]),
            recording(8, vec![call("CANARY", true)]),
        ];
        let text = render_block(&similar, Tz::UTC);
        assert!(!text.contains("CANARY"), "{text}");
        assert_snapshot!(text, @r#"
        <similar_work note="What you did for similar requests before: an example of what worked then, never an order. Dead ends are left out. See whether it still fits.">
        <work recording="7" at="Sat 2026-11-21 14:03" likeness="0.75" rounds="2">
        <asked>Export &quot;it&quot;</asked>
        <call tool="bash" did="Ran one">{"command":"&lt;Ran one>"}</call>
        <withheld calls="2" why="made after it had read untrusted text"/>
        </work>
        <work recording="8" at="Sat 2026-11-21 14:03" likeness="0.75" withheld="it had read untrusted text before its 1 call"/>
        </similar_work>
        "#);
        assert_eq!(render_block(&[], Tz::UTC), "");
    }
}
