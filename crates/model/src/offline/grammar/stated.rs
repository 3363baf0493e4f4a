//! Parses plain statements of fact, stored without "remember that" if the owner writes them: "my son is called Milo", "I parked on level
//! 3". Only statements of these forms count, as opposed to momentary ones ("I'm tired"), doubts and possible questions.

use chrono::DateTime;

use reveille_base::zone::Tz;

use super::{OfflineCommand, Reading, ask_back, sentence::Sentence};

/// Maximum tokens of a statement.
const MAX_TOKENS: usize = 32;
/// Words of a doubt, a question, an order, or speech to the assistant.
const UNSURE: &str = "maybe|perhaps|probably|possibly|think|thinking|guess|hope|hoping|wish|wonder|wondering|suppose|believe|might|if|unless|whether|\
                      almost|nearly|sure|idk|forgot|forget|remind|you|your|yours|you're|should|shouldn't|would|could|let's|lets|what|what's|when|where|who|who's|\
                      why|how|which|whose|please|seems|seem|looks|supposedly|joking|kidding|lol|haha|imagine|pretend|but|because|or|said|says|told|\
                      asked|wants me|?|whatever|something|anything|nothing|everything|help|question|remember";
/// Words for the assistant's own things, which no statement is about.
const OWN_THINGS: &str =
    "task|tasks|reminder|reminders|list|todo|todos|backlog|message|messages|assistant|bot|command|status|timer|alarm";
/// Words for momentary states.
const PASSING: &str = "tired|hungry|thirsty|bored|sad|angry|mad|upset|late|busy|back|home|here|there|ready|done|sorry|fine|ok|okay|great|nice|awful|terrible|\
                       annoying|crying|sleeping|asleep|coming|going|gone|raining|killing|crazy|delicious|fun|funny|boring|amazing|lovely|beautiful|\
                       good|bad|better|worse|wrong|stupid|weird|soon|driving|freezing|cold|hot|too|so|very|really|hurts|hurting|feeling|slow|long";
/// Words for secrets, which don't belong in a memory that is displayed, pushed and searched.
pub(super) const SECRETS: &str = "password|passwords|passcode|passphrase|pin|cvv|cvc|tan|puk|code|passwort|login";
pub(super) const SECRET: &str = "I don't write down passwords, codes or card numbers, so nothing has been saved: a password manager is the place for them.";

/// Third-person verbs of lasting facts.
const THEIRS: &str = "is|are|was|has|have|had|likes|like|loves|love|hates|hate|dislikes|prefers|prefer|lives|live|works|work|plays|play|drinks|drink|eats|eat|\
                      speaks|speak|costs|cost|starts|start|ends|end|opens|open|closes|close|belongs|belong|owes|owe|goes|go|comes|come|gets|get|wears|wear|\
                      drives|drive|owns|own|studies|study|teaches|needs|need|takes|take|can't|cannot|doesn't|don't|isn't|aren't|moved|got|died|married|\
                      arrives|arrive|leaves|leave|expires|expire|runs|weighs|collects|does|turns|visits|attends|keeps|knows|uses|supports|hasn't|wants|\
                      renews|renew|always|usually|normally|pays|pay|started|graduated|retired|borrowed|gave|lent|bought|finishes|finish|meets|meet";
