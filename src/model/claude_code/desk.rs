//! Where a run's calls wait for their results: our MCP server's handler, which carries nothing out itself.
//!
//! The cycle knows of a call from the turn that makes it, and has it judged, journalled and run like any other. What the run asks of
//! the server is only its result, by the id of the call, and gets it once the cycle goes on.

use std::{cell::RefCell, collections::BTreeMap, rc::Rc};

use tokio::sync::Notify;

use crate::mcp::server::{Answer, Answering, Call, Handler};

/// Where Claude Code says which call of a turn it makes.
const CALL_ID: &str = "claudecode/toolUseId";

/// The results of the last turn's calls, by their ids; none while the cycle works on them.
#[derive(Debug, Default)]
pub(super) struct Results {
    told: RefCell<Option<BTreeMap<String, Answer>>>,
    are_told: Notify,
}

impl Results {
    /// Takes what was told back: another turn begins, whose calls have no results yet.
    pub(super) fn begin(&self) {
        self.told.take();
    }

    /// Hands out what the calls have come to.
    pub(super) fn tell(&self, results: BTreeMap<String, Answer>) {
        self.told.replace(Some(results));
        self.are_told.notify_waiters();
    }

    /// The result of a call, as soon as there are any.
    async fn of(&self, id: &str) -> Answer {
        loop {
            let told = self.are_told.notified();
            if let Some(results) = self.told.borrow().as_ref() {
                let unknown = "This is no call of the last turn. Nothing was done.";
                let unknown = || Answer { text: unknown.to_owned(), is_error: true, image: None };
                return results.get(id).cloned().unwrap_or_else(unknown);
            }
            told.await;
        }
    }
}

/// The server's handler.
pub(super) struct Desk(pub(super) Rc<Results>);

impl Handler for Desk {
    fn call<'a>(&'a mut self, call: &'a Call) -> Answering<'a> {
        let id = call.meta.get(CALL_ID).and_then(|id| id.as_str()).unwrap_or_default();
        Box::pin(self.0.of(id))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(text: &str) -> Answer {
        Answer { text: text.to_owned(), ..Answer::default() }
    }

    #[tokio::test]
    async fn a_call_waits_for_its_own_result() {
        let results = Rc::new(Results::default());
        let mut desk = Desk(Rc::clone(&results));
        let call = |id: &str| Call {
            name: "note".to_owned(),
            input: "{}".to_owned(),
            meta: serde_json::json!({ CALL_ID: id }),
        };
        let (first, second, none) = (call("a"), call("b"), call(""));
        let telling = async {
            tokio::task::yield_now().await;
            results.tell([("a".to_owned(), answer("A")), ("b".to_owned(), answer("B"))].into());
        };
        let (told, ()) = tokio::join!(desk.call(&second), telling);
        assert_eq!(told, answer("B"));
        assert_eq!(desk.call(&first).await, answer("A"));
        assert!(desk.call(&none).await.is_error);

        results.begin();
        tokio::select! {
            biased;
            told = desk.call(&first) => panic!("what the turn before was told is no result of this one: {told:?}"),
            () = tokio::task::yield_now() => {}
        }
    }
}
