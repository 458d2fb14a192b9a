//! Who may see what of the audit: once, for page, API and command line.
//!
//! Admins see everything. Operators see what people and programs did, and from where. Viewers see that as well, but only their own
//! addresses. Only admins see refusals: they show from where and for whom somebody tries to get in. What was done to a job, a rotation or
//! an alert is visible to readers who may see it, and to admins when it no longer exists, because its viewers are then unknown.

use super::{OpsError, Result};
use soloist_domain::detail::Detail;
use soloist_domain::name::UserName;
use soloist_store::accounts::Role;
use soloist_store::journal::{AuditEntry, AuditFilter, Kind, Within};

/// From where the command line acts.
pub const TERMINAL: &str = "terminal";

/// What a reader may see.
#[derive(Debug, Clone)]
pub struct Sight {
    role: Role,
    name: String,
    within: Vec<Within>,
}

impl Sight {
    /// The sight of an account, which sees of some acts only what was done to these.
    #[must_use]
    pub fn of(role: Role, name: &UserName, within: Vec<Within>) -> Self {
        Self { role, name: name.to_string(), within }
    }

    /// The sight of a person who has the store itself.
    #[must_use]
    pub fn whole() -> Self {
        Self { role: Role::Admin, name: String::new(), within: Vec::new() }
    }

    /// The kinds of entries there are.
    #[must_use]
    pub fn kinds(&self) -> Vec<Kind> {
        let all = Kind::ALL.into_iter();
        all.filter(|kind| *kind != Kind::Refusal || self.role == Role::Admin).collect()
    }

    /// `filter` without what is hidden.
    ///
    /// # Errors
    /// [`OpsError::Forbidden`] when that is all it asks for.
    pub fn narrow(&self, mut filter: AuditFilter) -> Result<AuditFilter> {
        filter.within.clone_from(&self.within);
        let seen = self.kinds();
        if seen.len() == Kind::ALL.len() {
            return Ok(filter);
        }
        filter.kinds = seen.into_iter().filter(|kind| filter.has(*kind)).collect();
        if filter.kinds.is_empty() {
            return Err(OpsError::Forbidden(
                Detail::new("only admins see refusals: ask one").told("refused-refusals", &[]),
            ));
        }
        Ok(filter)
    }

    /// Whether the address of an entry may be seen.
    #[must_use]
    pub fn sees_address(&self, entry: &AuditEntry) -> bool {
        matches!(self.role, Role::Operator | Role::Admin) || entry.who == self.name
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn viewers_see_their_own_address_only_and_nobody_but_admins_sees_refusals() {
        let li = UserName::new("li").expect("a name");
        let entry = |who: &str| AuditEntry {
            id: 1,
            at: soloist_domain::time::StoreTime(1),
            who: who.to_owned(),
            from: "10.0.0.7".to_owned(),
            act: "login".to_owned(),
            target: who.to_owned(),
            reason: None,
            kind: Kind::Person,
            count: 1,
            until: None,
        };
        let of = |role| Sight::of(role, &li, Vec::new());
        let sees = |role| ["li", "ada"].map(|who| of(role).sees_address(&entry(who)));
        assert_eq!(sees(Role::Viewer), [true, false]);
        assert_eq!(sees(Role::Operator), [true, true]);
        let refusals = || AuditFilter { kinds: vec![Kind::Refusal], ..AuditFilter::default() };
        assert!(of(Role::Operator).narrow(refusals()).is_err());
        assert_eq!(of(Role::Admin).narrow(refusals()).expect("seen"), refusals());
        let all = of(Role::Viewer).narrow(AuditFilter::default()).expect("some");
        assert_eq!(all.kinds, [Kind::Person, Kind::Program]);
    }

    #[test]
    fn what_was_done_to_what_is_not_seen_or_is_no_more_is_left_out_and_nothing_else() {
        let li = UserName::new("li").expect("a name");
        let within = vec![("job.", ["outbound".to_owned()].into())];
        let filter = Sight::of(Role::Operator, &li, within).narrow(AuditFilter::default());
        let filter = filter.expect("some");
        let done = |act: &str, target: &str| {
            filter.admits(&AuditEntry {
                id: 1,
                at: soloist_domain::time::StoreTime(1),
                who: "ada".to_owned(),
                from: "10.0.0.7".to_owned(),
                act: act.to_owned(),
                target: target.to_owned(),
                reason: None,
                kind: Kind::Person,
                count: 1,
                until: None,
            })
        };
        assert!(done("job.hold", "outbound") && !done("job.hold", "gone"));
        assert!(done("user.add", "gone") && done("source.put", "gone"));
    }
}
