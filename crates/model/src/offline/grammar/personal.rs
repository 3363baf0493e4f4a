//! Classifies questions by the facts they ask for. For a personal fact "you haven't told me" is a complete answer, since no model could
//! know better.

use super::{
    sentence::{self, Sentence},
    spelling::parse_tokens,
};

/// The object of a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum QuestionKind {
    /// A fact about the person or their family.
    Personal,
    /// A fact that the person may have told, or general knowledge.
    Fact,
    /// Advice or work.
    Other,
}

/// Words of questions for advice or work rather than a fact.
const ADVICE: &str = "should|shall|could|can|can't|would|will|best|better|recommend|think|feel|mean|means|improve|cook|write|make|say|if|why|weather|rain|need|\
                      news|help|suggest|advise|near|nearby|recipe|recipes|restaurants|ideas|tips|explain|translate|summarise|summarize|calculate|search|find|look|latest|you|your";
const OPENERS: &[&str] = &[
    "until|till|since|from when",
    "what|what's|when|when's|where|where's|who|who's|which|whose ?is|are|was|were|do|does|did|has|have|kind|sort|size|colour|color|day|time|year",
    "how old|tall|many|much|often|big|long|heavy",
    "how's|how is|does|do|are",
    "am|was|did|have|do|does|is|are|has|had",
];

/// Classifies a question and returns its words without the mere asking.
pub fn classify_question(question: &str) -> (QuestionKind, String) {
    let tokens = parse_tokens(question);
    let sentences = sentence::split(question, &tokens);
    let asking = sentences.iter().find(|sentence| !sentence.is_blank() && sentence.without_courtesy().is_question());
    let (Some(asking), true) = (asking, sentences.len() <= 3) else {
        return (QuestionKind::Other, question.trim().to_owned());
    };
    let core = asking.extract_question();
    let text = if core.is_blank() { question.trim().to_owned() } else { core.text().to_owned() };
    // "Where did I leave the car?" asks for a parking place, unlike a question about the car's keys.
    let last = text.trim_end_matches(|c: char| !c.is_alphanumeric()).rsplit(' ').next().unwrap_or_default();
    let is_vehicle = ["car", "van", "motorbike"].iter().any(|name| last.eq_ignore_ascii_case(name));
    let is_parked = last.eq_ignore_ascii_case("park") || last.eq_ignore_ascii_case("parked");
    if (is_vehicle || is_parked) && core.has_word("where|where's|wheres") && core.has_word("leave|left|put|park|parked")
    {
        return (QuestionKind::Personal, "parked".to_owned());
    }
    (kind(&core), text)
}

fn kind(core: &Sentence<'_>) -> QuestionKind {
    let is_fact = OPENERS.iter().any(|opener| core.cursor().match_phrase(opener).is_some())
        || core.cursor().match_phrase("my|our").is_some()
        || core.cursor().text().ends_with("'s");
    // "How do I get home?" asks for directions.
    let asks_way = core.cursor().match_phrase("how do|does|did|can i|we|one").is_some()
        || core.cursor().match_phrase("what do i do").is_some();
    if !is_fact || asks_way || core.has_word(ADVICE) {
        return QuestionKind::Other;
    }
    let lower = core.text().to_lowercase();
    let mut words = lower.split_whitespace().map(|word| word.trim_matches(|c: char| !c.is_alphanumeric() && c != '\''));
    if words.any(|word| matches!(word, "my" | "our" | "mine" | "i" | "me" | "we" | "us" | "i'm")) {
        return QuestionKind::Personal;
    }
    QuestionKind::Fact
}
