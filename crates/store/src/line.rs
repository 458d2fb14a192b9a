//! Queues of programs that wait for a lease, in order of arrival.
//!
//! A queue does not decide who holds a lease: that is [`Leases::acquire`](super::leases::Leases::acquire), which knows no queue. It says only who asks
//! first when a lease becomes free. So a forgotten place costs its program its turn, and never lets two run.

use std::time::Duration;

use async_trait::async_trait;

use super::Result;
use soloist_domain::name::{JobName, NodeName, Owner, Waiter};
use soloist_domain::time::Stamp;

/// The owner that it would hold the lease as: one request has one place, however often it is sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// As what it would hold the lease: one request has one place, however often it is sent.
    pub owner: Owner,
    /// Its name.
    pub holder: NodeName,
    /// Where it waits now; `None`: its connection is gone, and its place is kept for a while.
    pub waiter: Option<Waiter>,
    /// The place is given up then, unless it is renewed.
    pub until: Stamp,
}

/// The first places of a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// The store's clock at this reading.
    pub now: Stamp,
    /// In order of arrival; those that were given up are among them.
    pub places: Vec<Place>,
}

impl Line {
    /// The places that were not given up, in order of arrival.
    pub fn kept(&self) -> impl Iterator<Item = &Place> {
        self.places.iter().filter(|place| place.until > self.now)
    }

    /// Those that were.
    pub fn lapsed(&self) -> impl Iterator<Item = &Place> {
        self.places.iter().filter(|place| place.until <= self.now)
    }
}

/// Transitions and readings of lines.
#[async_trait]
pub trait Lines {
    /// The first `most` places of the line for the lease `name`.
    ///
    /// # Errors
    /// [`super::StoreError::Unavailable`] (as for every call of this trait), [`super::StoreError::Corrupt`].
    async fn line(&self, name: &JobName, most: usize) -> Result<Line>;

    /// Stands at the end of the line; who has a place keeps it, and waits at `waiter` from now on. The place is kept for
    /// `lasting` from now.
    ///
    /// # Errors
    /// As [`Lines::line`].
    async fn join_line(
        &self,
        name: &JobName,
        owner: &Owner,
        holder: &NodeName,
        waiter: &Waiter,
        lasting: Duration,
    ) -> Result<()>;

    /// Stops waiting at `waiter`; the place is kept for `lasting` from now. A program that now waits elsewhere keeps waiting there.
    ///
    /// # Errors
    /// As [`Lines::line`].
    async fn step_aside(
        &self,
        name: &JobName,
        owner: &Owner,
        waiter: &Waiter,
        lasting: Duration,
    ) -> Result<()>;

    /// Gives the place up. With `lapsed`, only if it still is kept no longer than until then.
    ///
    /// # Errors
    /// As [`Lines::line`].
    async fn leave_line(&self, name: &JobName, owner: &Owner, lapsed: Option<Stamp>) -> Result<()>;

    /// Tells `waiter`, wherever it waits, that the lease may be free.
    ///
    /// # Errors
    /// As [`Lines::line`].
    async fn call_waiter(&self, waiter: &Waiter) -> Result<()>;
}
