//! Property tests with damaged updates: none panics, and none is attributed to another sender.

use proptest::prelude::*;
use serde_json::{Value, json, value::RawValue};

use super::*;

const ANA: i64 = 4_242;

/// Loads example updates as Telegram sends them, among them one message for each kind of content.
fn load_examples() -> Vec<Value> {
    let all: Value =
        serde_json::from_str(include_str!("../../../../../tests/integration/fixtures/updates.json")).unwrap();
    let each = |name: &str| all[name].as_object().unwrap().clone().into_iter();
    let updates = each("update").flat_map(|(kind, values)| {
        let values = values.as_array().unwrap().clone();
        values.into_iter().map(move |value| json!({"update_id": 5, &kind: value}))
    });
    let messages = each("message").flat_map(|(field, values)| {
        let values = values.as_array().unwrap().clone();
        values.into_iter().map(move |value| {
            let mut message = json!({"message_id": 7, "date": 1_795_000_000, "text": "hi",
                "from": {"id": ANA, "is_bot": false, "first_name": "Ana"}, "chat": {"id": ANA, "type": "private"}});
            if field != "text" && !["entities", "quote"].contains(&field.as_str()) {
                message.as_object_mut().unwrap().remove("text");
            }
            message[&field] = value;
            json!({"update_id": 5, "message": message})
        })
    });
    updates.filter(|update| update.as_object().unwrap().len() == 2).chain(messages).collect()
}

/// The replacement of a value; `None` removes the value.
fn any_damage() -> impl Strategy<Value = Option<Value>> {
    prop_oneof![
        Just(None),
        Just(Some(Value::Null)),
        any::<i64>().prop_map(|n| Some(json!(n))),
        any::<u64>().prop_map(|n| Some(json!(n))),
        any::<f64>().prop_map(|n| Some(json!(n))),
        any::<bool>().prop_map(|b| Some(json!(b))),
        "\\PC{0,20}".prop_map(|text| Some(json!(text))),
        "[\u{0}-\u{1f}\u{7f}-\u{9f}\u{202e}]{1,20}".prop_map(|text| Some(json!(text))),
        Just(Some(json!("x".repeat(1_000_000)))),
        Just(Some(json!([]))),
        Just(Some(json!([null, 3, {}, [[]]]))),
        Just(Some(json!({"id": "x", "type": 3, "text": {}, "date": -1}))),
        (1_usize..120).prop_map(|depth| Some((0..depth).fold(json!(1), |inner, _| json!([inner])))),
    ]
}

/// Counts a value and all the values within it.
fn count_values(value: &Value) -> usize {
    1 + match value {
        Value::Array(items) => items.iter().map(count_values).sum::<usize>(),
        Value::Object(fields) => fields.values().map(count_values).sum(),
        _ => 0,
    }
}

/// Replaces the `nth` value within `value`, counted in document order, by `damage`; `None` removes it. Returns true once done.
fn damage_value(value: &mut Value, nth: &mut usize, damage: Option<&Value>) -> bool {
    let (mut removed, mut index) = (None, 0);
    let mut visit = |inner: &mut Value| {
        if *nth == 0 {
            *nth = usize::MAX;
            match damage {
                Some(damage) => *inner = damage.clone(),
                None => removed = Some(index),
            }
        } else if *nth != usize::MAX {
            *nth -= 1;
            damage_value(inner, nth, damage);
        }
        index += 1;
    };
    match value {
        Value::Array(items) => items.iter_mut().for_each(&mut visit),
        Value::Object(fields) => fields.values_mut().for_each(&mut visit),
        _ => {}
    }
    match (value, removed) {
        (Value::Array(items), Some(index)) => drop(items.remove(index)),
        (Value::Object(fields), Some(index)) => {
            if let Some(name) = fields.keys().nth(index).cloned() {
                fields.remove(&name);
            }
        }
        _ => {}
    }
    *nth == usize::MAX
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, ..ProptestConfig::default() })]

    #[test]
    fn damage_never_panics_and_admits_nobody(
        pick in any::<prop::sample::Index>(),
        damages in proptest::collection::vec((any::<prop::sample::Index>(), any_damage()), 1..4),
    ) {
        static EXAMPLES: std::sync::OnceLock<Vec<Value>> = std::sync::OnceLock::new();
        let mut update = pick.get(EXAMPLES.get_or_init(load_examples)).clone();
        for (at, damage) in &damages {
            let mut nth = at.index(count_values(&update));
            damage_value(&mut update, &mut nth, damage.as_ref());
        }
        update["update_id"] = json!(5);
        let raw = RawValue::from_string(update.to_string()).unwrap();
        let update = RawUpdate::parse(raw).unwrap();
        let me = Me { id: 99, first_name: "Reveille".to_owned(), username: "reveille_bot".to_owned() };
        let read = read_update(&update, &Speakers { allowed: BTreeSet::from([ANA]), me });
        if let ReadUpdate::Message(message) | ReadUpdate::Unsupported(message) | ReadUpdate::Edited(message)
            | ReadUpdate::Command { message, .. } = read
        {
            prop_assert_eq!((message.chat.id, message.sender_id), (ANA, ANA));
            let quoted = message.reply_to.map(|quoted| quoted.text).unwrap_or_default();
            prop_assert!(quoted.chars().count() <= 1_000 && message.sender_name.chars().count() <= 128);
        }
    }
}
