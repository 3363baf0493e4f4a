//! Distinguishes a model caught in a loop from a person repeating themselves, and cuts the loop to one round.
//!
//! Only letters and digits are compared, since many scripts have no spaces, and the parts of a recording are joined by spaces. A loop runs
//! for dozens of rounds, until the model has no room left. People stop much sooner, except when they spell: a code may be six zeros, an
//! account number may have twenty digits.

/// The longest phrase searched for, in letters and digits: even whole sentences may loop.
const MAX_PHRASE: usize = 80;
/// The most rounds of a phrase that a person may say.
const MOST_ROUNDS: usize = 5;
/// The most rounds of one short word: "no, no, no", laughter, はい.
const MOST_ROUNDS_OF_A_WORD: usize = 11;
/// The longest short word, in letters.
const SHORT_WORD: usize = 8;
/// The most words, or digits without spaces, that a person may spell at once.
const MOST_SPELLED: usize = 30;

/// Words used for spelling, besides digits and single letters: numbers up to ten, and words for several of them.
const SPELLED: &str = "zero oh nought nil one two three four five six seven eight nine ten hundred thousand double triple dot point dash \
    hyphen slash underscore null eins zwei zwo drei vier fünf sechs sieben acht neun zehn punkt strich doppelnull \
    zéro un deux trois quatre cinq sept huit neuf dix cero uno dos tres cuatro cinco seis siete ocho nueve diez punto \
    due tre quattro cinque sei sette otto nove dieci um dois três quatro sete oito dez meia nul een twee vijf zes zeven negen tien \
    noll nolla ett två tre fyra fem sju åtta nio tio nul en to fire seks syv otte ni ti \
    ноль нуль один два три четыре пять шесть семь восемь девять десять одна две jeden dwa trzy cztery pięć sześć siedem osiem \
    dziewięć dziesięć sıfır bir iki üç dört beş altı yedi sekiz dokuz on nulla egy kettő három négy öt hat hét nyolc kilenc \
    صفر واحد اثنان ثلاثة أربعة خمسة ستة سبعة ثمانية تسعة शून्य एक दो तीन चार पाँच पांच छह सात आठ नौ \
    ゼロ れい まる いち に さん よん し ご ろく なな しち はち きゅう 零 〇 一 二 三 四 五 六 七 八 九 十 两 幺 \
    영 공 일 이 삼 사 오 육 칠 팔 구";

/// A letter or digit of a text, or a combining mark.
struct Character {
    c: char,
    /// Its end in the text, in bytes.
    end: usize,
    begins_word: bool,
}

/// A text with its loops cut.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Unlooped {
    pub(super) text: String,
    /// Each loop's rounds after the first.
    pub(super) cut: Vec<String>,
    /// The number of these rounds.
    pub(super) rounds_cut: usize,
}

/// Cuts every loop of a text to one round. The rest stays as written, except for single spaces between words.
pub(super) fn cut_loops(text: &str) -> Unlooped {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let characters = split_characters(&text);
    let mut unlooped = Unlooped::default();
    let (mut at, mut written) = (0, 0);
    while at < characters.len() {
        let Some((length, rounds)) = find_loop(&characters, at) else {
            at += 1;
            continue;
        };
        let last_of =
            |round: usize| characters.get(at + length * round - 1).map_or(text.len(), |character| character.end);
        let (first_end, end) = (last_of(1), last_of(rounds));
        unlooped.text.push_str(text.get(written..first_end).unwrap_or_default());
        let cut = text.get(first_end..end).unwrap_or_default();
        unlooped.cut.push(cut.trim_start_matches(|c: char| !is_compared(c)).to_owned());
        unlooped.rounds_cut += rounds - 1;
        written = end;
        at += length * rounds;
    }
    unlooped.text.push_str(text.get(written..).unwrap_or_default());
    unlooped
}

