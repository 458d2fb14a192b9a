//! Placeholder until the merge.
#![expect(missing_docs, reason = "a placeholder until the merge")]
use crate::picture::JobView;
use crate::words::Language;
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RowViewer {
    pub mine: bool,
    pub last: bool,
    pub may_switch: bool,
}
pub fn job_row(job: &JobView, _viewer: RowViewer, _lang: Language, csrf: &str) -> String {
    format!("<li data-job=\"{}\" data-csrf=\"{csrf}\">{}</li>", job.name, job.state)
}
pub fn job_head(job: &JobView, viewer: RowViewer, lang: Language, csrf: &str) -> String {
    job_row(job, viewer, lang, csrf)
}
pub fn summary(jobs: &[JobView], _lang: Language) -> String {
    format!("{} jobs", jobs.len())
}
