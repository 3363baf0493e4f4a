use std::cell::RefCell;

use reveille_base::{clock::parse_time, redact::Secret};
use reveille_store::Cap;

use super::*;
use crate::embed::EmbedFuture;

/// Gives each text its length as a vector, and keeps what it was asked.
struct Fake {
    to: Option<&'static str>,
    answer: fn() -> Result<Option<u64>, EmbedError>,
    asked: RefCell<Vec<String>>,
}

impl Fake {
    fn new(to: Option<&'static str>) -> Self {
        Self { to, answer: || Ok(None), asked: RefCell::default() }
    }
}

impl Embedder for Fake {
    fn id(&self) -> &str {
        "fake:one"
    }

    fn destination(&self) -> Option<&str> {
        self.to
    }

    fn usd_per_million(&self) -> f64 {
        2.0
    }

    fn embed<'a>(&'a self, texts: &'a [String], _role: TextRole) -> EmbedFuture<'a> {
        self.asked.borrow_mut().extend_from_slice(texts);
        Box::pin(async move {
            let tokens = (self.answer)()?;
            Ok(Embedded { vectors: texts.iter().map(|text| vec![text.len() as f32, 1.0]).collect(), tokens })
        })
    }
}

struct Desk {
    _dir: tempfile::TempDir,
    store: Store,
    redactor: Redactor,
    usd: f64,
}

fn now() -> DateTime<Utc> {
    parse_time("2026-11-24T10:00:00Z").unwrap()
}

impl Desk {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(&dir.path().join("messages.db")).unwrap();
        let redactor = Redactor::new([&Secret::new("hunter2-secret")]);
        Self { _dir: dir, store, redactor, usd: 1.0 }
    }

    fn embed(&mut self, fake: &Fake, texts: &[&str]) -> Result<Vec<Vec<f32>>, EmbedError> {
        let texts: Vec<String> = texts.iter().map(|text| (*text).to_owned()).collect();
        let caps = [SpendCap { cap: Cap::Day, since: parse_time("2026-11-24T00:00:00Z").unwrap(), usd: self.usd }];
        let mut desk = EmbedContext { store: Some(&mut self.store), redactor: &self.redactor, caps: &caps, now: now() };
        let embedding = embed_texts(fake, &mut desk, &texts, (TextRole::Kept, Some(2)));
        tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(embedding)
    }

    /// What is spent, and what of it is only set aside.
    fn spent(&self) -> (f64, f64) {
        let since = parse_time("2026-11-24T00:00:00Z").unwrap();
        (self.store.ledger().spent_since(since).unwrap().cost_usd, self.store.ledger().reserved_since(since).unwrap())
    }
}

#[test]
fn nothing_leaves_before_a_person_allows_it_and_nothing_once_they_take_it_back() {
    let (mut desk, fake) = (Desk::new(), Fake::new(Some("api.example.org")));
    let refused = |desk: &mut Desk| {
        let error = desk.embed(&fake, &["my diary"]).unwrap_err();
        assert!(matches!(error, EmbedError::NotAllowed { .. }), "{error}");
        assert!(error.to_string().contains("api.example.org would get everything"), "{error}");
    };
    refused(&mut desk);
    desk.store.maintenance_mut().allow_embedder(Some("fake:another"), now()).unwrap();
    refused(&mut desk);
    assert_eq!((fake.asked.borrow().len(), desk.spent()), (0, (0.0, 0.0)));
    desk.store.maintenance_mut().allow_embedder(Some("fake:one"), now()).unwrap();
    desk.embed(&fake, &["my diary"]).unwrap();
    assert_eq!(*fake.asked.borrow(), ["my diary"]);
    desk.store.maintenance_mut().allow_embedder(None, now()).unwrap();
    refused(&mut desk);
}

#[test]
fn what_stays_here_asks_nobody_and_costs_nothing() {
    let (mut desk, fake) = (Desk::new(), Fake::new(None));
    desk.usd = 0.0;
    assert_eq!(desk.embed(&fake, &["abc"]).unwrap().len(), 1);
    assert_eq!(desk.spent(), (0.0, 0.0));
}

#[test]
fn texts_are_redacted_bounded_and_never_empty() {
    let (mut desk, fake) = (Desk::new(), Fake::new(None));
    let long = "ü".repeat(MAX_TEXT_BYTES);
    desk.embed(&fake, &["the password is hunter2-secret", " \n", &long]).unwrap();
    let asked = fake.asked.borrow();
    assert_eq!(asked[..2], ["the password is ***", "-"]);
    assert_eq!(asked[2].len(), MAX_TEXT_BYTES);
}

#[test]
fn the_most_that_it_may_cost_is_set_aside_and_then_what_it_cost() {
    let (mut desk, mut fake) = (Desk::new(), Fake::new(Some("api.example.org")));
    desk.store.maintenance_mut().allow_embedder(Some("fake:one"), now()).unwrap();
    let close = |(left, reserved): (f64, f64), right: (f64, f64)| {
        assert!(
            (left - right.0).abs() < 1e-12 && (reserved - right.1).abs() < 1e-12,
            "{left} {reserved}, not {right:?}"
        );
    };
    // It says what it took.
    fake.answer = || Ok(Some(3));
    desk.embed(&fake, &["four"]).unwrap();
    close(desk.spent(), (6e-6, 0.0));
    // It doesn't: what it may have taken at most, two bytes a token and one for the text.
    fake.answer = || Ok(None);
    desk.embed(&fake, &["four"]).unwrap();
    close(desk.spent(), (12e-6, 0.0));
    // It refuses: that costs nothing.
    fake.answer = || Err(EmbedError::Refused("no".to_owned()));
    desk.embed(&fake, &["four"]).unwrap_err();
    close(desk.spent(), (12e-6, 0.0));
    // Cut off: it stays set aside.
    fake.answer = || Err(EmbedError::cut_off("cut"));
    desk.embed(&fake, &["four"]).unwrap_err();
    close(desk.spent(), (18e-6, 6e-6));
    // No room: nothing leaves.
    desk.usd = 20e-6;
    let asked = fake.asked.borrow().len();
    let error = desk.embed(&fake, &["four"]).unwrap_err();
    assert!(error.to_string().contains("too little is left of DAILY_BUDGET_USD"), "{error}");
    assert_eq!(fake.asked.borrow().len(), asked);
    let whose = desk.store.ledger().spent_by_model(parse_time("2026-11-24T00:00:00Z").unwrap()).unwrap();
    assert_eq!(whose[0].0, "fake:one");
}

#[test]
fn what_comes_has_the_size_of_what_is_kept() {
    let (mut desk, fake) = (Desk::new(), Fake::new(None));
    assert!(desk.embed(&fake, &["x"; MAX_BATCH + 1]).unwrap_err().to_string().contains("65 texts at once"));
    let kept = desk.embed(&fake, &["abc"]).unwrap();
    assert!((kept[0].iter().map(|x| x * x).sum::<f32>() - 1.0).abs() < 1e-6, "{kept:?}");
    assert!(fake.asked.borrow().iter().all(|text| text == "abc"));
}