fn split_characters(text: &str) -> Vec<Character> {
    let mut characters = Vec::new();
    let mut begins_word = true;
    for (start, c) in text.char_indices() {
        begins_word |= c.is_whitespace();
        if is_compared(c) {
            let end = start + c.len_utf8();
            let lower = c.to_lowercase().next().unwrap_or(c);
            characters.push(Character { c: lower, end, begins_word: std::mem::take(&mut begins_word) });
        }
    }
    characters
}

/// Returns `true` for characters that are compared. Marks belong to their letters, and unknown characters aren't taken for punctuation.
fn is_compared(c: char) -> bool {
    let is_punctuation = c.is_ascii_punctuation()
        || "؟،؛۔।॥・".contains(c)
        || matches!(c, '\u{a1}'..='\u{bf}' | '\u{2000}'..='\u{206f}' | '\u{3000}'..='\u{303f}')
        || matches!(c, '\u{ff00}'..='\u{ff0f}' | '\u{ff1a}'..='\u{ff20}' | '\u{ff5b}'..='\u{ff65}');
    c.is_alphanumeric() || !(is_punctuation || c.is_whitespace() || c.is_control())
}

/// Finds the shortest phrase that loops from `at` on. Returns its length and the number of its rounds.
fn find_loop(characters: &[Character], at: usize) -> Option<(usize, usize)> {
    let rest = characters.get(at..)?;
    (1..=MAX_PHRASE.min(rest.len() / 2)).find_map(|length| {
        let (phrase, next) = (rest.get(..length)?, rest.get(length)?);
        // Inside a word, a loop must stay inside it, so that "hand, and, and" is left alone.
        let stays_within = !next.begins_word && phrase.iter().skip(1).all(|character| !character.begins_word);
        if !rest.first()?.begins_word && !stays_within {
            return None;
        }
        let alike = rest.iter().zip(rest.iter().skip(length)).take_while(|(one, other)| one.c == other.c).count();
        let mut rounds = alike / length + 1;
        // Only whole words count: the "no" of "nobody" doesn't.
        let ends_word = |rounds: usize| rest.get(length * rounds).is_none_or(|character| character.begins_word);
        while next.begins_word && rounds > 1 && !ends_word(rounds) {
            rounds -= 1;
        }
        (rounds > MOST_ROUNDS && rounds > most_rounds(phrase)).then_some((length, rounds))
    })
}

