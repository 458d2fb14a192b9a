//! The signals that ask `soloist run` to stop its command.
//!
//! What was ignored when this process was started stays ignored: `nohup soloist run ... &` must outlive its terminal,
//! and Ctrl-C in a shell script is not meant for what that script put into the background.

use tokio::signal::unix::{Signal, SignalKind, signal};

/// Those that are listened to.
pub(super) struct Signals(Vec<(i32, Signal)>);

impl Signals {
    /// Listens to TERM, and to HUP, INT and QUIT unless they are ignored.
    ///
    /// # Errors
    /// When the runtime cannot listen.
    pub(super) fn listen() -> std::io::Result<Self> {
        let ignored = std::fs::read_to_string("/proc/self/status").map_or(0, |s| ignored(&s));
        let kinds = [SignalKind::hangup(), SignalKind::interrupt(), SignalKind::quit()];
        let asked = kinds.into_iter().filter(|kind| ignored >> (kind.as_raw_value() - 1) & 1 == 0);
        let all = asked.chain([SignalKind::terminate()]);
        all.map(|kind| Ok((kind.as_raw_value(), signal(kind)?))).collect::<Result<_, _>>().map(Self)
    }

    /// The next one that comes; its number.
    pub(super) async fn next(&mut self) -> i32 {
        std::future::poll_fn(|context| {
            for (number, signal) in &mut self.0 {
                if signal.poll_recv(context).is_ready() {
                    return std::task::Poll::Ready(*number);
                }
            }
            std::task::Poll::Pending
        })
        .await
    }
}

/// Whether this process was started with a signal ignored.
#[must_use]
pub fn is_ignored(signal: nix::sys::signal::Signal) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    ignored(&status) >> (signal as i32 - 1) & 1 == 1
}

/// `SigIgn` of proc(5): one bit a signal, the first for number 1.
fn ignored(status: &str) -> u64 {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_mask_of_ignored_signals_is_read() {
        let nohup = "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000003\nSigCgt:\t00\n";
        assert_eq!(super::ignored(nohup), 3, "HUP and INT");
        assert_eq!(super::ignored(""), 0);
    }
}
