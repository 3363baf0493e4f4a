//! A sentence of a message: a run of tokens, with the tests shared by all parsers.

use reveille_base::schedule::words::{Cursor, Token};

use super::Which;

/// A sentence or a part of one, cheap to copy.
#[derive(Clone, Copy)]
pub(super) struct Sentence<'t> {
    /// The whole message, to which the tokens' spans refer.
    message: &'t str,
    tokens: &'t [Token],
    /// A request such as "Could you …", in which a final question mark has no meaning.
    is_request: bool,
}

/// Returns an entire message as one sentence.
pub(super) fn as_one_sentence<'t>(message: &'t str, tokens: &'t [Token]) -> Sentence<'t> {
    Sentence { message, tokens, is_request: false }
}

/// Splits a message at line ends, full stops, question marks and exclamation marks.
pub(super) fn split<'t>(message: &'t str, tokens: &'t [Token]) -> Vec<Sentence<'t>> {
    let ends = |index: usize| match (tokens.get(index), tokens.get(index + 1)) {
        (Some(token), Some(next)) => ends_sentence(message, tokens, index, token, next),
        _ => true,
    };
    let mut sentences = Vec::new();
    let mut start = 0;
    for index in 0..tokens.len() {
        if ends(index) {
            let tokens = tokens.get(start..=index).unwrap_or_default();
            sentences.push(Sentence { message, tokens, is_request: false });
            start = index + 1;
        }
    }
    sentences
}

/// Abbreviations: a full stop after these, or after a single letter ("p.m."), doesn't end a sentence.
const ABBREVIATIONS: &[&str] =
    &["mr", "mrs", "ms", "dr", "prof", "st", "no", "nr", "vs", "etc", "approx", "ca", "e.g", "i.e"];

fn ends_sentence(message: &str, tokens: &[Token], index: usize, token: &Token, next: &Token) -> bool {
    let between = message.get(token.span.end..next.span.start).unwrap_or_default();
    if between.contains('\n') {
        return true;
    }
    let before = index.checked_sub(1).and_then(|index| tokens.get(index)).map_or("", |token| token.text.as_str());
    let next_is_upper = message.get(next.span.clone()).is_some_and(|text| text.starts_with(char::is_uppercase));
    let next_is_word = next.text.starts_with(char::is_alphabetic);
    !next.glued
        && match token.text.as_str() {
            "!" | "?" | "…" => true,
            "." if before.starts_with(char::is_numeric) => next_is_upper,
            "." => before.chars().count() > 1 && !ABBREVIATIONS.contains(&before) && next_is_word,
            _ => false,
        }
}

const COURTESY: &[(&str, bool)] = &[
    ("can|could|would|will you", true),
    ("can|could|would|will u", true),
    ("i'd|id like you to", true),
    ("i want|need you to", true),
    ("i would like you to", true),
    ("would you mind", true),
    ("i was|am wondering if you could|can", true),
    ("i wonder if you could|can", true),
    ("can|could|may i ask you to", true),
    ("do me a favour|favor and|, ?and", true),
    ("be so kind as|and to", true),
    ("be a dear|darling|love and|,", true),
    ("if you don't mind|could|can|would|please ?,", false),
    ("if it's not too much trouble", false),
    ("when you have|get|find a minute|moment|second|chance ?,", false),
    ("hey|hi|hello|hiya|yo ?there ?reveille", false),
    ("good morning|afternoon|evening", false),
    ("quick|one|another|small|little question|thing|one|note|favour|favor :|,|-|–|.", false),
    ("one more|last thing ?:|,|-", false),
    ("just ?so you know ?that", false),
    ("for your|the information|record ?:|,", false),
    ("by the way", false),
    ("sorry to bother|disturb you ?again ?,|but", false),
    ("in case you need|forget it ?:|,", false),
    (
        "ok|okay|k|kk|hm|so|well|oh|also|then|now|right|yes|great|reveille|thanks|btw|fyi|actually|alright|hmm|um|uh|ah|sorry|sure|cool|perfect|oops|ups|whoops",
        false,
    ),
    ("please|pls|plz|kindly|just|quickly", false),
    ("no|nope|wait|sorry|correction ,|:|-", false),
    ("and", false),
];