/// Returns how often a person may say a phrase in a row.
fn most_rounds(phrase: &[Character]) -> usize {
    let mut words: Vec<String> = Vec::new();
    for character in phrase {
        match words.last_mut() {
            Some(word) if !character.begins_word => word.push(character.c),
            _ => words.push(character.c.to_string()),
        }
    }
    let is_numeral = |c: char| c.is_numeric() || SPELLED.split_whitespace().any(|word| word.chars().eq([c]));
    if phrase.iter().all(|character| is_numeral(character.c)) {
        return MOST_SPELLED / phrase.len();
    }
    let is_letter = |word: &str| word.chars().count() == 1;
    if words.iter().all(|word| is_letter(word) || SPELLED.split_whitespace().any(|spelled| spelled == word)) {
        return MOST_SPELLED / words.len();
    }
    if words.len() == 1 && phrase.len() <= SHORT_WORD { MOST_ROUNDS_OF_A_WORD } else { MOST_ROUNDS }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn repeated(phrase: &str, times: usize) -> String {
        vec![phrase; times].join(" ")
    }

    /// To cover a newly reported text, add one line: the model's text, and the part that should be left of it.
    #[test]
    fn a_person_may_repeat_themselves_but_a_loop_is_cut_to_one_round() {
        let kept = [
            "the code is zero zero zero zero zero zero".to_owned(),
            "Der Code ist null null null null null null null null.".to_owned(),
            "código cero cero cero cero cero cero".to_owned(),
            "код ноль ноль ноль ноль ноль ноль ноль".to_owned(),
            "暗証番号はゼロゼロゼロゼロゼロゼロです".to_owned(),
            "密码是零零零零零零零零零零零零".to_owned(),
            "The code is 000000.".to_owned(),
            "Pin 0 0 0 0 0 0 0 0, then 1-1-1-1-1-1-1-1".to_owned(),
            "IBAN DE00 0000 0000 0000 0000 00".to_owned(),
            "A A A A A A A, like the battery".to_owned(),
            "one two one two one two one two one two one two and rest".to_owned(),
            "one one one, two two two, three three three".to_owned(),
            "double zero double zero double zero double zero double zero double zero".to_owned(),
            "no, no, no, no! Stop.".to_owned(),
            "No no no no no no no no, not that one".to_owned(),
            "ha ha ha ha ha ha ha ha ha".to_owned(),
            "hahahahahahahaha".to_owned(),
            "哈哈哈哈哈哈哈哈".to_owned(),
            "对对对对对对，就是这样".to_owned(),
            "はいはいはいはいはいはい".to_owned(),
            "555555555 ตลก".to_owned(),
            "1. milk 2. milk 3. milk 4. milk 5. milk 6. milk 7. milk".to_owned(),
            "wooooooow".to_owned(),
            "alright, alright, alright".to_owned(),
            "again and again and again and again".to_owned(),
            repeated("I'm sorry.", MOST_ROUNDS),
        ];
        for text in kept {
            assert_eq!(cut_loops(&text), Unlooped { text: text.clone(), ..Unlooped::default() });
        }
        let cut = [
            ("はい".repeat(40), "はい", 39),
            (repeated("はい", 40), "はい", 39),
            ("はい、".repeat(40), "はい、", 39),
            ("はいはいはい はいはい ".repeat(8), "はい", 39),
            (format!("そう{}。", "はい".repeat(40)), "そうはい。", 39),
            ("ありがとうございます。".repeat(9), "ありがとうございます。", 8),
            ("謝謝大家收看".repeat(12), "謝謝大家收看", 11),
            ("ขอบคุณค่ะ".repeat(20), "ขอบคุณค่ะ", 19),
            ("네 ".repeat(50), "네", 49),
            (repeated("and the", 40), "and the", 39),
            (repeated("I'm sorry.", 9), "I'm sorry.", 8),
            (format!("Please call. {} Bye.", repeated("okay,", 60)), "Please call. okay, Bye.", 59),
            (format!("say {} nobody came", repeated("no", 40)), "say no nobody came", 39),
            (format!("my hand {}", repeated("and", 40)), "my hand and", 39),
            (format!("oui, une {} donnée", repeated("petite", 60)), "oui, une petite donnée", 59),
            (repeated("¡Muy bien!", 20), "¡Muy bien!", 19),
            (format!("H{}.", "m".repeat(222)), "Hm.", 221),
            (repeated("zero", 200), "zero", 199),
            ("0".repeat(300), "0", 299),
            ("a".repeat(300), "a", 299),
        ];
        for (text, left, rounds) in cut {
            let unlooped = cut_loops(&text);
            assert_eq!((unlooped.text.as_str(), unlooped.rounds_cut), (left, rounds), "{text}");
            assert_eq!(unlooped.cut.len(), 1, "{text}");
        }
    }

    proptest::proptest! {
        /// The cut and the kept text together hold all letters and digits of the input.
        #[test]
        fn every_letter_is_kept_or_named_as_cut(text in "[ab。 1は]{0,60}", phrase in "[abは ]{1,4}", times in 0_usize..60) {
            let text = format!("{text}{}{text}", phrase.repeat(times));
            let unlooped = cut_loops(&text);
            let count = |text: &str| text.chars().filter(|c| c.is_alphanumeric()).count();
            let cut: usize = unlooped.cut.iter().map(|cut| count(cut)).sum();
            proptest::prop_assert_eq!(count(&unlooped.text) + cut, count(&text));
        }
    }
}
