//! The gate before the WebSocket parser, which would buffer a frame of any length before it complained.
//!
//! It knows bytes and RFC 6455 frame headers. It knows no crate that speaks WebSocket, and no contents.

use std::cell::Cell;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use actix_web::error::PayloadError;
use bytes::Bytes;
use futures_util::Stream;

/// Largest frame, and largest message in fragments, that a client may send.
pub const FRAME_MAX: usize = 4 * 1024;

/// Lets bytes pass until a frame announces more than [`FRAME_MAX`]: then an error, and whatever follows is thrown away.
pub struct Gate<S> {
    inner: S,
    header: Vec<u8>,
    /// Left of the present frame.
    left: usize,
    overflow: Rc<Cell<bool>>,
}

impl<S> Gate<S> {
    /// `overflow` is set when a frame was too large.
    pub fn new(inner: S, overflow: Rc<Cell<bool>>) -> Self {
        Self { inner, header: Vec::with_capacity(14), left: 0, overflow }
    }

    /// Follows the frames in `bytes`; false when one is too large.
    fn pass(&mut self, mut bytes: &[u8]) -> bool {
        while !bytes.is_empty() {
            if self.left > 0 {
                let skip = self.left.min(bytes.len());
                self.left -= skip;
                bytes = &bytes[skip..];
                continue;
            }
            self.header.push(bytes[0]);
            bytes = &bytes[1..];
            let Some(length) = payload_length(&self.header) else { continue };
            if length > FRAME_MAX as u64 {
                return false;
            }
            let masked = self.header[1] & 0x80 != 0;
            self.header.clear();
            self.left = usize::try_from(length).unwrap_or(0) + if masked { 4 } else { 0 };
        }
        true
    }
}

/// The payload's length, once enough of the header is there (RFC 6455, 5.2).
fn payload_length(header: &[u8]) -> Option<u64> {
    let short = header.get(1)? & 0x7f;
    let extended = match short {
        126 => header.get(2..4)?,
        127 => header.get(2..10)?,
        _ => return Some(u64::from(short)),
    };
    Some(extended.iter().fold(0, |length, byte| length << 8 | u64::from(*byte)))
}

impl<S: Stream<Item = Result<Bytes, PayloadError>> + Unpin> Stream for Gate<S> {
    type Item = Result<Bytes, PayloadError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            let item = Pin::new(&mut self.inner).poll_next(context);
            let Poll::Ready(Some(Ok(bytes))) = item else { return item };
            if self.overflow.get() {
                continue;
            }
            if !self.pass(&bytes) {
                self.overflow.set(true);
                return Poll::Ready(Some(Err(PayloadError::Overflow)));
            }
            return Poll::Ready(Some(Ok(bytes)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gate() -> Gate<()> {
        Gate::new((), Rc::default())
    }

    fn frame(length: usize) -> Vec<u8> {
        let mut frame = vec![0x81];
        match length {
            0..=125 => frame.push(0x80 | u8::try_from(length).unwrap()),
            126..=65_535 => {
                frame.push(0x80 | 126);
                frame.extend_from_slice(&u16::try_from(length).unwrap().to_be_bytes());
            }
            _ => {
                frame.push(0x80 | 127);
                frame.extend_from_slice(&u64::try_from(length).unwrap().to_be_bytes());
            }
        }
        frame.extend_from_slice(&[0; 4]);
        frame.resize(frame.len() + length.min(10_000), b'x');
        frame
    }

    #[test]
    fn the_gate_refuses_a_large_frame_at_its_header() {
        assert!(!gate().pass(&frame(4_097)[..4]));
        assert!(!gate().pass(&frame(usize::MAX)[..10]));
        assert!(gate().pass(&frame(4_096)));
    }

    #[test]
    fn the_gate_follows_frames_however_they_are_cut() {
        let mut bytes = Vec::new();
        for length in [0, 1, 125, 126, 300, 4_096, 0, 7] {
            bytes.extend(frame(length));
        }
        for cut in [1, 2, 3, 7, 1_000] {
            let mut gate = gate();
            for chunk in bytes.chunks(cut) {
                assert!(gate.pass(chunk), "cut into {cut}");
            }
            assert_eq!((gate.left, gate.header.len()), (0, 0));
            assert!(!gate.pass(&frame(5_000)));
        }
    }
}