const CLOSING_COURTESY: &[&str] = &[
    "please",
    "thanks",
    "thank you",
    "ok",
    "okay",
    "would you",
    "will you",
    "if you can",
    "if you could",
    "if possible",
    "if you don't mind",
    "when you can",
    "for me",
    "thanks a lot",
    "thank you so much",
    "thank you very much",
    "many thanks",
    "cheers",
    "mate",
    "reveille",
    "lol",
    "haha",
    "btw",
    "by the way",
];

/// Indirect forms of questions.
const ASKING: &[&str] = &[
    "tell|show|give|remind me|us ?again what|what's|when|when's|where|where's|who|who's|which|whose|how|how's|if|whether|why",
    "until|till|since|from when",
    "i ?do ?just wonder|wondered|forgot|forget ?about what|what's|when|where|who|which|whose|how|if|whether|why",
    "i'm|was wondering what|what's|when|where|who|which|whose|how|if|whether|why",
    "i can't|don't|cannot remember|recall|know what|what's|when|where|who|which|whose|how|if|whether|why",
    "i ?would ?just need|want|like to know",
    "let me know what|what's|when|where|who|which|whose|how|if|whether|why",
    "do|did|can|could you ?still ?happen remember|know|recall|tell|to ?know ?me what|what's|when|where|who|which|whose|how|if|whether|why",
    "any idea|clue|chance",
    "no idea|clue what|when|where|who|which|how|why",
    "not sure what|when|where|who|which|how|if|whether|why",
    "not sure|remember",
    "tell|show|give me|us my|our",
];

const QUESTION_WORDS: &str = "what|what's|whats|who|who's|whose|whom|where|where's|when|when's|why|how|how's|which|do|does|did|is|are|was|were|\
     am|can|could|should|would|will|shall|have|has|had|may|might|isn't|aren't|don't|doesn't|didn't|won't|any|anything";

/// Words that can't begin a body: "remind me is a phrase", "add a task and see".
const NO_BODY: &str = "is|was|are|were|means|mean|does|doesn't|did|isn't|wasn't|would|should|could|can|can't|cannot|will|won't|has|had|\
     and|or|but|if|unless|because|then|so|never|not|again|more|yet";

/// Verbs that make a statement out of mere words.
const VERBS: &str = "is|are|was|were|am|isn't|aren't|i'm|it's|he's|she's|has|have|had|hasn't|likes|like|loves|love|hates|hate|wants|want|needs|need|\
     lives|live|works|work|prefers|prefer|plays|drinks|eats|speaks|means|costs|costs|starts|ends|opens|closes|belongs|must|can|can't|cannot|\
     will|won't|doesn't|don't|should|shouldn't|moved|got|bought|got|changed|=|:";

impl<'t> Sentence<'t> {
    pub(super) fn len(&self) -> usize {
        self.tokens.len()
    }

