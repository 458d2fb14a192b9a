//! The store, reduced to its law: the same one that `tests/it/conformance` holds the real stores to.

use super::rules::Rules;

/// Length of a lease in units of time.
pub const TTL: u8 = 3;
/// How long a move keeps a job for the node it is for.
pub const MOVE: u8 = 4;
/// How long a job rests after a crash.
pub const BACKOFF: u8 = 2;

/// Random per acquisition: here a node and the number of its attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Owner {
    pub node: u8,
    pub attempt: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Lease {
    pub owner: Owner,
    pub token: u64,
    /// Units of time.
    pub left: u8,
}

/// A hand-over that was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Moving {
    pub from: Option<u8>,
    pub to: Option<u8>,
    /// Units of time.
    pub left: u8,
}

impl Moving {
    /// The job is kept for another node than `node`.
    pub fn is_for_another(self, node: u8) -> bool {
        self.to.map_or(self.from == Some(node), |to| to != node)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Store {
    pub lease: Option<Lease>,
    pub moving: Option<Moving>,
    /// Units of time until the next run may begin.
    pub due: u8,
    pub minted: u64,
    pub released: u64,
    pub wanted: bool,
    /// Units of time in which nothing is granted.
    pub quarantine: u8,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Answer {
    Granted(u64),
    /// No use asking before so many units.
    Refused(u8),
    Kept,
    Lost,
    Done,
}

impl Store {
    pub fn tick(&mut self) {
        self.quarantine = self.quarantine.saturating_sub(1);
        self.due = self.due.saturating_sub(1);
        if let Some(moving) = &mut self.moving {
            moving.left -= 1;
            self.moving = self.moving.filter(|moving| moving.left > 0);
        }
        if let Some(lease) = &mut self.lease {
            lease.left -= 1;
            if lease.left == 0 {
                self.lease = None;
            }
        }
    }

    /// `clock` stands for the store's time in the token: it exceeds every token minted before.
    pub fn acquire(&mut self, owner: Owner, clock: u64, rules: Rules) -> Answer {
        match &mut self.lease {
            Some(lease) if lease.owner == owner => {
                lease.left = TTL;
                return Answer::Granted(lease.token);
            }
            Some(lease) => return Answer::Refused(lease.left),
            None => {}
        }
        if !self.wanted {
            return Answer::Refused(1);
        }
        if self.due > 0 {
            return Answer::Refused(self.due);
        }
        if let Some(moving) = self.moving.filter(|moving| moving.is_for_another(owner.node)) {
            return Answer::Refused(moving.left);
        }
        if self.quarantine > 0 && !rules.no_quarantine {
            return Answer::Refused(self.quarantine);
        }
        let counted = self.minted + 1;
        let token = if rules.token_counts_only { counted } else { counted.max(clock) };
        self.minted = token;
        self.lease = Some(Lease { owner, token, left: TTL });
        (self.moving, self.due) = (None, 0);
        Answer::Granted(token)
    }

    pub fn renew(&mut self, owner: Owner, token: u64, rules: Rules) -> Answer {
        if let Some(lease) = &mut self.lease
            && lease.owner == owner
            && lease.token == token
        {
            lease.left = TTL;
            return Answer::Kept;
        }
        let newest = self.minted.max(self.lease.map_or(0, |lease| lease.token));
        let stale = token < newest || (self.lease.is_some() && token == newest);
        let given_back = token <= self.released;
        if (stale && !rules.token_not_compared) || (given_back && !rules.renewal_resurrects) {
            return Answer::Lost;
        }
        self.minted = self.minted.max(token);
        self.lease = Some(Lease { owner, token, left: TTL });
        Answer::Kept
    }

    /// A run ended, and its lease with it; a newer holder has closed it already.
    pub fn end(&mut self, token: u64, crashed: bool, rules: Rules) -> Answer {
        if token < self.minted && !rules.token_not_compared {
            return Answer::Done;
        }
        self.released = self.released.max(token);
        self.due = if crashed { BACKOFF } else { 0 };
        // A lease of an older token is what a late renewal put into a store that had forgotten us.
        self.lease = self.lease.filter(|lease| lease.token > token);
        Answer::Done
    }

    pub fn release(&mut self, owner: Owner) -> Answer {
        if let Some(lease) = self.lease
            && lease.owner == owner
        {
            self.released = self.released.max(lease.token);
            self.lease = None;
        }
        Answer::Done
    }

    /// Somebody switches the job on or off; on means "try now".
    pub fn switch(&mut self) {
        self.wanted = !self.wanted;
        self.due = 0;
    }

    /// An operator asks for a hand-over, to `to` or away from the holder.
    pub fn request_move(&mut self, to: Option<u8>) {
        let from = self.lease.map(|lease| lease.owner.node);
        self.moving = Some(Moving { from, to, left: MOVE });
    }

    /// This copy is now the store: its server is another, and nobody knows what it never heard of.
    pub fn promoted(mut self) -> Self {
        self.quarantine = TTL;
        self
    }
}
