//! A way to a server that is cut in the instant in which the node of a lease was made: the frames of the protocol are told apart, not read.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};

use super::*;

/// What a client asks for that is done as a whole or not at all, as a request says it in its second word.
const MULTI: i32 = 14;

/// Hands everything on, until it is told to cut all ways after the next answer to a [`MULTI`].
struct Way {
    address: SocketAddr,
    state: Arc<State>,
}

#[derive(Default)]
struct State {
    watching: AtomicBool,
    cut: AtomicBool,
    ways: Mutex<Vec<tokio::task::AbortHandle>>,
}

impl Way {
    async fn to(server: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let (address, state) = (listener.local_addr().expect("its address"), Arc::default());
        let way = Self { address, state: Arc::clone(&state) };
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                if state.cut.load(Ordering::SeqCst) {
                    continue;
                }
                let server = TcpStream::connect(server).await.expect("the server listens");
                let asked = Arc::new(AtomicI32::new(i32::MIN));
                let (from_client, to_client) = client.into_split();
                let (from_server, to_server) = server.into_split();
                let there = ask(Arc::clone(&state), Arc::clone(&asked), from_client, to_server);
                let back = tell(Arc::clone(&state), asked, from_server, to_client);
                let tasks = [tokio::spawn(there), tokio::spawn(back)];
                state.ways.lock().expect("ours").extend(tasks.map(|task| task.abort_handle()));
            }
        });
        way
    }
}

async fn ask(
    state: Arc<State>,
    asked: Arc<AtomicI32>,
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
) {
    let mut greeted = false;
    while let Some(frame) = frame(&mut from).await {
        if greeted && word(&frame, 1) == Some(MULTI) && state.watching.load(Ordering::SeqCst) {
            asked.store(word(&frame, 0).expect("a number"), Ordering::SeqCst);
        }
        greeted = true;
        if to.write_all(&frame).await.is_err() {
            return;
        }
    }
}

async fn tell(
    state: Arc<State>,
    asked: Arc<AtomicI32>,
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
) {
    let mut greeted = false;
    while let Some(frame) = frame(&mut from).await {
        let last = greeted && word(&frame, 0) == Some(asked.load(Ordering::SeqCst));
        greeted = true;
        // Before the client can say another word.
        if last {
            state.cut.store(true, Ordering::SeqCst);
        }
        if to.write_all(&frame).await.is_err() {
            return;
        }
        if last {
            state.ways.lock().expect("ours").drain(..).for_each(|way| way.abort());
        }
    }
}

/// Its length and what follows; `None` at the end.
async fn frame(from: &mut OwnedReadHalf) -> Option<Vec<u8>> {
    let length = from.read_u32().await.ok()?;
    let mut frame = length.to_be_bytes().to_vec();
    frame.resize(4 + length as usize, 0);
    from.read_exact(&mut frame[4..]).await.ok()?;
    Some(frame)
}

/// A word of 32 bits of what follows the length.
fn word(frame: &[u8], nth: usize) -> Option<i32> {
    let bytes = frame.get(4 + 4 * nth..8 + 4 * nth)?;
    Some(i32::from_be_bytes(bytes.try_into().ok()?))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lease_whose_session_says_no_more_after_it_was_made_is_not_granted() {
    let ensemble = ZooKeeper::shared();
    let coordination = ensemble.chroot();
    let (_, chroot) = coordination["zookeeper://".len()..].split_once('/').expect("a chroot");
    let way = Way::to(ensemble.addresses()[0]).await;
    let store = PostgresServer::shared().database();
    let url = joined(&store, Some(&format!("zookeeper://{}/{chroot}", way.address)));
    let alone = open(&url).await;
    let mine = super::ask("node-a", Duration::from_secs(2));
    // So all sessions are there, and what begins once.
    let first = answered(&alone, &mine).await;
    assert!(matches!(first, Acquired::Granted { .. }), "{first:?}");
    alone.release(&mine.job, &mine.owner).await.expect("released");
    way.state.watching.store(true, Ordering::SeqCst);
    let answer = alone.acquire(&mine).await;
    assert!(way.state.cut.load(Ordering::SeqCst), "no lease was made: {answer:?}");
    assert!(!matches!(answer, Ok(Acquired::Granted { .. })), "{answer:?}");
    // It holds nothing up for longer than its session.
    let other = open(&joined(&store, Some(&coordination))).await;
    until_async("another has it", async || {
        let answer = other.acquire(&super::ask("node-b", Duration::from_secs(2))).await;
        matches!(answer, Ok(Acquired::Granted { .. })).then_some(())
    })
    .await;
}
