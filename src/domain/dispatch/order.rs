//! Who is next: tasks within a source, sources among each other.

/// The place of a ready task in its source's queue: lower is sooner. Exact as a double, which Redis' sorted sets hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
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

/// How many tasks the source at the head of a ring of `sources` gives to a claim that still wants `wanted`, so that one
/// large source leaves room for the others in the same claim.
#[must_use]
pub fn share(wanted: u32, sources: u32) -> u32 {
    (wanted / sources.max(1)).max(1)
}
