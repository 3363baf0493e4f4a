//! The handler of our MCP server, where a run's calls wait for their results. It executes nothing.
//!
//! The cycle reads each call from the turn and has it judged, journalled and executed as usual. The run requests only the result, by the
//! call's id, and gets it when the cycle continues.

use std::{cell::RefCell, collections::BTreeMap, rc::Rc};

use tokio::sync::Notify;

use reveille_tools::mcp::server::{Answer, Answering, Call, Handler};

/// The field with the call's id in a request by Claude Code.
const CALL_ID: &str = "claudecode/toolUseId";

/// The results of the last turn's calls, by id.
#[derive(Debug, Default)]
pub(super) struct Results {
    told: RefCell<BTreeMap<String, Answer>>,
    are_told: Notify,
}

impl Results {
    /// Publishes the results of a turn's calls.
    pub(super) fn publish(&self, results: BTreeMap<String, Answer>) {
        self.told.replace(results);
        self.are_told.notify_waiters();
    }

    /// Waits for the result of a call. The request may arrive before we have read the end of the turn, so unknown ids wait too.
    async fn wait_for_result(&self, id: &str) -> Answer {
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
            Some(id) => Box::pin(self.0.wait_for_result(id)),
            None => Box::pin(std::future::ready(Answer {
                text: "This call belongs to no turn. Nothing was done.".to_owned(),
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
        let mut handler = RunHandler(Rc::clone(&results));
        let call = |meta: serde_json::Value| Call { name: "note".to_owned(), input: "{}".to_owned(), meta };
        let of = |id: &str| call(serde_json::json!({ CALL_ID: id }));
        let (first, second, next, none) = (of("a"), of("b"), of("c"), call(serde_json::Value::Null));
        let publishing = async {
            tokio::task::yield_now().await;
            results.publish([("a".to_owned(), answer("A")), ("b".to_owned(), answer("B"))].into());
        };
        let (told, ()) = tokio::join!(handler.call(&second), publishing);
        assert_eq!(told, answer("B"));
        assert_eq!(handler.call(&first).await, answer("A"));
        assert!(handler.call(&none).await.is_error);

        // A call of the next turn, while the results of the last one are still there.
        tokio::select! {
            biased;
            told = handler.call(&next) => panic!("its result isn't published yet: {told:?}"),
            () = tokio::task::yield_now() => {}
        }
        results.publish([("c".to_owned(), answer("C"))].into());
        assert_eq!(handler.call(&next).await, answer("C"));
    }
}
