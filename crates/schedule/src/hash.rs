//! Numbers made from names: the same on every node and in every version.

use sha2::{Digest, Sha256};

/// A number below `bound` (at least 1), made from `parts`.
pub(crate) fn number(parts: &[&str], bound: u64) -> u64 {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update(part.as_bytes());
        hash.update([0]);
    }
    let digest = hash.finalize();
    let number = digest.iter().take(8).fold(0_u64, |sum, byte| sum << 8 | u64::from(*byte));
    number % bound.max(1)
}

/// Sixteen hexadecimal digits made from `text`.
pub(crate) fn short(text: &str) -> String {
    Sha256::digest(text.as_bytes()).iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}
