//! Where a run's calls wait for their results: our MCP server's handler, which carries nothing out itself.
//!
//! The cycle knows of a call from the turn that makes it, and has it judged, journalled and run like any other. What the run asks of
//! the server is only its result, by the id of the call, and gets it once the cycle goes on.

use std::{cell::RefCell, collections::BTreeMap, rc::Rc};

use tokio::sync::Notify;

use reveille_tools::mcp::server::{Answer, Answering, Call, Handler};

/// Where Claude Code says which call of a turn it makes.
const CALL_ID: &str = "claudecode/toolUseId";

/// The results of the last turn's calls, by their ids.
#[derive(Debug, Default)]
pub(super) struct Results {
    told: RefCell<BTreeMap<String, Answer>>,
    are_told: Notify,
}

impl Results {
    /// Hands out what the calls of a turn have come to.
    pub(super) fn tell(&self, results: BTreeMap<String, Answer>) {
        self.told.replace(results);
        self.are_told.notify_waiters();
    }

    /// The result of a call, as soon as there is one. A call may be asked about before we have read the end of the turn that makes it:
    /// what has no result yet waits, whatever else was told.
    async fn of(&self, id: &str) -> Answer {
        loop {
            let told = self.are_told.notified();
            if let Some(answer) = self.told.borrow().get(id) {
                return answer.clone();
            }
            told.await;
        }
    }
}

/// The server's handler.
pub(super) struct RunHandler(pub(super) Rc<Results>);

impl Handler for RunHandler {
    fn call<'a>(&'a mut self, call: &'a Call) -> Answering<'a> {
        match call.meta.get(CALL_ID).and_then(|id| id.as_str()) {
            Some(id) => Box::pin(self.0.of(id)),
            None => Box::pin(std::future::ready(Answer {
                text: "This is no call of a turn. Nothing was done.".to_owned(),
                is_error: true,
                image: None,
            })),
        }
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
        let mut desk = RunHandler(Rc::clone(&results));
        let call = |meta: serde_json::Value| Call { name: "note".to_owned(), input: "{}".to_owned(), meta };
        let of = |id: &str| call(serde_json::json!({ CALL_ID: id }));
        let (first, second, next, none) = (of("a"), of("b"), of("c"), call(serde_json::Value::Null));
        let telling = async {
            tokio::task::yield_now().await;
            results.tell([("a".to_owned(), answer("A")), ("b".to_owned(), answer("B"))].into());
        };
        let (told, ()) = tokio::join!(desk.call(&second), telling);
        assert_eq!(told, answer("B"));
        assert_eq!(desk.call(&first).await, answer("A"));
        assert!(desk.call(&none).await.is_error);

        // The next turn's, while the results of the last one still stand.
        tokio::select! {
            biased;
            told = desk.call(&next) => panic!("nothing was told of it: {told:?}"),
            () = tokio::task::yield_now() => {}
        }
        results.tell([("c".to_owned(), answer("C"))].into());
        assert_eq!(desk.call(&next).await, answer("C"));
    }
}
