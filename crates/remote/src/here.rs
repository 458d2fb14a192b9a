//! Calls that this process answers itself. Who calls is known to what answers, and stands in no call.

use std::fmt;
use std::sync::Arc;

use tokio::sync::{mpsc, oneshot};

use super::{Answer, Call, RemoteError, detail_of};

/// What takes a call and answers it, in this process; cheap to clone.
#[derive(Clone)]
pub struct Answering(Arc<dyn Fn(Call) -> oneshot::Receiver<Answered> + Send + Sync>);

impl Answering {
    /// Answers by `answer`.
    pub fn new(
        answer: impl Fn(Call) -> oneshot::Receiver<Answered> + Send + Sync + 'static,
    ) -> Self {
        Self(Arc::new(answer))
    }
}

impl fmt::Debug for Answering {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Answering")
    }
}

/// An answer: its HTTP status, and its body as it comes.
#[derive(Debug)]
#[expect(missing_docs, reason = "the line above says it")]
pub struct Answered {
    pub status: u16,
    pub body: mpsc::Receiver<Result<Vec<u8>, String>>,
}

/// An answer whose status is a success, and where it comes from.
pub(super) async fn send(
    answering: &Answering,
    call: Call,
) -> Result<(String, Answer), RemoteError> {
    let server = "this process".to_owned();
    let Ok(answered) = (answering.0)(call).await else {
        let why = "it gave no answer".to_owned();
        return Err(RemoteError::Strange { server, why });
    };
    let status = answered.status;
    let answer = Answer::Here(answered);
    if (200..300).contains(&status) {
        return Ok((server, answer));
    }
    Err(match detail_of(answer).await {
        Some(detail) => RemoteError::Refused { status, detail },
        None => RemoteError::Strange { server, why: format!("it answers {status} without a word") },
    })
}
