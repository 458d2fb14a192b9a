//! The secret of a lease: what only its holder can send, and all that any node needs to renew it.
//!
//! `TOKEN.TTL.KIND.SEAL`: the fencing token, the length of the lease in milliseconds, `j` for a job's lease or `p` for a program's own, and 32
//! hexadecimal digits that cannot be guessed. The store keeps the token, and as the lease's owner a hash of all the rest. So a reader
//! of the store cannot renew, a secret in which any part was changed is that of no lease, and a node that never saw this lease can go on
//! with it. A store that forgot the lease knows no owner: then the secret is worth nothing, and the program asks anew.

use std::time::Duration;

use super::{LONGEST, SHORTEST};
use soloist_domain::lease::Token;
use soloist_domain::name::{JobName, Owner, RunId, UserName};
use soloist_domain::time::{Began, StoreTime};
use soloist_secrets as secrets;

/// Digits of a seal.
const SEAL: usize = 32;
/// So many of them, the first, stand for the account.
const ACCOUNT: usize = 8;

/// What a lease is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A job with `runner = "external"`: each grant is a run of it.
    Job,
    /// A name of its own.
    Program,
}

impl Kind {
    fn letter(self) -> &'static str {
        match self {
            Self::Job => "j",
            Self::Program => "p",
        }
    }
}

/// A secret, taken apart.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret {
    /// The fencing token of the grant.
    pub token: Token,
    /// How long the lease lasts unrenewed. It was granted for so long, and each renewal extends it by the same, whatever any configuration
    /// says since: a program whose answer was lost trusts what it was told before.
    pub ttl: Duration,
    /// What it is of.
    pub kind: Kind,
    seal: String,
}

/// Who holds a lease that was granted on such terms: a hash of all of the secret but its token, which the store compares by itself.
#[must_use]
pub(super) fn owner(ttl: Duration, kind: Kind, seal: &str) -> Owner {
    let all = format!("{}.{}.{seal}", ttl.as_millis(), kind.letter());
    let (hash, account) = (&secrets::sha256_hex(&all)[..SEAL], &seal[..ACCOUNT]);
    Owner(format!("{}{hash}.{account}", Owner::OF_PROGRAMS))
}

/// What stands for an account in its seals and owners, so that its leases can be counted.
#[must_use]
pub fn account(user: &UserName) -> String {
    secrets::sha256_hex(&format!("account\n{user}"))[..ACCOUNT].to_owned()
}

/// Whether the lease was granted to `account`.
pub(super) fn is_of(owner: &Owner, account: &str) -> bool {
    owner.as_str().rsplit_once('.').is_some_and(|(_, own)| own == account)
}

/// The seal of a lease for `account`; `text` cannot be guessed and has as many digits.
#[must_use]
pub fn seal(account: &str, text: &str) -> String {
    format!("{account}{}", &text[..SEAL - ACCOUNT])
}

impl Secret {
    /// Of a grant.
    #[must_use]
    pub fn new(token: Token, ttl: Duration, kind: Kind, seal: &str) -> Self {
        Self { token, ttl, kind, seal: seal.to_owned() }
    }

    /// Reads the text that a holder sends; `None`: it is none.
    #[must_use]
    pub fn read(text: &str) -> Option<Self> {
        let mut parts = text.split('.');
        let mut part = || parts.next();
        let (token, ttl, kind, seal) = (part()?, part()?, part()?, part()?);
        let token = token.parse().map(Token).ok().filter(|token| *token <= Token::LARGEST)?;
        let ttl = Duration::from_millis(ttl.parse().ok()?);
        let kind = [Kind::Job, Kind::Program].into_iter().find(|one| one.letter() == kind)?;
        let plain = seal.len() == SEAL && seal.bytes().all(|byte| byte.is_ascii_hexdigit());
        let fits = plain && (kind == Kind::Job || (SHORTEST..=LONGEST).contains(&ttl));
        let secret = (fits && part().is_none()).then(|| Self::new(token, ttl, kind, seal))?;
        // Numbers can be written in more than one way, and were granted in one.
        (secret.text() == text).then_some(secret)
    }

    /// As it is sent.
    #[must_use]
    pub fn text(&self) -> String {
        let Self { token, ttl, kind, seal } = self;
        format!("{token}.{}.{}.{seal}", ttl.as_millis(), kind.letter())
    }

    /// As what the store knows the holder.
    #[must_use]
    pub fn owner(&self) -> Owner {
        owner(self.ttl, self.kind, &self.seal)
    }

