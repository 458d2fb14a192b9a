//! Pages; placeholders until the merge.
#[expect(missing_docs, reason = "a placeholder until the merge")]
pub mod audit;
#[expect(missing_docs, reason = "a placeholder until the merge")]
pub mod dashboard;
#[expect(missing_docs, reason = "a placeholder until the merge")]
pub mod error;
#[expect(missing_docs, reason = "a placeholder until the merge")]
pub mod job;
#[expect(missing_docs, reason = "a placeholder until the merge")]
pub mod login;
#[expect(missing_docs, reason = "a placeholder until the merge")]
pub mod nodes;
#[expect(missing_docs, reason = "a placeholder until the merge")]
pub mod preferences;
