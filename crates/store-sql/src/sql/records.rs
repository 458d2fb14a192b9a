//! The port of records without a job, on an SQL server: one packet for each look and each plan.
//!
//! Plans go through a gate, one after the other: then nothing that was checked changes before the commit, and looks behind the writes are of
//! one instant.

use async_trait::async_trait;

use super::follow::{Hint, TOLD};
use super::packet::{Packet, Repeat, only, outcome};
use super::{SqlStore, look, plan};
use soloist_domain::time::Stamp;
use soloist_process::clock;
use soloist_store::Result;
use soloist_store::core::KnownTurns;
use soloist_store::engine::Way;
use soloist_store::journal::AuditEntry;
use soloist_store::records::{Changed, Look, Looked, Plan, Records};

#[async_trait]
impl Records for SqlStore {
    fn note(&self) -> Option<&AuditEntry> {
        self.note.as_deref()
    }

    fn latest(&self) -> Option<Stamp> {
        let latest = self.shared.latest.lock();
        latest.and_then(|latest| latest.at(clock::boot()))
    }

    async fn look(&self, looks: &[Look]) -> Result<Looked> {
        let mut packet = Packet::look(self.shared.server.dialect());
        packet.add("SELECT {clock}", Vec::new());
        looks.iter().for_each(|one| look::add(&mut packet, one));
        let sent = clock::boot();
        let answers = self.shared.server.send(Way::Rest, &packet, Repeat::Harmless).await?;
        let at = Stamp(only(&answers, 0)?.int(0)?);
        self.read_clock(at, sent);
        Ok(Looked { at, found: look::found(looks, &answers, 1)? })
    }

    async fn change_and_look(
        &self,
        plan: &Plan,
        done: &[Look],
        refused: &[Look],
    ) -> Result<(Changed, Looked)> {
        let mut packet = Packet::change(self.shared.server.dialect());
        plan::add(&mut packet, plan)?;
        let nth = packet.ask_outcome();
        done.iter().for_each(|one| look::add(&mut packet, one));
        let told = packet.statements.len();
        let tells_later = !plan.tells.is_empty() && !packet.dialect.rings_in_commits();
        if tells_later {
            packet.add(TOLD, Vec::new());
        }
        let repeat = if plan.once { Repeat::Never } else { Repeat::Harmless };
        let sent = clock::boot();
        let answers = self.shared.server.send(Way::Rest, &packet, repeat).await?;
        let (held, at) = outcome(&answers, nth)?;
        self.read_clock(Stamp(at), sent);
        if !held {
            // Nothing was done; the caller decides anew on what is newest now.
            return Ok((Changed::Refused, self.look(refused).await?));
        }
        // No process waits here: one that may end soon changes jobs, or is asked again.
        if tells_later {
            drop(self.shared.server.ring(Hint::of_records(&plan.tells, answers.get(told))?));
        }
        let found = look::found(done, &answers, nth + 1)?;
        Ok((Changed::Done, Looked { at: Stamp(at), found }))
    }

    fn turns(&self) -> &KnownTurns {
        &self.shared.turns
    }
}
