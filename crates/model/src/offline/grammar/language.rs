//! Detects languages other than English by their most common words, to tell the person in their own language that only English is
//! understood.

use super::spelling::parse_tokens;

/// A language that is detected but not understood.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Language {
    /// Deutsch.
    German,
    /// Français.
    French,
    /// Español.
    Spanish,
    /// Italiano.
    Italian,
    /// Português.
    Portuguese,
}

impl Language {
    /// The notice to a person who writes in this language.
    pub const fn notice(self) -> &'static str {
        match self {
            Self::German => {
                "Ohne KI-Modell (offline) verstehe ich nur Englisch. Es ist nichts gespeichert; ich hebe deine Nachricht auf, bis es \
                 eines gibt (`wake init`)."
            }
            Self::French => {
                "Sans modèle d’IA (hors ligne), je ne comprends que l’anglais. Rien n’est enregistré ; je garde ton message jusqu’à ce \
                 qu’il y en ait un (`wake init`)."
            }
            Self::Spanish => {
                "Sin un modelo de IA (sin conexión) solo entiendo inglés. No se ha guardado nada; conservo tu mensaje hasta que haya uno \
                 (`wake init`)."
            }
            Self::Italian => {
                "Senza un modello di IA (offline) capisco solo l’inglese. Non ho salvato nulla; tengo il tuo messaggio finché non ce n’è \
                 uno (`wake init`)."
            }
            Self::Portuguese => {
                "Sem um modelo de IA (offline) só entendo inglês. Nada foi guardado; fico com a tua mensagem até haver um (`wake init`)."
            }
        }
    }
}

const WORDS: [(Language, &str); 5] = [
    (
        Language::German,
        "ich mich mir du dich dir wir uns ihr sie der das dem den des ein eine einen einem einer und oder nicht kein keine ist sind bin \
         bist war habe hast hat haben kann kannst muss soll wann wo warum wie wer wer's welche welcher mein meine meinen meiner dein \
         deine heute morgen gestern bitte danke erinnere erinner merk merke auf zu für mit von bei nach um uhr am im zur zum noch auch \
         schon aber dass geburtstag aufgabe einkaufsliste milch kaufen anrufen guten hallo tag abend gute nacht schreib heiße heisse wohne lebe arbeite setze füge steht an spät heißt gibt's wieviel welche mal \
         hinzu termin zahnarzt heißt mag wohnt über geht's hilfe kannst",
    ),
    (
        Language::French,
        "je tu il elle nous vous ils moi toi le les des du un une et ou ne pas est sont suis es était ai as avons avez ont peux peut \
         dois quand où pourquoi comment qui quel quelle mon ma mes ton ta tes son sa ses notre aujourd'hui demain hier merci bonjour \
         bonsoir salut rappelle-moi rappelle rappeler acheter acheté appeler ajoute à au aux pour avec dans sur chez anniversaire tâche \
         lait s'il plaît c'est j'ai n'oublie qu'est-ce que quoi heure liste courses femme mari fils fille s'appelle aime souviens-toi m'appelle j'habite \
         l'anniversaire d'acheter d'appeler",
    ),
    (
        Language::Spanish,
        "yo tú él ella nosotros mí el los las un una unos y o no es son soy eres está están estoy tengo tiene tienes puedo puedes cuándo \
         cuando dónde donde cómo como quién qué mi mis tu tus su nuestro hoy mañana ayer gracias hola buenos buenas días tardes noches \
         por favor recuérdame recuerdame recuerda recordarme recordar comprar llamar añade agrega a al del para con en cumpleaños tarea leche lista \
         compra hora llama gusta mujer marido hijo hija hermana hermano que se me lo",
    ),
    (
        Language::Italian,
        "io tu lui lei noi il lo gli le un una uno e o non è sono sei sta sto ho ha hai abbiamo posso puoi devo quando dove come chi che \
         cosa mio mia miei mie tuo tua suo sua oggi domani ieri grazie ciao buongiorno buonasera per favore ricordami ricorda ricordare \
         comprare chiamare aggiungi a al alla del della di con in compleanno compito latte lista spesa ore che si chiama piace moglie \
         marito figlio figlia sorella mi",
    ),
    (
        Language::Portuguese,
        "eu tu ele ela nós você vocês o os as um uma e ou não é são sou está estão estou tenho tem posso pode podes quando onde como \
         quem qual meu minha meus minhas teu tua seu sua hoje amanhã ontem obrigado obrigada olá oi bom boa dia tarde noite por favor \
         lembra-me lembre-me lembra lembre lembrar comprar ligar telefonar adiciona adicione a ao à do da dos das para com em no na \
         aniversário tarefa leite lista compras horas chama gosto gosta mulher marido filho filha irmã que se me",
    ),
];

