//! Something held by renewal: the lease of a job, the claim of a task, a turn of a rotation.
//!
//! One set of laws for all of them:
//!
//! - trust counts from *before* the answered request was sent, and ends early enough to kill a tree
//!   ([`Timing::trusted_until`]); it is an absolute instant of CLOCK_BOOTTIME;
//! - a renewal is sent in every period, early enough for several attempts before the trust ends;
//! - an error or a time-out means *unknown*: the renewal is retried until the guard's deadline;
//! - "not yours" means *lost*: the trust ends, and the holder is notified at once.
//!
//! [`Hold`] is the holder's end. [`Trusted`] is the renewer's end: the keeper has one for each lease and renews many in one
//! call, [`Hold::renewed_by`] renews one thing in a task of its own. Nothing here knows stores, guards or processes.

use std::time::Duration;

use futures_util::future::select_all;
use tokio::sync::watch;
use tokio::task::AbortHandle;
use tokio::time::{sleep, timeout};

use soloist_domain::lease::Timing;
use soloist_domain::time::Boot;
use soloist_process::clock;
use soloist_process::sabotage::{Bug, planted};

/// A renewal that failed is sent again this long after it was sent, or sooner: a quarter of the period at most.
const ASK_AGAIN: Duration = Duration::from_millis(200);

/// Longer than any process lives.
const NEVER: Duration = Duration::from_secs(1_000_000);

/// How far something held may be trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Trust {
    /// Until then, unless a renewal moves it.
    Until(Boot),
    /// Another holder has it, or will have it: everything that runs under it must be killed.
    Lost,
}

/// Something held, as its holder knows it. With the last of it the renewals end that were made for it alone.
#[derive(Debug)]
pub struct Hold {
    trust: watch::Receiver<Trust>,
    renewer: Option<AbortHandle>,
}

impl Hold {
    /// Until when it may be trusted; no instant is early enough for what is lost.
    #[must_use]
    pub fn trusted_until(&self) -> Boot {
        match *self.trust.borrow() {
            Trust::Until(at) => at,
            Trust::Lost => Boot(0),
        }
    }

    /// Stops renewing it; to be called before it is released.
    pub(super) fn end(&mut self) {
        self.renewer.take().iter().for_each(AbortHandle::abort);
    }

    /// Whether it is another's.
    #[must_use]
    pub fn is_lost(&self) -> bool {
        *self.trust.borrow() == Trust::Lost
    }

    /// Resolves when it is lost.
    pub(super) async fn lost(&self) {
        if self.trust.clone().wait_for(|trust| *trust == Trust::Lost).await.is_err() {
            // It is renewed no more; the guard's deadline ends the matter.
            std::future::pending::<()>().await;
        }
    }

    /// Resolves when the trust has moved, or is over. Nothing is missed when it is not awaited to the end.
    async fn changed(&mut self) -> Trust {
        if self.trust.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
        *self.trust.borrow_and_update()
    }

    /// Renews something in a task of its own, never waiting for what runs under it. The request that got it was sent
    /// at `sent`.
    pub(super) fn renewed_by(mut by: impl Renew, timing: Timing, sent: Boot) -> Self {
        let (mut trusted, mut hold) = Trusted::since(sent, timing);
        let renewing = tokio::spawn(async move {
            let mut said = false;
            loop {
                sleep(trusted.due.since(clock::boot())).await;
                let sent = clock::boot();
                let renewed = timeout(trusted.timing.store_timeout, by.renew()).await;
                match renewed.unwrap_or_else(|_| Renewed::Unknown("no answer in time".to_owned())) {
                    Renewed::Kept(timing) => {
                        trusted.timing = timing;
                        trusted.renewed(sent, timing.renew_every);
                        said = false;
                    }
                    Renewed::Lost => return trusted.lost(),
                    Renewed::Unknown(why) => {
                        if !std::mem::replace(&mut said, true) {
                            by.complain(&why);
                        }
                        trusted.failed(sent);
                    }
                }
            }
        });
        hold.renewer = Some(renewing.abort_handle());
        hold
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.end();
    }
}

/// Until when all of `holds` may be trusted.
pub(super) fn trusted_until(holds: &[&mut Hold]) -> Boot {
    holds.iter().map(|hold| hold.trusted_until()).min().unwrap_or_default()
}

/// Resolves when the trust in one of `holds` has moved, or is over; which one it is.
pub(super) async fn changed(holds: &mut [&mut Hold]) -> (usize, Trust) {
    let (trust, which, _) = select_all(holds.iter_mut().map(|hold| Box::pin(hold.changed()))).await;
    (which, trust)
}

/// How one thing is renewed.
pub(super) trait Renew: Send + 'static {
    /// Asks once. The trust counts from before this is called.
    fn renew(&mut self) -> impl Future<Output = Renewed> + Send;

    /// It is unknown whether it is still held, because of `why`. Called once until a renewal succeeds.
    fn complain(&self, why: &str);
}

