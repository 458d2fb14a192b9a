//! The node's end of the watcher (`guard/watcher`): it finds the watcher of its socket file or starts one, and answers its questions. Is this
//! an API token? Is this the secret of the holder? When a process died, it releases the leases of that process.
//!
//! The watcher outlives the node and repeats unanswered questions to the next node.

mod attach;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::UnixStream;
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinSet;
use tokio::time::sleep;

pub use self::attach::{Start, ask};
use soloist_config::Current;
use soloist_desk::leases::{Death, LeaseDesk, Released, Secret, Terms};
use soloist_domain::lease::Timing;
use soloist_domain::name::{JobName, NodeName};
use soloist_guard::watcher::said::{FromNode, LONGEST_OF_NODES, ToNode};
use soloist_store::nodes::Watched;

/// Before a watcher is looked for again.
const AGAIN_AFTER: Duration = Duration::from_secs(1);
/// So many questions are at the store at once.
const AT_ONCE: usize = 32;

/// Whether an API token is valid; an error: not known now, with why.
pub type CheckToken = Arc<dyn Fn(String) -> BoxFuture<'static, Result<bool, String>> + Send + Sync>;

/// The life line of a node.
#[derive(Clone)]
pub struct LifeLine {
    /// The socket file.
    pub path: PathBuf,
    /// This node.
    pub node: NodeName,
    /// Where leases are released.
    pub desk: LeaseDesk,
    /// Which jobs are programs'.
    pub config: Current,
    /// Knows tokens.
    pub check_token: CheckToken,
    /// Starts a watcher.
    pub start: Start,
}

impl LifeLine {
    /// Serves a watcher for as long as this node lives.
    pub async fn keep(self) {
        let mut complained = None;
        loop {
            let shown = self.path.display();
            match attach::attach(&self.path, &self.node, self.start).await {
                Ok(line) => {
                    tracing::info!("programs on this machine are watched at {shown}");
                    complained = None;
                    self.desk.watched().send_replace(Some(Watched::default()));
                    let why = self.serve(line).await;
                    self.desk.watched().send_replace(None);
                    tracing::warn!(
                        "the watcher at {shown} is gone ({why}): another is started, and programs connect to it"
                    );
                }
                Err(why) if complained.as_ref() != Some(&why) => {
                    tracing::warn!("this node works without a life line, and tries again: {why}");
                    complained = Some(why);
                }
                Err(_) => {}
            }
            sleep(AGAIN_AFTER).await;
        }
    }

    /// Answers until the watcher is gone; returns why.
    async fn serve(&self, line: UnixStream) -> String {
        let (reads, mut writes) = line.into_split();
        let (answers, mut to_write) = mpsc::unbounded_channel::<FromNode>();
        let room = Arc::new(Semaphore::new(AT_ONCE));
        let mut under_way = JoinSet::new();
        under_way.spawn(async move {
            while let Some(answer) = to_write.recv().await {
                let Ok(mut text) = serde_json::to_vec(&answer) else { continue };
                text.push(b'\n');
                if writes.write_all(&text).await.is_err() {
                    return;
                }
            }
        });
        let mut reads = BufReader::new(reads);
        let mut text = Vec::new();
        loop {
            text.clear();
            match read_line(&mut reads, &mut text).await {
                Ok(true) => {}
                Ok(false) => return "it ended".to_owned(),
                Err(error) => return error.to_string(),
            }
            while under_way.try_join_next().is_some() {}
            match serde_json::from_slice(&text) {
                Ok(ToNode::Watched(said)) => {
                    let leases = said.leases.into_iter();
                    let leases =
                        leases.filter_map(|(name, token)| Some((JobName::new(&name).ok()?, token)));
                    let watched = Watched { programs: said.programs, leases: leases.collect() };
                    self.desk.watched().send_replace(Some(watched));
                }
                Ok(asked) => {
                    let (own, answers, room) = (self.clone(), answers.clone(), Arc::clone(&room));
                    under_way.spawn(async move {
                        let Ok(_place) = room.acquire().await else { return };
                        if let Some(answer) = own.answer(asked).await {
                            answers.send(answer).ok();
                        }
                    });
                }
                Err(error) => return format!("it is of another version: {error}"),
            }
        }
    }