/// Words that suffice alone to detect a language.
const GREETINGS: &str = "danke hallo hilfe guten hola gracias buenos buenas bonjour merci salut bonsoir grazie buongiorno buonasera obrigado obrigada olá";

/// Common English words. Words that also exist in another language count for both.
const ENGLISH: &str = "i you he she it we they me my your his her our their the a an and or not is are was were be been am do does did have has had \
                       can could will would should must to of in on at for with from by about as that this what when where why how who which \
                       please thanks remind remember add task list today tomorrow yesterday call buy get tell know don't isn't it's i'm that's what's \
                       hello hi good so no if but all any new up out now";

/// Detects the language of a text. `None` if it may be English.
pub fn detect_language(text: &str) -> Option<Language> {
    let tokens = parse_tokens(text);
    let words: Vec<&str> = tokens.iter().filter(|token| !token.is_mark()).map(|token| token.text.as_str()).collect();
    let count = |list: &str| words.iter().filter(|word| list.split(' ').any(|common| common == **word)).count();
    let (language, found) = WORDS.iter().map(|(language, list)| (*language, count(list))).max_by_key(|(_, n)| *n)?;
    let is_greeting =
        words.len() <= 2 && words.iter().any(|word| GREETINGS.split(' ').any(|greeting| greeting == *word));
    let is_enough = found >= 2 || (found == 1 && is_greeting);
    (is_enough && found > count(ENGLISH) && 4 * found > words.len()).then_some(language)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_language_is_detected_by_its_common_words() {
        for (text, language) in [
            ("Erinnere mich morgen um 9 an den Zahnarzt", Language::German),
            ("meine Frau heißt Anna", Language::German),
            ("Wie spät ist es?", Language::German),
            ("Was steht heute an?", Language::German),
            ("danke", Language::German),
            ("rappelle-moi demain d’appeler maman", Language::French),
            ("Quelle heure est-il ?", Language::French),
            ("ma femme s'appelle Anna", Language::French),
            ("bonjour", Language::French),
            ("recuérdame mañana llamar a Ana", Language::Spanish),
            ("¿Qué hora es?", Language::Spanish),
            ("mi hermana se llama Ana", Language::Spanish),
            ("hola", Language::Spanish),
            ("ricordami domani di chiamare Anna", Language::Italian),
            ("che ore sono?", Language::Italian),
            ("mia moglie si chiama Anna", Language::Italian),
            ("grazie mille", Language::Italian),
            ("lembra-me amanhã de ligar à Ana", Language::Portuguese),
            ("que horas são?", Language::Portuguese),
            ("a minha mulher chama-se Ana", Language::Portuguese),
            ("obrigado", Language::Portuguese),
        ] {
            assert_eq!(detect_language(text), Some(language), "{text}");
        }
    }

    #[test]
    fn english_is_left_alone() {
        for text in [
            "remind me tomorrow to call Anna",
            "remember that das Boot is a film",
            "my brother plays in a band called Los Hermanos",
            "do it",
            "me",
            "no",
            "buy milk",
            "task add call Ana",
            "hi",
            "ok",
            "2 done",
            "Tom Sawyer",
            "on",
            "",
        ] {
            assert_eq!(detect_language(text), None, "{text}");
        }
    }
}