/// Words after "I" or "we" that begin a lasting fact about the person.
const MINE: &[&str] = &[
    "don't|do|never|always|usually|also|really|only|mostly|often ?not like|love|hate|prefer|enjoy|drink|eat|drive|speak|play|live|work|own|use|wear|take|smoke|cook|\
     watch|read|listen|support|collect|study|teach|go|get|wake|sleep|trust|dislike|adore",
    "like|love|hate|dislike|prefer|enjoy|adore|take|live|work|own|drive|speak|play|drink|eat|weigh|use|wear|study|teach|support|collect|owe|smoke",
    "?just ?have moved|parked|left|put|keep|hid|lent|borrowed|stored|gave",
    "was born|raised|married|vaccinated|diagnosed",
    "grew up",
    "got married|engaged|divorced|promoted|vaccinated",
    "met|married|started|joined|graduated|studied|worked|lived|quit|retired",
    "?usually ?always go|get|wake|sleep to|up|at|by|in",
    "fly|travel|drive|move|leave|arrive|return|meet to|from|on|at|in|back|home",
    "can't|cannot stand|eat|drink|have|swim|drive|sleep",
    "can swim|drive|speak|play",
    PAST,
    "no longer|more live|work|have|drive|eat|drink|smoke|like|own|play|need",
    "don't have|own|drive|need a|an|any|the|my",
    "took|had my",
    "changed|replaced|renewed|cleaned|serviced|watered|sold|quit",
];
/// Verbs of single events, stored with their day.
const PAST: &str = "sowed|planted|swapped|measured|turned|went|ran|walked|cycled|spent|slept|saw|watched|ate|drank|flew|drove|swam|won|lost|broke|felt|weighed|missed|found|fell|hurt";
/// Words after "I'm" that begin a lasting fact.
const BEING: &[&str] = &[
    "?also ?really ?very ?severely ?not allergic|intolerant|vegan|vegetarian|pescatarian|diabetic|coeliac|celiac|lactose|gluten|left-handed|right-handed|colour-blind|\
     colorblind|pregnant|married|single|divorced|engaged|retired|widowed|asthmatic|dyslexic|catholic|muslim|jewish|buddhist|atheist",
    "called|named|born|based|from|originally",
    "?not a|an",
    "scared|afraid|terrified|fond|tall of",
    "living|working|studying|staying|training in|at|for|with|as|on",
    "learning",
    "interested in",
    "in my|room|seat|class|team|year",
];
const NO_BEING: &str = "a|an bit|little|lot|fan|idiot|mess|genius|wreck|fool";
/// Words after "I have" for something momentary, or for a request.
const NO_HAVING: &str = "?such ?a|an|no|some|the|one ?small|quick|terrible|bad|good|great|little|stupid|weird ?more to|question|questions|idea|ideas|problem|problems|headache|cold|\
                         fever|flu|feeling|minute|moment|second|request|favour|favor|doubt|doubts|issue|fun|time|been|never|just|already|got|no|nothing|hope|\
                         cough|stomachache|migraine|hangover|not|decided|seen|heard|tried|finished|done|enough";
/// Words that begin no subject.
const NO_SUBJECT: &str = "it|it's|he|he's|she|she's|they|they're|this|that|that's|these|those|there|there's|here|here's|you|you're|everything|everybody|everyone|\
                          nothing|nobody|someone|somebody|something|all|life|work|today|tomorrow|yesterday|tonight|people|things|stuff|not|no|never|don't|\
                          do|please|remind|remember|forget|note|add|task|delete|cancel|move|set|list|show|tell|call|buy|send|write|make|get|give|find|\
                          search|look|check|read|open|play|turn|let|what|who|one|some|many|most|if|when|while|since|after|before|unless|because|although|\
                          mark|stop|wake|start|finish|done|hope|hoping|just|only|maybe|in|on|at|for|to|of|with|from|by|and|but|or|so|as|than|last|next|\
                          every|each|any|both|either|neither|well|ok|yes|sometimes|often|always|usually|i|we|me|us|him|her|them|summarise|summarize|\
                          translate|explain|draw|book|order|plan|help|how|why|where|which|whose|a|an|translate|compare|generate|create|draft|email|message|ask|say|text|pay|water|clean|fix|\
                          meet|go|come|use|try|keep|put|take|bring|leave|close|lock|change|update|correct|pick|drop|talk|invite|schedule|prepare|think";

/// Attributes with a value, so that a sentence about them states a fact.
const ATTRIBUTES: &str = "number|size|type|name|birthday|address|plate|anniversary|phone|email|appointment|anniversary|combination|height|weight|licence|license";
/// Words at the end of a statement that asks, or points at something.
const OPEN_END: &str = "here|there|i|he|she|they|we|right|correct|huh|eh|no|yes|innit|again";
/// Travel and meetings, which count with a time.
const PLANS: &[&str] = &["going|flying|travelling|traveling|moving|driving|off|back to|in", "meeting|seeing|visiting"];

