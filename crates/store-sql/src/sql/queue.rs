//! Acts of dispatch that wait for the connection. Those that wait at the same time share a transaction: one lock, one flush to the disk.
//!
//! They run one after the other, in the order of their arrival, each on the writes of those before it. An act is answered after the commit. An
//! act that fails before it has written anything affects no other; one that has written rolls all of them back, and the others are repeated.
//! An act whose caller gave up does not run, or is rolled back.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::oneshot;

use super::converse::Dispatching;
use super::fault::{Fault, Outcome};
use super::link::Wire;
use super::relay::Asked;
use soloist_process::clock;
use soloist_store::dispatch::Waiter;

/// Most acts in one transaction.
const TOGETHER: usize = 16;
/// A transaction that is older takes no more of them: the first one waits for its answer, other nodes for the lock.
const LONG: Duration = Duration::from_millis(20);

type Told = oneshot::Sender<Outcome<Vec<Waiter>>>;

/// Those that wait.
#[derive(Default)]
pub(crate) struct Queue(Mutex<Line>);

#[derive(Default)]
struct Line {
    newest: u64,
    waiting: VecDeque<Waiting>,
}

struct Waiting {
    number: u64,
    asked: Asked,
    told: Told,
}

/// The place of an act; it leaves the queue with this.
pub(super) struct Place {
    queue: Arc<Queue>,
    number: u64,
    told: oneshot::Receiver<Outcome<Vec<Waiter>>>,
}

impl Place {
    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// What became of it, and who is woken by it.
    pub(super) async fn told(&mut self) -> Outcome<Vec<Waiter>> {
        let gone = || Fault::Broken("the connection was given up".to_owned());
        (&mut self.told).await.unwrap_or_else(|_| Err(gone()))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        drop(self.queue.take(self.number));
    }
}

impl Queue {
    /// Enters the queue.
    pub(super) fn join(self: &Arc<Self>, asked: Asked) -> Place {
        let (told, hears) = oneshot::channel();
        let mut line = self.0.lock();
        line.newest += 1;
        let number = line.newest;
        line.waiting.push_back(Waiting { number, asked, told });
        Place { queue: Arc::clone(self), number, told: hears }
    }

    /// Carries out the act of that number, unless it was served with another, and those that wait with it.
    ///
    /// # Errors
    /// [`Fault`]: that of the transaction.
    pub(super) async fn serve<W: Wire>(&self, conn: &mut W, number: u64) -> Outcome<()> {
        let Some(first) = self.take(number) else { return Ok(()) };
        conn.begin(false).await?;
        let begun = clock::boot();
        let mut session = Dispatching::on(conn);
        let (mut served, mut next, mut whole) = (Vec::new(), Some(first), true);
        while let Some(Waiting { asked, told, .. }) = next {
            let acted = asked.serve(&mut session).await;
            let wrote = session.has_written();
            served.push((told, session.take_wakes()));
            whole = acted || !wrote;
            let full = served.len() >= TOGETHER || clock::boot().since(begun) > LONG;
            let ends = full || !whole || session.has_failed();
            next = if ends { None } else { self.next() };
        }
        // What came after a failed statement must not be written without what came before it.
        let whole = whole && !session.has_failed();
        let ended = session.end(whole).await;
        for (told, wakes) in served {
            let outcome = match &ended {
                Err(fault) => Err(fault.clone()),
                Ok(()) if whole => Ok(wakes),
                Ok(()) => Err(Fault::Again("another act was undone".to_owned())),
            };
            // It may have given up.
            drop(told.send(outcome));
        }
        ended
    }

    fn take(&self, number: u64) -> Option<Waiting> {
        let waiting = &mut self.0.lock().waiting;
        let at = waiting.iter().position(|one| one.number == number)?;
        waiting.remove(at)
    }

    fn next(&self) -> Option<Waiting> {
        self.0.lock().waiting.pop_front()
    }
}

#[cfg(test)]
mod tests {
    use super::super::dispatch::{Act, Answered, AnyAct as _};
    use super::super::follow::Hint;
    use super::super::packet::{Answers, Packet};
    use super::super::relay::{self, Relay};
    use super::super::session::{Dialect, Row, Statement};
    use super::*;
    use soloist_store::{Result, StoreError};

    /// A connection that notes what is done on it.
    #[derive(Default)]
    struct Notes(Vec<String>);

    impl Wire for Notes {
        type Place = ();

        const DIALECT: Dialect = Dialect::Postgres;
        const KIND: &'static str = "notes";

        fn name((): &()) -> &str {
            "notes"
        }

