//! The store, reduced to its law: the same one that `tests/it/conformance` holds the real stores to.

use super::rules::Rules;

/// Length of a lease in units of time.
pub const TTL: u8 = 3;

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

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Store {
    pub lease: Option<Lease>,
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
        if self.quarantine > 0 && !rules.no_quarantine {
            return Answer::Refused(self.quarantine);
        }
        let counted = self.minted + 1;
        let token = if rules.token_counts_only { counted } else { counted.max(clock) };
        self.minted = token;
        self.lease = Some(Lease { owner, token, left: TTL });
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
    pub fn end(&mut self, token: u64, rules: Rules) -> Answer {
        if token < self.minted && !rules.token_not_compared {
            return Answer::Done;
        }
        self.released = self.released.max(token);
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

    /// This copy is now the store: its server is another, and nobody knows what it never heard of.
    pub fn promoted(mut self) -> Self {
        self.quarantine = TTL;
        self
    }
}