/// Parses a statement to store as a fact, in the person's own words.
pub(super) fn parse_stated(sentence: &Sentence<'_>, now: DateTime<Tz>) -> Option<Reading> {
    let body = sentence.body();
    let is_open = sentence.is_question()
        || sentence.is_bare_question()
        || body.has_word(UNSURE)
        || body.has_word("that")
        || body.len() > MAX_TOKENS;
    let is_short = body.len() < if body.cursor().text() == "i'm" { 2 } else { 3 };
    if is_open || is_short || body.has_word(OWN_THINGS) || body.text().contains(['\n', '`', '*', '<', '>', '“', '"'])
    {
        return None;
    }
    // The sentence refers to something outside of it.
    if body.part_from(body.len() - 1).is_pronoun()
        || body.part_from(body.len() - 1).cursor().match_phrase(OPEN_END).is_some()
    {
        return None;
    }
    // "I moved it to the drawer" would be meaningless later.
    if body.has_word("it|them|him|these|those") {
        return None;
    }
    let is_a_day = body
        .strip_phrase("today|tomorrow|yesterday is|was")
        .is_some_and(|day| day.cursor().match_phrase("my|our").is_some() || day.cursor().text().ends_with("'s"));
    // "From January on my rate is 72" is a statement about the rate.
    let from_then =
        (2..body.len().min(7)).map(|at| body.part_from(at)).find(|rest| rest.cursor().match_phrase("my|our").is_some());
    let is_from_then = body.cursor().match_phrase("from|since|starting|as").is_some()
        && from_then.is_some_and(|rest| is_of_mine(&rest));
    if !(is_a_day
        || is_from_then
        || is_my_name(&body)
        || is_of_myself(&body)
        || is_of_mine(&body)
        || is_of_others(&body))
    {
        return None;
    }
    if body.has_word(SECRETS) || is_card_number(body.text()) {
        return Some(ask_back(SECRET));
    }
    Some(Reading::Command(OfflineCommand::Stated { fact: add_date(body.text(), now) }))
}

/// True for "I'm Ben", "call me Ben".
fn is_my_name(body: &Sentence<'_>) -> bool {
    let name = body.strip_phrase("i'm").or_else(|| body.strip_phrase("i am")).or_else(|| body.strip_phrase("call me"));
    name.is_some_and(|name| {
        let words: Vec<&str> = name.text().split_whitespace().collect();
        (1..=3).contains(&words.len())
            && words.iter().all(|word| word.starts_with(char::is_uppercase) && word.chars().any(char::is_lowercase))
    })
}

/// True for "I'm allergic to nuts", "we live in Kiel", "I have two cats".
fn is_of_myself(body: &Sentence<'_>) -> bool {
    if let Some(rest) = body
        .strip_phrase("i'm")
        .or_else(|| body.strip_phrase("i am"))
        .or_else(|| body.strip_phrase("we're"))
        .or_else(|| body.strip_phrase("we are"))
    {
        let is_age = rest.cursor().read_number().is_some_and(|(_, end)| {
            rest.skip_to(end).is_blank()
                || rest.skip_to(end).cursor().match_phrase("years|yrs|year|cm|m|kg|.|,|and").is_some()
        });
        let lasts = BEING.iter().any(|pattern| rest.cursor().match_phrase(pattern).is_some());
        return is_age || (lasts && rest.cursor().match_phrase(NO_BEING).is_none()) || is_plan(&rest);
    }
    let Some(rest) = body.strip_phrase("i've|i|we|we've").or_else(|| {
        let is_day_kept = body.cursor().match_phrase("sowed|planted|ran|swam|cycled|walked|slept|weighed|measured|spent|drove|started|finished|swapped|moved|joined|saw|met").is_some() && (is_timed(body) || body.text().contains(|c: char| c.is_ascii_digit()));
        let is_deed = is_day_kept || body.cursor().match_phrase("parked").is_some()
            || body.cursor().match_phrase("lent|left|put|gave|borrowed|hid my|our|the|a").is_some();
        is_deed.then_some(*body)
    }) else {
        return false;
    };
    if let Some(had) = rest.strip_phrase("?also ?have|had|got")
        && rest.cursor().match_phrase("?also have|got|had").is_some()
    {
        let is_thing = had.cursor().match_phrase("a|an|two|three|four|five|six|no|my|the|one|many|several|some").is_some()
            || had.cursor().read_number().is_some()
            || had.cursor().match_phrase("asthma|diabetes|allergies|anxiety|adhd|arthritis|epilepsy|hayfever|blue|brown|green|grey|red|blond|blonde|size").is_some();
        return is_thing && had.cursor().match_phrase(NO_HAVING).is_none();
    }
    MINE.iter().any(|pattern| rest.cursor().match_phrase(pattern).is_some()) && rest.len() >= 2
}