        async fn connect((): &(), _: Duration, _: &str) -> Outcome<Self> {
            Ok(Self::default())
        }

        async fn is_alive(&mut self) -> bool {
            true
        }

        async fn carry_out(&mut self, _: &Packet) -> Outcome<Answers> {
            Ok(Vec::new())
        }

        async fn begin(&mut self, _: bool) -> Outcome<()> {
            self.0.push("begin".to_owned());
            Ok(())
        }

        async fn end(&mut self, last: &[Statement], commit: bool) -> Outcome<()> {
            self.0.extend(last.iter().map(|one| one.sql.to_string()));
            self.0.push(if commit { "commit" } else { "rollback" }.to_owned());
            Ok(())
        }

        async fn ask_all(&mut self, statements: &[Statement]) -> Outcome<Vec<Vec<Row>>> {
            self.0.extend(statements.iter().map(|one| one.sql.to_string()));
            Ok(vec![Vec::new(); statements.len()])
        }

        async fn tell(&mut self, (): &(), _: Hint) -> Outcome<()> {
            Ok(())
        }
    }

    /// Writes, if it has a name, then fails or not.
    struct Doing(&'static str, bool);

    impl Act for Doing {
        type Answer = ();

        async fn run(&self, session: &mut Relay) -> Result<()> {
            session.query("look", &[]).await?;
            if !self.0.is_empty() {
                session.execute_all(&[Statement::new(self.0, Vec::new())]).await?;
            }
            if self.1 { Err(StoreError::NotFound("a task".to_owned())) } else { Ok(()) }
        }
    }

    /// Lets acts wait together, has the first one served, and returns what was done and who was told what.
    async fn served<const N: usize>(
        acts: [Doing; N],
    ) -> (Vec<String>, Vec<Option<Outcome<Vec<Waiter>>>>) {
        let (queue, mut conn) = (Arc::new(Queue::default()), Notes::default());
        let (mut places, mut relays) = (Vec::new(), Vec::new());
        for _ in &acts {
            let (relay, asked) = relay::pair(Dialect::Postgres);
            places.push(queue.join(asked));
            relays.push(relay);
        }
        let running = relays.into_iter().zip(acts).map(|(relay, act)| async {
            let act = Answered::new(act);
            act.run(relay).await
        });
        let first = places[0].number();
        let serving = async {
            let served = queue.serve(&mut conn, first).await;
            // Whoever still waits is served by nobody here.
            let mut told = Vec::new();
            for place in &mut places {
                told.push(place.told.try_recv().ok());
            }
            drop(places);
            served.map(|()| told)
        };
        let (told, _) = tokio::join!(serving, futures_util::future::join_all(running));
        (conn.0, told.expect("no fault"))
    }

    #[tokio::test]
    async fn acts_that_wait_together_share_one_transaction_each_on_what_those_before_it_wrote() {
        let (done, told) = served([Doing("a", false), Doing("b", false), Doing("c", false)]).await;
        assert_eq!(done, ["begin", "look", "a", "look", "b", "look", "c", "commit"]);
        assert!(told.iter().all(|one| matches!(one, Some(Ok(_)))), "{told:?}");
    }

    #[tokio::test]
    async fn an_act_that_fails_before_it_has_written_takes_nothing_with_it() {
        let (done, told) = served([Doing("a", false), Doing("", true), Doing("c", false)]).await;
        assert_eq!(done, ["begin", "look", "a", "look", "look", "c", "commit"]);
        assert!(told.iter().all(|one| matches!(one, Some(Ok(_)))), "{told:?}");
    }

    #[tokio::test]
    async fn an_act_that_fails_after_it_has_written_undoes_all_and_the_others_are_asked_again() {
        let (done, told) = served([Doing("a", false), Doing("b", true), Doing("c", false)]).await;
        assert_eq!(done.last().map(String::as_str), Some("rollback"));
        assert!(!done.iter().any(|one| one == "c" || one == "commit"), "{done:?}");
        assert!(matches!(told[0], Some(Err(Fault::Again(_)))), "{told:?}");
        assert!(told[2].is_none(), "it still waits: {told:?}");
    }

    #[tokio::test]
    async fn an_act_whose_caller_gave_up_is_not_carried_out() {
        let (queue, mut conn) = (Arc::new(Queue::default()), Notes::default());
        let (relay, asked) = relay::pair(Dialect::Postgres);
        let place = queue.join(asked);
        let number = place.number();
        drop((place, relay));
        queue.serve(&mut conn, number).await.expect("no fault");
        assert!(conn.0.is_empty(), "{:?}", conn.0);
    }
}
