//! A network between one holder and the store that can fall silent: it accepts, closes nothing and forwards no byte.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A port that leads to another one, until it is cut.
pub(crate) struct Link {
    pub port: u16,
    cut: Arc<AtomicBool>,
}

impl Link {
    /// To `port` on loopback. Its threads end with the connections, at the latest with the program.
    pub(crate) fn to(port: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let own = listener.local_addr().expect("its address").port();
        let cut = Arc::new(AtomicBool::new(false));
        let there = Arc::clone(&cut);
        std::thread::spawn(move || {
            for near in listener.incoming().map_while(Result::ok) {
                let Ok(far) = TcpStream::connect(("127.0.0.1", port)) else { continue };
                near.set_nodelay(true).expect("a socket");
                far.set_nodelay(true).expect("a socket");
                let (near_too, far_too) =
                    (near.try_clone().expect("a socket"), far.try_clone().expect("a socket"));
                let (one, other) = (Arc::clone(&there), Arc::clone(&there));
                std::thread::spawn(move || forward(near, far, &one));
                std::thread::spawn(move || forward(far_too, near_too, &other));
            }
        });
        Self { port: own, cut }
    }

    /// From now on nothing passes.
    pub(crate) fn cut(&self) {
        self.cut.store(true, Ordering::SeqCst);
    }
}

fn forward(mut from: TcpStream, mut to: TcpStream, cut: &AtomicBool) {
    let mut buffer = [0; 16 * 1024];
    while let Ok(read) = from.read(&mut buffer) {
        if cut.load(Ordering::SeqCst) {
            // Swallowed. Neither side hears of it, not even that the other has hung up.
            if read == 0 {
                std::thread::park();
            }
            continue;
        }
        if read == 0 || to.write_all(&buffer[..read]).is_err() {
            break;
        }
    }
    // The other side may be gone already.
    to.shutdown(std::net::Shutdown::Both).ok();
}
