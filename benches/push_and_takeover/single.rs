//! One job: switched on, told, taken over, handed over.

use std::time::Duration;

use serde_json::Value;
use soloist::clock;
use soloist::domain::time::Boot;
use tokio::sync::mpsc;

use super::pair::{JOB, Leaving, Pair, Side};
use super::support::api::{Api, Live};
use super::support::wait::PATIENCE;
use super::table::Table;

/// Frames as they arrive, with the time of arrival.
struct Arrivals {
    frames: mpsc::UnboundedReceiver<(Boot, Value)>,
    reader: tokio::task::JoinHandle<()>,
}

impl Arrivals {
    fn on(mut live: Live) -> Self {
        let (send, frames) = mpsc::unbounded_channel();
        let reader = tokio::spawn(async move {
            loop {
                let frame = live.frame().await;
                let arrived = (clock::boot(), frame["job"].clone());
                if frame["type"] == "job" && send.send(arrived).is_err() {
                    return;
                }
            }
        });
        Self { frames, reader }
    }

    /// When the first frame arrived whose job is as wanted.
    async fn of(&mut self, wanted: impl Fn(&Value) -> bool) -> Boot {
        let reading = async {
            loop {
                let (at, job) = self.frames.recv().await.expect("the socket is open");
                if wanted(&job) {
                    return at;
                }
            }
        };
        tokio::time::timeout(PATIENCE, reading).await.expect("the frame comes")
    }

    /// Hangs up before the node does.
    async fn close(self) {
        self.reader.abort();
        self.reader.await.ok();
    }
}

fn has(job: &Value, user: &str) -> bool {
    job["participants"].as_array().is_some_and(|all| all.iter().any(|one| one["user"] == user))
}

/// A pair with somebody at each node.
struct Watched {
    // Hangs up before its nodes end.
    sockets: [Arrivals; 2],
    li: Api,
    wang: Api,
    pair: Pair,
    to_start: Vec<Duration>,
    to_frames: Vec<Duration>,
}

impl Watched {
    async fn start(side: &Side) -> Self {
        let pair = Pair::start(side, 5);
        pair.ground.add_user("wang", "operator");
        let (li, wang) = (pair.api(), pair.nodes[1].api(&pair.ground.token("wang")));
        let sockets = [Arrivals::on(li.live().await), Arrivals::on(wang.live().await)];
        pair.settle(None).await;
        Self { sockets, li, wang, pair, to_start: Vec::new(), to_frames: Vec::new() }
    }

    async fn switch_on(&mut self) {
        let before = clock::boot();
        self.to_start.push(self.pair.switch_on().await.since(before));
        self.li.switch(JOB, false).await;
        for frames in &mut self.sockets {
            frames.of(|job| job["state"] == "off").await;
        }
    }

    async fn tell(&mut self, on: bool) {
        let (before, _) = (clock::boot(), self.wang.switch(JOB, on).await);
        let mut last = before;
        for frames in &mut self.sockets {
            last = last.max(frames.of(|job| has(job, "wang") == on).await);
        }
        self.to_frames.push(last.since(before));
    }
}

pub(crate) async fn switches(sides: &[Side], count: usize, table: &mut Table) {
    if count == 0 {
        return;
    }
    let mut all = Vec::new();
    for side in sides {
        all.push(Watched::start(side).await);
    }
    for _ in 0..count {
        for one in &mut all {
            one.switch_on().await;
        }
    }
    for one in &all {
        one.pair.switch_on().await;
    }
    for nth in 0..count {
        for one in &mut all {
            one.tell(nth % 2 == 0).await;
        }
    }
    let what = "participation switched on -> script started";
    all.iter().for_each(|one| table.row(what, &one.pair.side, &one.to_start, Some(50)));
    let what = "change -> frame on both nodes' sockets";
    all.iter().for_each(|one| table.row(what, &one.pair.side, &one.to_frames, Some(50)));
    for one in all {
        for socket in one.sockets {
            socket.close().await;
        }
    }
}

pub(crate) async fn leave(
    sides: &[Side],
    how: Leaving,
    lease_seconds: usize,
    count: usize,
    table: &mut Table,
) {
    if count == 0 {
        return;
    }
    let mut pairs: Vec<Pair> = sides.iter().map(|side| Pair::start(side, lease_seconds)).collect();
    for pair in &pairs {
        pair.settle(None).await;
        pair.switch_on().await;
    }
    let mut times = vec![Vec::new(); pairs.len()];
    for _ in 0..count {
        // All are measured before any recovers: nodes that start do not disturb.
        let mut taken = Vec::new();
        for pair in &mut pairs {
            taken.push(pair.take_over(how).await);
        }
        for ((pair, times), one) in pairs.iter_mut().zip(&mut times).zip(taken) {
            times.push(one.took);
            pair.recover(one, how).await;
        }
    }
    let (what, wanted) = match how {
        Leaving::Kill => ("`kill -9` of the holder", 150),
        Leaving::Terminate => ("SIGTERM to the holder", 50),
    };
    let what = format!("{what} -> started by the other, lease {lease_seconds} s");
    for (pair, times) in pairs.iter().zip(&times) {
        table.row(&what, &pair.side, times, Some(wanted));
    }
}