    async fn answer(&self, asked: ToNode) -> Option<FromNode> {
        let (id, known) = match asked {
            ToNode::Token { id, token } => (
                id,
                match (self.check_token)(token).await {
                    Ok(true) => Ok(Ok(())),
                    Ok(false) => Ok(Err(format!(
                        "this is no valid API token in the cluster of {}: use one of `soloist token new`, and the socket of a node of that cluster",
                        self.node
                    ))),
                    Err(why) => Err(why),
                },
            ),
            ToNode::Holds { id, name, secret } => (id, self.holds(&name, &secret).await),
            ToNode::Dead { id, name, secret, pid, killed } => {
                (id, self.died(&name, &secret, pid, killed).await.map(Ok))
            }
            ToNode::Taken(_) | ToNode::Watched(_) => return None,
        };
        let (answer, detail) = match known {
            Ok(Ok(())) => (Some(true), None),
            Ok(Err(why)) => (Some(false), Some(why)),
            Err(why) => (None, Some(why)),
        };
        Some(FromNode { id, answer, detail })
    }

    /// The terms of a lease as the configuration has it now.
    fn lease(&self, name: &str, secret: &str) -> Option<(Terms, Secret)> {
        let (name, secret) = (JobName::new(name).ok()?, Secret::read(secret)?);
        let config = self.config.get();
        let job = config.jobs.iter().find(|job| job.name == name && job.is_external());
        let timing = Timing::from_ttl(secret.ttl).ok()?;
        Some((Terms { name, job: job.cloned().map(Arc::new), timing }, secret))
    }

    async fn holds(&self, name: &str, secret: &str) -> Result<Result<(), String>, String> {
        let Some((terms, secret)) = self.lease(name, secret) else {
            return Ok(Err(format!("{name}: this is not the secret of a lease")));
        };
        match self.desk.holds(&terms, &secret).await {
            Ok(true) => Ok(Ok(())),
            Ok(false) => Ok(Err(format!(
                "{name}: this is not the secret of its holder in the cluster of {}: the lease is over or another's",
                self.node
            ))),
            Err(error) => Err(format!("the store of {} cannot be asked now ({error})", self.node)),
        }
    }

    async fn died(&self, name: &str, secret: &str, pid: i32, killed: bool) -> Result<(), String> {
        let Some((terms, secret)) = self.lease(name, secret) else { return Ok(()) };
        let death = Death { pid, node: &self.node, killed };
        let released =
            self.desk.died(&terms, &secret, death).await.map_err(|error| error.to_string())?;
        if released == Released::Yes {
            let how =
                if killed { "was killed, because its work was not over in time" } else { "died" };
            tracing::warn!(lease = %name, pid, token = %secret.token, "the program that held the lease {how}: it is given back");
        }
        Ok(())
    }
}

/// Reads one line, of at most [`LONGEST_OF_NODES`] bytes; false at the end.
async fn read_line(
    reads: &mut (impl tokio::io::AsyncBufRead + Unpin),
    text: &mut Vec<u8>,
) -> std::io::Result<bool> {
    loop {
        let there = reads.fill_buf().await?;
        if there.is_empty() {
            return Ok(false);
        }
        let end = there.iter().position(|byte| *byte == b'\n');
        let used = end.map_or(there.len(), |at| at + 1);
        text.extend_from_slice(&there[..end.unwrap_or(used)]);
        reads.consume(used);
        if end.is_some() {
            return Ok(true);
        }
        if text.len() > LONGEST_OF_NODES {
            return Err(std::io::Error::other("a line without end"));
        }
    }
}
