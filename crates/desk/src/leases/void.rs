//! Once a day: records that say nothing any more are removed. Every node does it; whoever comes second finds less.

use std::time::Duration;

use tokio::time::sleep;

use super::LeaseDesk;
use crate::waiting::DeskError;
use soloist_domain::transition::forget::KEPT;

/// A node that has just started has other things to do.
const FIRST: Duration = Duration::from_secs(10 * 60);
const EVERY: Duration = Duration::from_secs(24 * 60 * 60);
/// Records that are read at once.
const BATCH: usize = 100;
/// Between two batches: nobody waits for this.
const PAUSE: Duration = Duration::from_millis(50);

/// Removes them, until the room closes.
pub(super) async fn forget(desk: LeaseDesk) {
    let mut closing = desk.shared.room.closing();
    let mut wait = FIRST;
    loop {
        let round = async {
            sleep(std::mem::replace(&mut wait, EVERY)).await;
            match forget_now(&desk).await {
                Ok(0) => {}
                Ok(names) => {
                    tracing::info!(names, "names that nobody has used for 30 days are forgotten");
                }
                Err(error) => tracing::debug!(%error, "no unused names are forgotten today"),
            }
        };
        tokio::select! {
            () = round => {}
            _ = closing.wait_for(|closing| *closing) => return,
        }
    }
}

async fn forget_now(desk: &LeaseDesk) -> Result<usize, DeskError> {
    let mut forgotten = 0;
    for some in desk.store()?.every_name().await?.chunks(BATCH) {
        forgotten += desk.store()?.forget_void(some, KEPT).await?;
        sleep(PAUSE).await;
    }
    Ok(forgotten)
}
