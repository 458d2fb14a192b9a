//! Who is next: tasks within a source, sources among each other.

/// The place of a ready task in its source's queue: lower is sooner. Exact as a double, which Redis' sorted sets hold.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize,
)]
pub struct Place(pub u64);

/// Half of the places of one priority: new tasks count up from here, returned ones count down.
const MIDDLE: u64 = 1 << 48;

impl Place {
    /// Behind all of the same `priority` (0 to 9, 9 is the most urgent); `nth` grows by one for each task of a source.
    #[must_use]
    pub fn behind(priority: u8, nth: u64) -> Self {
        Self(Self::floor(priority) + MIDDLE + nth.min(MIDDLE - 1))
    }

    /// Before all of the same `priority`: a task whose collector died is handed out again at once.
    #[must_use]
    pub fn before(priority: u8, nth: u64) -> Self {
        Self(Self::floor(priority) + MIDDLE - nth.clamp(1, MIDDLE))
    }

    fn floor(priority: u8) -> u64 {
        u64::from(9 - priority.min(9)) * 2 * MIDDLE
    }
}

/// How many tasks each of the `sources` of a ring gives, in one round, to a claim that still wants `wanted`.
///
/// A claim goes round the ring until it has all it wants or no source can give more: what one source cannot give is divided
/// among the others in the next round. The last round is one task each, as far as they go, and the next claim begins where
/// it ended. So two sources that can both give more never differ by more than one task.
#[must_use]
pub fn share(wanted: u32, sources: u32) -> u32 {
    (wanted / sources.max(1)).max(1)
}
