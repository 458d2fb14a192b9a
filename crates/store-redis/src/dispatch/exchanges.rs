//! Exchanges on their way to Redis. Those that wait at the same time share a call of the script, which costs more than the tasks of a small exchange.
//!
//! Each runtime has its own, as it has its own connection. While fewer than [`UNDER_WAY`] calls are under way an exchange is sent at
//! once. What comes then waits for an answer, and all that wait go together, in the order in which they came. An exchange whose caller
//! gave up is not sent. A call without an answer takes all with it that wait: they would go the same way.

use std::collections::{HashMap, VecDeque};

use ::redis::{Cmd, ToRedisArgs, Value};
use parking_lot::Mutex;
use tokio::runtime;
use tokio::sync::oneshot;

use super::parse::Answer;
use crate::{RedisStore, scripts};
use soloist_store::dispatch::DONE_KEPT;
use soloist_store::{Result, StoreError};

/// Calls at the same time: one that the server carries out, and one that is made or read meanwhile.
const UNDER_WAY: usize = 2;
/// Most exchanges in a call, and most tasks in one that has several: the server does nothing else meanwhile.
const TOGETHER: usize = 64;
const TASKS: usize = 128;

/// An exchange as the script takes it.
pub(super) struct Asked {
    arguments: Cmd,
    tasks: usize,
}

impl Asked {
    /// Of at most so many tasks, reported and claimed.
    pub(super) fn of(tasks: usize) -> Self {
        Self { arguments: Cmd::new(), tasks }
    }

    pub(super) fn arg(&mut self, argument: impl ToRedisArgs) -> &mut Self {
        self.arguments.arg(argument);
        self
    }
}

struct Waiting {
    asked: Asked,
    told: oneshot::Sender<Result<Value>>,
}

#[derive(Default)]
struct Line {
    /// Tasks that send them.
    sending: usize,
    waiting: VecDeque<Waiting>,
}

impl Line {
    /// Those that go together now; who finds none sends no more.
    fn leave(&mut self) -> Vec<Waiting> {
        let (mut together, mut tasks) = (Vec::new(), 0);
        while let Some(next) = self.waiting.front() {
            tasks = next.asked.tasks.saturating_add(tasks);
            let full = together.len() == TOGETHER || tasks > TASKS && !together.is_empty();
            if full {
                break;
            }
            together.extend(self.waiting.pop_front().filter(|one| !one.told.is_closed()));
        }
        self.sending -= usize::from(together.is_empty());
        together
    }
}

/// Those of one process.
#[derive(Default)]
pub(crate) struct Exchanges(Mutex<HashMap<runtime::Id, Line>>);

impl RedisStore {
    /// The script's answer to one exchange.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`]: the outcome is unknown. [`StoreError::Corrupt`].
    pub(super) async fn exchanged(&self, asked: Asked) -> Result<Answer> {
        let here = runtime::Handle::current().id();
        let (told, hears) = oneshot::channel();
        let another = {
            let mut lines = self.shared.exchanges.0.lock();
            let line = lines.entry(here).or_default();
            line.waiting.push_back(Waiting { asked, told });
            let another = line.sending < UNDER_WAY;
            line.sending += usize::from(another);
            another
        };
        if another {
            // A task of its own: it goes on when this caller gives up, because others wait for it.
            tokio::spawn(self.clone().carry(here));
        }
        let ended = || StoreError::Unavailable("the node is stopping".to_owned());
        Answer::of("exchange_tasks", hears.await.map_err(|_| ended())??)
    }

    /// Calls the script for those that wait, and for those that waited meanwhile, until none waits.
    async fn carry(self, here: runtime::Id) {
        loop {
            // Callers that are ready to ask do so first.
            tokio::task::yield_now().await;
            let leaving = self.shared.exchanges.0.lock().entry(here).or_default().leave();
            if leaving.is_empty() {
                return;
            }
            // Whoever hears nothing has given up.
            match self.ask_together(&leaving).await {
                Ok(answers) => {
                    for (one, answer) in leaving.into_iter().zip(answers) {
                        drop(one.told.send(Ok(answer)));
                    }
                }
                Err(error) => {
                    let mut lines = self.shared.exchanges.0.lock();
                    let also = lines.entry(here).or_default().waiting.drain(..);
                    for one in leaving.into_iter().chain(also) {
                        drop(one.told.send(Err(error.clone())));
                    }
                }
            }
        }
    }

    async fn ask_together(&self, leaving: &[Waiting]) -> Result<Vec<Value>> {
        let mut call = self.dispatch_call(&scripts::EXCHANGE_TASKS);
        call.arg(DONE_KEPT);
        for Waiting { asked, .. } in leaving {
            call.arg(asked.arguments.args_iter().len()).args(&asked.arguments);
        }
        let answers: Vec<Value> = self.run(&call).await?;
        if answers.len() == leaving.len() {
            Ok(answers)
        } else {
            let (found, asked) = (answers.len(), leaving.len());
            Err(StoreError::Corrupt(format!(
                "exchange_tasks: {found} answers to {asked} exchanges"
            )))
        }
    }
}
