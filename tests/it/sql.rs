//! What happens between a process and any SQL server, told once for all of them: `postgres` and `mysql` start the servers, and say how the
//! words differ.

pub(crate) mod clock;
pub(crate) mod cuts;
pub(crate) mod disk;
pub(crate) mod doctor;
pub(crate) mod doubted;
pub(crate) mod old;
pub(crate) mod promoted;
pub(crate) mod stopped;

/// The database of a URL.
pub(crate) fn name_of(url: &str) -> &str {
    url.rsplit('/').next().expect("its name")
}