/// What came of one renewal.
pub(super) enum Renewed {
    /// It is held on, with these times.
    Kept(Timing),
    /// It is another's.
    Lost,
    /// It is unknown, because of this.
    Unknown(String),
}

/// The renewer's end: how far one thing is trusted, and when its next renewal is due.
#[derive(Debug)]
pub(super) struct Trusted {
    pub(super) timing: Timing,
    /// When the next renewal is to be sent.
    pub(super) due: Boot,
    trust: watch::Sender<Trust>,
}

impl Trusted {
    /// Something whose grant was asked for at `sent`.
    pub(super) fn since(sent: Boot, timing: Timing) -> (Self, Hold) {
        let (sender, trust) = watch::channel(Trust::Until(timing.trusted_until(sent)));
        let due = sent + timing.renew_every;
        (Self { timing, due, trust: sender }, Hold { trust, renewer: None })
    }

    /// The renewal sent at `sent` succeeded; the next is due so long `after` it.
    pub(super) fn renewed(&mut self, sent: Boot, after: Duration) {
        self.due = sent + after;
        let from = if planted(Bug::TrustFromReply) { clock::boot() } else { sent };
        self.trust.send_replace(Trust::Until(self.timing.trusted_until(from)));
    }

    /// The renewal sent at `sent` failed: nothing is known, so it is tried again.
    pub(super) fn failed(&mut self, sent: Boot) {
        self.due = sent + (self.timing.renew_every / 4).min(ASK_AGAIN);
        if planted(Bug::RenewalEndsWithError) {
            self.due = sent + NEVER;
        }
    }

    /// It is another's.
    pub(super) fn lost(self) {
        self.trust.send_replace(Trust::Lost);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use tokio::sync::mpsc;

    use super::*;

    const TTL: Duration = Duration::from_secs(1);

    /// Answers with what it was given, and says when it is asked.
    struct Scripted {
        answers: VecDeque<Renewed>,
        asked: mpsc::UnboundedSender<Boot>,
    }

    impl Renew for Scripted {
        async fn renew(&mut self) -> Renewed {
            self.asked.send(clock::boot()).ok();
            match self.answers.pop_front() {
                Some(answer) => answer,
                None => std::future::pending().await,
            }
        }

        fn complain(&self, _why: &str) {}
    }

    fn held(answers: Vec<Renewed>) -> (Hold, Timing, mpsc::UnboundedReceiver<Boot>) {
        let timing = Timing::from_ttl(TTL).unwrap();
        let (asked, asks) = mpsc::unbounded_channel();
        let by = Scripted { answers: answers.into(), asked };
        (Hold::renewed_by(by, timing, clock::boot()), timing, asks)
    }

    #[tokio::test]
    async fn trust_counts_from_before_the_renewal_was_sent() {
        let timing = Timing::from_ttl(TTL).unwrap();
        let (mut hold, _, mut asks) = held(vec![Renewed::Kept(timing)]);
        let asked = async { asks.recv().await.unwrap() };
        let (asked, trust) = tokio::join!(asked, hold.changed());
        let Trust::Until(until) = trust else { panic!("lost") };
        assert!(until <= timing.trusted_until(asked));
        assert_eq!(hold.trusted_until(), until);
    }

    #[tokio::test]
    async fn a_renewal_that_fails_or_is_not_answered_moves_nothing_and_is_sent_again() {
        let (hold, timing, mut asks) = held(vec![Renewed::Unknown("away".to_owned())]);
        let granted = hold.trusted_until();
        let mut last = asks.recv().await.unwrap();
        // After the error, and then after every time-out.
        for _ in 0..3 {
            let next = asks.recv().await.unwrap();
            assert!(next > last);
            last = next;
        }
        assert_eq!(hold.trusted_until(), granted);
        assert!(!hold.is_lost());
        assert!(timing.renew_every + timing.store_timeout * 3 + timing.kill_time < TTL);
    }

    #[tokio::test]
    async fn what_is_lost_is_told_and_trusted_no_more() {
        let (mut hold, _, _asks) = held(vec![Renewed::Lost]);
        hold.lost().await;
        let mut all = [&mut hold];
        assert_eq!(changed(&mut all).await, (0, Trust::Lost));
        assert_eq!(trusted_until(&all), Boot(0));
    }

    #[tokio::test]
    async fn the_shortest_of_several_trusts_counts() {
        let timing = Timing::from_ttl(TTL * 60).unwrap();
        let (_renewer, mut long) = Trusted::since(clock::boot(), timing);
        let (mut short, ..) = held(Vec::new());
        let until = short.trusted_until();
        assert!(until < long.trusted_until());
        assert_eq!(trusted_until(&[&mut long, &mut short]), until);
    }
}