/// True for "Going to Italy in August", "meeting Anna tomorrow": a named place or person, at a time.
fn is_plan(rest: &Sentence<'_>) -> bool {
    let whereto = PLANS.iter().find_map(|pattern| rest.strip_phrase(pattern));
    let is_named = |whereto: &Sentence<'_>| {
        whereto.text().starts_with(char::is_uppercase) || whereto.cursor().match_phrase("my|the").is_some()
    };
    let is_event = rest.cursor().match_phrase("having|getting|hosting|expecting").is_some();
    is_timed(rest) && (is_event || whereto.as_ref().is_some_and(is_named))
}

/// True if the words name a day.
fn is_timed(rest: &Sentence<'_>) -> bool {
    (0..rest.len()).any(|at| {
        let word = rest.part_from(at).cursor();
        word.match_phrase(RELATIVE).is_some() || word.read_month().is_some() || word.read_weekday().is_some()
    })
}

/// True for "My son is called Milo", "our anniversary is 3 May", "the spare key is under the mat".
fn is_of_mine(body: &Sentence<'_>) -> bool {
    let Some(rest) = body
        .strip_phrase("my|our")
        .map(|rest| (rest, true))
        .or_else(|| body.strip_phrase("the").map(|rest| (rest, false)))
    else {
        return false;
    };
    let (rest, is_own) = rest;
    find_predicate(&rest).is_some_and(|told| is_own || is_firm(&told))
}

/// True for "Anna likes tea", "Tom is my brother", "mum's birthday is 3 May".
fn is_of_others(body: &Sentence<'_>) -> bool {
    let is_named = body.text().starts_with(char::is_uppercase);
    if body.cursor().match_phrase(NO_SUBJECT).is_some() || !body.cursor().text().starts_with(char::is_alphabetic) {
        return false;
    }
    let is_possessive = (0..body.len().min(4)).any(|at| {
        let text = body.part_from(at).cursor().text();
        text.ends_with("'s") || text.ends_with("s'")
    }) || body
        .cursor()
        .next()
        .match_phrase("birthday|name|number|phone|address|email|favourite|favorite|car|wife|husband|partner|boss")
        .is_some();
    find_predicate(body).is_some_and(|told| {
        let is_verb = told.cursor().match_phrase("likes|loves|hates|dislikes|prefers|lives|works|plays|drinks|eats|speaks|owes|studies|teaches|drives|owns|moved|turns|weighs|measures|costs|doesn't|can't|cannot|wants|always|usually|normally|pays|\
                     wears|collects|attends|supports|knows").is_some();
        let is_having = told.strip_phrase("has").is_some_and(|rest| rest.cursor().match_phrase(NO_HAVING).is_none() && !rest.cursor().text().ends_with("ed"));
        let is_of_mine = told.strip_phrase("borrowed|lent|gave|bought|took|keeps|has").is_some_and(|rest| rest.cursor().match_phrase("me|my|us|our").is_some());
        let is_kin = told.cursor().match_phrase("is|was|are my|our").is_some();
        let is_told = told.cursor().match_phrase("is|are|was ?also ?not ?very allergic|vegan|vegetarian|called|named|born|from|married|engaged|diabetic|lactose|pregnant|in|at|on|years").is_some();
        let subject = body.part_until(body.len() - told.len());
        let is_attribute = subject.has_word(ATTRIBUTES);
        let is_age = told.strip_phrase("is").is_some_and(|rest| rest.cursor().read_number().is_some());
        is_possessive || is_attribute || is_having || is_of_mine || is_verb || is_kin || is_told || is_age || (is_firm(&told) && (is_named || is_exact(&told)))
    })
}

