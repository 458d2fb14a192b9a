//! NOT YET: dispatch of the SQL stores moves to `../sql/dispatch/`. Until it is there, every call is refused, and this file is all
//! that knows it.

use std::time::Duration;

use super::PostgresStore;
use crate::domain::dispatch::Rules;
use crate::domain::name::{SourceName, Waiter};
use crate::domain::time::Stamp;
use crate::store::dispatch::{
    ClaimId, ClaimOwner, CollectorView, Dispatch, Exchange, Exchanged, Extended, NewTask, Pumped,
    RemovedSource, SourceView, Sources, TaskFilter, TaskId, TaskView,
};
use crate::store::{Result, StoreError};

fn not_yet<T>() -> Result<T> {
    Err(StoreError::Unsupported("dispatch on PostgreSQL: not yet".to_owned()))
}

macro_rules! refused {
    ($trait:ident { $(fn $method:ident($($type:ty),*) -> $out:ty;)* }) => {
        impl $trait for PostgresStore {
            $(refused!(@ $method, $out, $($type),*);)*
        }
    };
    (@ $method:ident, $out:ty, ) => {
        async fn $method(&self) -> Result<$out> { not_yet() }
    };
    (@ $method:ident, $out:ty, $a:ty) => {
        async fn $method(&self, _: $a) -> Result<$out> { not_yet() }
    };
    (@ $method:ident, $out:ty, $a:ty, $b:ty) => {
        async fn $method(&self, _: $a, _: $b) -> Result<$out> { not_yet() }
    };
    (@ $method:ident, $out:ty, $a:ty, $b:ty, $c:ty) => {
        async fn $method(&self, _: $a, _: $b, _: $c) -> Result<$out> { not_yet() }
    };
}

refused! { Sources {
    fn put_source(&SourceName, &Rules) -> SourceView;
    fn pause_source(&SourceName, bool) -> SourceView;
    fn block_source(&SourceName, Duration) -> SourceView;
    fn sources(Option<&SourceName>) -> Vec<SourceView>;
    fn remove_source(&SourceName, bool) -> RemovedSource;
    fn collectors() -> Vec<CollectorView>;
} }

refused! { Dispatch {
    fn put_tasks(&[NewTask]) -> Vec<bool>;
    fn exchange(&Exchange) -> Exchanged;
    fn extend(&ClaimId, Option<&ClaimOwner>) -> Extended;
    fn give_back(&ClaimId, Option<&ClaimOwner>) -> u64;
    fn give_back_unseen_claim(&ClaimId) -> u64;
    fn leave_queues(&Waiter, &[SourceName]) -> ();
    fn pump() -> Pumped;
    fn task(&TaskId) -> Option<TaskView>;
    fn dead(Option<&SourceName>, usize, usize) -> Vec<TaskView>;
    fn tasks(&TaskFilter, Option<&(Stamp, TaskId)>, usize) -> Vec<TaskView>;
    fn remove_task(&TaskId, bool) -> bool;
    fn revive(&TaskId) -> TaskView;
} }
