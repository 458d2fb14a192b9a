//! Rotations in Redis.

use super::RedisStore;
use crate::domain::lease::Token;
use crate::domain::name::{RotationName, WorkerName};
use crate::domain::rotation::Rules;
use crate::store::dispatch::Waiter;
use crate::store::rotation::{Kept, Pass, PumpedTurns, RotationView, Rotations, Taken, TurnAsk};
use crate::store::{Result, StoreError};

impl Rotations for RedisStore {
    async fn put_rotation(&self, _: &RotationName, _: &Rules) -> Result<RotationView> {
        Err(later())
    }
    async fn rotations(&self, _: Option<&RotationName>, _: usize) -> Result<Vec<RotationView>> {
        Ok(Vec::new())
    }
    async fn take_turn(&self, _: &TurnAsk) -> Result<Taken> {
        Err(later())
    }
    async fn extend_turn(
        &self,
        _: &RotationName,
        _: Token,
        _: Option<&WorkerName>,
    ) -> Result<Kept> {
        Err(later())
    }
    async fn pass_turn(&self, _: &Pass) -> Result<Kept> {
        Err(later())
    }
    async fn give_turn_back(&self, _: &RotationName, _: Token) -> Result<bool> {
        Err(later())
    }
    async fn leave_queue(&self, _: &RotationName, _: &Waiter) -> Result<()> {
        Err(later())
    }
    async fn pump_turns(&self, _: &str) -> Result<PumpedTurns> {
        Err(later())
    }
}

fn later() -> StoreError {
    StoreError::Unsupported("rotations on Redis are being built".to_owned())
}