    pub(super) fn cursor(&self) -> Cursor<'t> {
        Cursor::new(self.tokens, 0)
    }

    /// Returns the part from a token on.
    pub(super) fn part_from(&self, index: usize) -> Self {
        Self { tokens: self.tokens.get(index..).unwrap_or_default(), ..*self }
    }

    pub(super) fn skip_to(&self, cursor: Cursor<'t>) -> Self {
        self.part_from(cursor.index)
    }

    /// Skips an optional phrase at the beginning.
    pub(super) fn skip_phrase(&self, pattern: &str) -> Self {
        self.skip_to(self.cursor().skip(pattern))
    }

    /// Returns the part before a token.
    pub(super) fn part_until(&self, index: usize) -> Self {
        Self { tokens: self.tokens.get(..index).unwrap_or(self.tokens), ..*self }
    }

    pub(super) fn is_blank(&self) -> bool {
        self.tokens.iter().all(Token::is_mark)
    }

    /// Returns the person's own words.
    pub(super) fn text(&self) -> &'t str {
        match self.tokens {
            [] => "",
            [first, ..] => {
                let end = self.tokens.last().map_or(first.span.end, |last| last.span.end);
                self.message.get(first.span.start..end).unwrap_or_default()
            }
        }
    }

    /// Returns the rest after a phrase at the beginning.
    pub(super) fn strip_phrase(&self, pattern: &str) -> Option<Self> {
        self.cursor().match_phrase(pattern).map(|end| self.skip_to(end))
    }

    /// True if the sentence contains one of these words.
    pub(super) fn has_word(&self, words: &str) -> bool {
        self.tokens.iter().any(|token| words.split('|').any(|word| word == token.text))
    }

    /// True if the sentence consists of the phrase alone, apart from marks.
    pub(super) fn is_all_of(&self, pattern: &str) -> bool {
        let begin = self.without_opening_marks();
        let rest = begin.cursor().match_phrase(pattern).map(|end| begin.skip_to(end));
        rest.is_some_and(|rest| rest.is_blank() && !rest.has_word(":"))
    }

    /// Returns the rest after "and", "then", a comma or a semicolon.
    pub(super) fn strip_conjunction(&self) -> Option<Self> {
        let end = self.cursor().match_phrase("and|then|also|but|,|;|-|–|—")?;
        Some(self.skip_to(end.skip("?and|but ?then ?also ?please ?can|could ?you")))
    }

    /// Strips courtesy at both ends. Opening quotation marks stay, since they begin a quotation.
    pub(super) fn without_courtesy(&self) -> Self {
        let mut rest = self.without_opening_marks();
        while let Some((is_request, end)) = rest.cursor().match_table(COURTESY) {
            let is_request = rest.is_request || is_request;
            rest = Self { is_request, ..rest.skip_to(end) }.without_opening_marks();
        }
        rest.without_closing_courtesy()
    }

    fn without_closing_courtesy(&self) -> Self {
        let asks = self.tokens.last().is_some_and(|last| last.text == "?");
        let body = self.body();
        let closing = CLOSING_COURTESY.iter().find_map(|words| {
            let start = body.len().checked_sub(words.split(' ').count()).filter(|start| *start > 0)?;
            let found = body.part_from(start).cursor().match_phrase(words).is_some();
            found.then(|| body.part_until(start).body())
        });
        // The question mark of "… will you?" belongs to the courtesy.
        closing.map_or(*self, |rest| Self { is_request: self.is_request || asks, ..rest })
    }

    fn without_opening_marks(&self) -> Self {
        let is_quote = |token: &Token| {
            matches!(token.text.as_str(), "'" | "\"" | "“" | "”" | "„" | "«" | "»" | "‘" | "`" | "/" | "#")
        };
        let start = self.tokens.iter().position(|token| !token.is_mark() || is_quote(token));
        self.part_from(start.unwrap_or(self.len()))
    }

    /// Strips the marks at the end, and those that connect the sentence to the one before.
    pub(super) fn body(&self) -> Self {
        let joins =
            |token: &Token| matches!(token.text.as_str(), "," | ":" | ";" | "-" | "–" | "—" | "." | "!" | "?" | "…");
        let start = self.tokens.iter().position(|token| !joins(token)).unwrap_or(self.len());
        let end = self.tokens.iter().rposition(|token| !joins(token)).map_or(0, |last| last + 1);
        self.part_until(end).part_from(start)
    }

    /// True for a question, by its mark or its first word.
    pub(super) fn is_question(&self) -> bool {
        // "Tell me Jake's email".
        let of_somebody = |rest: Self| rest.cursor().text().ends_with("'s");
        let asks = || {
            ASKING.iter().any(|pattern| self.cursor().match_phrase(pattern).is_some())
                || self.strip_phrase("tell|show|give me|us").is_some_and(of_somebody)
        };
        self.is_bare_question() || asks() || (!self.is_request && self.cursor().match_phrase(QUESTION_WORDS).is_some())
    }

    /// Returns the core of a question: "any idea where my keys are" becomes "where my keys are".
    pub(super) fn extract_question(&self) -> Self {
        let without = self.without_courtesy();
        const OPENING: &str = "tell|show|give|remind|any|no|i|i'm|let|not|me|us|do|did|was|just|would|can't|can|could|don't|cannot|idea|clue|sure|again|\
                               remember|recall|wonder|wondering|wondered|forgot|forget|know|need|want|like|to|about|of|if|whether|you|still|happen|chance";
        let is_asking = ASKING.iter().any(|pattern| without.cursor().match_phrase(pattern).is_some())
            || without.cursor().match_phrase("tell|show|give me|us").is_some();
        let words = if is_asking { without.len() } else { 0 };
        let start = (0..words).find(|at| without.part_from(*at).cursor().match_phrase(OPENING).is_none()).unwrap_or(0);
        let asked = without.part_from(start);
        asked.body().without_ending("again|then|exactly|now|please")
    }

    pub(super) fn without_ending(&self, words: &str) -> Self {
        let last = self.len().saturating_sub(1);
        let is_one = last > 0 && self.part_from(last).cursor().match_phrase(words).is_some();
        if is_one { self.part_until(last) } else { *self }
    }

    /// True if a sentence ends in a question mark without being a request: "add a task?".
    pub(super) fn is_bare_question(&self) -> bool {
        !self.is_request && self.tokens.last().is_some_and(|last| last.text == "?")
    }

    /// True if the sentence contains another question: "… and what is the weather?".
    pub(super) fn asks_more(&self) -> bool {
        let asks = self.tokens.last().is_some_and(|last| last.text == "?");
        let more = |index: &usize| {
            self.part_from(*index)
                .strip_conjunction()
                .is_some_and(|rest| rest.cursor().match_phrase(QUESTION_WORDS).is_some())
        };
        asks && (0..self.len()).any(|index| more(&index))
    }

    /// True for a few words with an exclamation mark and no order.
    pub(super) fn is_cry(&self) -> bool {
        /// Tokens of the longest one.
        const MAX_CRY: usize = 7;
        let ends = self.tokens.last().is_some_and(|last| last.text == "!");
        let body = self.without_courtesy().body();
        let orders = body.is_negated()
            || body.has_word("stop|cancel|wait|remind|delete|remove|forget|don't|instead|undo|please|never|change");
        ends && self.len() <= MAX_CRY && !orders
    }

    /// Strips a reason at the end: "take Sam off the list, he's in Australia then". `None` if the ending may be another order.
    pub(super) fn without_reason(&self) -> Option<Self> {
        const REASON: &str = "?we|i already|don't|dont|it's|its|he's|hes|she's|shes|they're|theyre|she|he|they|still|because|cos|cause|too";
        const ORDER: &str = "move|instead|change|want|wants|make|add|put|but|to|then ?put|remind";
        let at = (2..self.len()).find(|at| {
            self.part_from(*at).strip_phrase(",|-|–|—").is_some_and(|rest| {
                let rest = rest.body();
                let last = rest.part_from(rest.len().saturating_sub(1));
                let is_told = (2..=5).contains(&rest.len())
                    && last.cursor().match_phrase("it|already|anymore|now|then|one").is_some();
                let tells = rest.len() >= 3
                    && rest.has_word("is|are|was|has|got|took|did|does|doesn't|isn't|can't|won't|made|said");
                rest.cursor().match_phrase(REASON).is_some() || is_told || tells
            })
        })?;
        let reason = self.part_from(at);
        (!reason.has_word(ORDER) && !self.is_question()).then(|| self.part_until(at))
    }

    /// Splits a statement from the question after its comma: "I weigh 71 kilos, how much is that in pounds?"
    pub(super) fn split_question(&self) -> Option<(Self, Self)> {
        const ASKS: &str = "how|what|what's|whats|when|when's|where|where's|who|who's";
        let at = (3..self.len()).find(|at| {
            self.part_from(*at).strip_phrase(",").is_some_and(|rest| rest.cursor().match_phrase(ASKS).is_some())
        })?;
        let told = self.part_until(at);
        (told.has_word(VERBS) && !told.without_courtesy().is_question() && told.without_courtesy().len() >= 3)
            .then(|| (told, self.part_from(at + 1)))
    }

    /// True for a plain statement about the sentence before.
    pub(super) fn is_continuation(&self) -> bool {
        self.cursor().match_phrase("it|it's|he|he's|she|she's|they|they're|this|that|that's|these|those").is_some()
            && self.has_word(VERBS)
    }

    /// True for reported speech: "remind me tomorrow, he said", or a sentence that begins with a quotation.
    pub(super) fn is_reported_speech(&self) -> bool {
        let begins = self.without_opening_marks();
        let quoted =
            begins.cursor().token().is_some_and(|first| first.is_mark() && first.text != "/" && first.text != "#");
        let body = self.body();
        let verb = "said|says|asked|asks|told|wrote|writes|shouted|replied";
        let said_last = (1..body.len()).rev().take(4).any(|index| {
            let part = body.part_from(index);
            let speaker = part.cursor().match_phrase(",|'|\"|”|’").map(Cursor::next);
            speaker.is_some_and(|after| after.match_phrase(verb).is_some())
        });
        quoted || said_last
    }

    /// True for a hypothetical question: "Would you … if I asked?"
    pub(super) fn is_hypothetical(&self) -> bool {
        (0..self.len()).any(|index| {
            self.part_from(index)
                .cursor()
                .match_phrase("if i|you|we|someone ask|asked|say|said|tell|told|write|wrote")
                .is_some()
        })
    }

    /// True for words that can be a fact, a title or the text of a reminder.
    pub(super) fn is_body(&self) -> bool {
        !self.is_blank() && self.cursor().match_phrase(NO_BODY).is_none()
    }

    /// True for a mere pronoun such as "it" or "that".
    pub(super) fn is_pronoun(&self) -> bool {
        self.is_all_of("it|this|that|them|these|those|him|her|one|some|everything|all")
    }

    pub(super) fn is_statement(&self) -> bool {
        self.is_body() && self.len() >= 3 && self.has_word(VERBS)
    }

    pub(super) fn is_negated(&self) -> bool {
        self.has_word("not|never|isn't|wasn't|hasn't|almost|nearly|half|partly|soon|no|nothing|if|when|unless|until")
    }

    /// Parses the body as a number ("2", "#2", "number two") or as words. `None` for no item, or for several.
    pub(super) fn parse_which(&self) -> Option<Which> {
        let body = self.body();
        let numbered = body.cursor().skip("task|reminder").skip("#|number|no|nr ?.");
        if let Some((number, end)) = numbered.read_number() {
            let alone = body.skip_to(end).is_blank();
            if alone || body.skip_to(end).cursor().match_phrase("and|,|or|to|-|&").is_some() {
                return alone.then_some(Which::Number(number));
            }
        }
        let counted = body.skip_phrase("the|my");
        if let Some((number, end)) = counted.cursor().read_ordinal()
            && counted.skip_to(end.skip("one|task|item|thing|entry")).is_blank()
        {
            return Some(Which::Number(number));
        }
        let text = body.strip_quotes().text();
        let several = body.cursor().match_phrase("all|both|every|everything|any").is_some();
        (body.is_body() && !body.is_pronoun() && !several).then(|| Which::Text(text.to_owned()))
    }

    pub(super) fn strip_quotes(&self) -> Self {
        let quote = |token: Option<&Token>| {
            token.is_some_and(|token| matches!(token.text.as_str(), "'" | "\"" | "“" | "”" | "’" | "‘"))
        };
        if self.len() > 2 && quote(self.tokens.first()) && quote(self.tokens.last()) {
            self.part_until(self.len() - 1).part_from(1)
        } else {
            *self
        }
    }
}