/// True for words with a number or a name, and without a time worth a reminder: "load ref is KX88213".
fn is_exact(told: &Sentence<'_>) -> bool {
    let words: Vec<&str> = told.text().split_whitespace().skip(1).collect();
    let is_name = |word: &&str| word.starts_with(char::is_uppercase) && word.len() > 1;
    let has_time = is_timed(told)
        || told.has_word("due")
        || (0..told.len()).any(|at| {
            told.part_from(at)
                .strip_phrase("at|by|on ?the")
                .is_some_and(|time| time.cursor().read_number().is_some() || time.cursor().read_ordinal().is_some())
        });
    !has_time
        && words.iter().any(|word| {
            word.contains(|c: char| c.is_ascii_digit()) || is_name(word) || matches!(*word, "dr" | "mr" | "mrs" | "ms")
        })
}

/// Returns the words about a subject, from the verb on. `None` without a subject or a predicate, or for a momentary state.
fn find_predicate<'t>(rest: &Sentence<'t>) -> Option<Sentence<'t>> {
    /// Maximum tokens of a subject.
    const MAX_SUBJECT: usize = 8;
    let at = (1..rest.len().min(MAX_SUBJECT)).find(|at| rest.part_from(*at).cursor().match_phrase(THEIRS).is_some())?;
    let told = rest.part_from(at);
    let next = told.cursor().next();
    let is_going_on = told.cursor().match_phrase("is|are|was").is_some() && next.text().ends_with("ing");
    let is_passing = if is_going_on { !is_timed(&told) } else { next.match_phrase(PASSING).is_some() };
    let is_nothing =
        told.len() < 2 || told.cursor().next().token().is_none_or(|next| next.is_mark() && next.text != "+");
    (!is_passing && !is_nothing).then_some(told)
}

/// True for a place, a number, a name or a day, which distinguish a fact from an opinion.
fn is_firm(told: &Sentence<'_>) -> bool {
    let Some(rest) = told.strip_phrase("is|are|was|were ?always ?usually ?now ?also ?last") else {
        return told
            .cursor()
            .match_phrase("goes|go|opens|closes|starts|ends|costs|expires|arrives|leaves|comes|belongs|turns|has|takes|needs|finish|finishes|start|close|open|leave|\
                     arrive|come|go|renews|renew")
            .is_some();
    };
    if is_timed(&rest) {
        return true;
    }
    let is_placed = rest.cursor().match_phrase("in|under|on|at|behind|next|with|above|below|inside|near|between|from|beside|over|called|named|every|due|closed|open|\
                                          off|my|our|mr|mrs|dr|ms|valid|parked|kept|hidden|stored|located|allergic|born|serviced").is_some();
    let next = rest.cursor().token().and_then(|token| rest.text().get(..token.span.len()));
    let is_name = next.is_some_and(|text| text.starts_with(char::is_uppercase));
    let is_number = (0..rest.len()).any(|at| rest.part_from(at).cursor().read_number().is_some());
    is_placed || is_name || is_number
}

/// Words whose day depends on the time of the message.
const RELATIVE: &str = "today|tonight|tomorrow|yesterday|ago|next|last|this|soon|weekend|monday|tuesday|wednesday|thursday|friday|saturday|sunday|\
                        tmrw|tmr|recently|currently";

/// True for a run of 15 digits or more.
fn is_card_number(text: &str) -> bool {
    let digits: Vec<char> = text.chars().filter(|c| !matches!(c, ' ' | '-')).collect();
    digits.split(|c| !c.is_ascii_digit()).any(|run| run.len() >= 15)
}

/// Adds the day of the message to a fact with a relative time: "tomorrow" means another day tomorrow.
fn add_date(fact: &str, now: DateTime<Tz>) -> String {
    let words: Vec<String> = fact.to_lowercase().split(|c: char| !c.is_alphanumeric()).map(str::to_owned).collect();
    let has = |list: &str| words.iter().any(|word| list.split('|').any(|one| one == word));
    let recurs = has("every|each|always|usually") || words.iter().any(|word| word.ends_with("days"));
    let is_appointment = has("have|had|got") && fact.contains(" at ");
    if !(has(RELATIVE) || is_appointment || has(PAST)) || recurs {
        return fact.to_owned();
    }
    format!("{fact} (said on {})", now.format("%A, %-d %B %Y"))
}