    /// The run that this grant is of a job.
    #[must_use]
    pub fn run(&self, name: &JobName) -> RunId {
        let sum = secrets::sha256_hex(&format!("{name}\n{}", self.text()));
        let random = u128::from_str_radix(&sum[..20], 16).unwrap_or_default();
        RunId(ulid::Ulid::from_parts(self.minted_ms(), random).to_string())
    }

    /// About when it was granted. Tokens grow with the clock of the store, so they say it to the millisecond unless that was set.
    #[must_use]
    pub fn since(&self, now: StoreTime, boot: soloist_domain::time::Boot) -> Began {
        let at = StoreTime(i64::try_from(self.minted_ms()).unwrap_or(now.0)).min(now);
        Began { boot: boot - now.since(at), at: Some(at) }
    }

    fn minted_ms(&self) -> u64 {
        self.token.0 / 1_024
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEALED: &str = "0123456789abcdef0123456789abcdef";

    #[test]
    fn a_secret_is_read_as_it_was_written_and_nothing_else_is_one() {
        let secret = Secret::new(Token(1_835_019), Duration::from_secs(5), Kind::Job, SEALED);
        let text = secret.text();
        assert_eq!(text, format!("1835019.5000.j.{SEALED}"));
        assert!(Secret::read(&text) == Some(secret));
        for bad in [
            "",
            "1.5000.j",
            &format!("{text}."),
            &format!("x.5000.j.{SEALED}"),
            &format!("9007199254740992.5000.j.{SEALED}"),
            &format!("1.5000.x.{SEALED}"),
            &format!("1.1.p.{SEALED}"),
            &format!("1.600001.p.{SEALED}"),
            &format!("1.5000.p.{}", &SEALED[1..]),
            &format!("1.5000.p.{}", SEALED.replace('0', "é")),
            &format!("+{text}"),
            &format!("0{text}"),
            &text.replace(".5000.", ".05000."),
        ] {
            assert!(Secret::read(bad).is_none(), "{bad}");
        }
    }

    #[test]
    fn owner_and_run_follow_from_the_secret_and_do_not_show_it() {
        let name = JobName::new("outbound").expect("a name");
        let one = Secret::new(Token(1_024), Duration::from_secs(5), Kind::Job, SEALED);
        assert!(!one.owner().0.contains(&SEALED[ACCOUNT..]));
        let account = account(&UserName::new("li").expect("a name"));
        let of_li = Secret { seal: seal(&account, SEALED), ..one.clone() };
        assert!(is_of(&of_li.owner(), &account) && is_of(&of_li.owner().kept_back(), &account));
        assert!(!is_of(&one.owner(), &account));
        assert_eq!(one.run(&name), Secret::read(&one.text()).expect("a secret").run(&name));
        let next = Secret { token: Token(2_048), ..one.clone() };
        assert!(one.run(&name) < next.run(&name), "runs sort by their grants");
        assert_eq!(one.owner(), next.owner());
    }

    #[test]
    fn a_secret_of_which_any_part_was_changed_is_that_of_another_holder_or_of_none() {
        let name = JobName::new("outbound").expect("a name");
        let secret = Secret::new(Token(1_835_019), Duration::from_secs(5), Kind::Job, SEALED);
        let (text, mut read) = (secret.text(), 0);
        for at in 0..text.len() {
            for put in "0189abfjpzF.+- ".chars() {
                let changed = format!("{}{put}{}", &text[..at], &text[at + 1..]);
                let longer = format!("{}{put}{}", &text[..at], &text[at..]);
                for other in [changed, longer].into_iter().filter(|other| *other != text) {
                    let Some(other) = Secret::read(&other) else { continue };
                    read += 1;
                    let same = other.owner() == secret.owner() && other.token == secret.token;
                    assert!(!same && other.run(&name) != secret.run(&name), "{}", other.text());
                }
            }
        }
        assert!(read > 200, "{read} of them can be read");
    }

    #[test]
    fn a_lease_that_was_forgotten_is_as_old_as_its_token() {
        let boot = soloist_domain::time::Boot(10_000_000_000);
        let secret = Secret::new(Token(7_000 * 1_024), Duration::from_secs(5), Kind::Job, SEALED);
        let began = secret.since(StoreTime(9_000), boot);
        assert_eq!(began.on(StoreTime(9_000), boot), StoreTime(7_000));
    }
}
