//! The tabs of a job: its page, its configuration, what was done to it. Each is an address of its own.

use askama::Template;

use soloist_config::JobConfig;
use soloist_view::words::{Language, say};

/// The line of tabs.
#[derive(Template)]
#[template(path = "parts/job_tabs.html")]
pub(in crate::pages) struct Tabs {
    pub(in crate::pages) title: String,
    pub(in crate::pages) name: String,
    here: &'static str,
    lang: Language,
}

impl Tabs {
    /// The tabs of `job`; `here` is `now`, `configuration` or `audit`.
    pub(in crate::pages) fn new(job: &JobConfig, here: &'static str, lang: Language) -> Self {
        let title = match lang {
            Language::En => &job.title.en,
            Language::Zh => &job.title.zh,
        };
        Self::of(job.name.as_str(), title, here, lang)
    }

    pub(in crate::pages) fn of(
        name: &str,
        title: &str,
        here: &'static str,
        lang: Language,
    ) -> Self {
        Self { title: title.to_owned(), name: name.to_owned(), here, lang }
    }

    fn tabs(&self) -> [(String, String, bool); 3] {
        let path = format!("/jobs/{}", self.name);
        [
            ("now", "job-tab-now", path.clone()),
            ("configuration", "job-tab-configuration", format!("{path}/configuration")),
            ("audit", "job-tab-audit", format!("{path}/audit")),
        ]
        .map(|(tab, id, address)| (address, say(self.lang, id, &[]), tab == self.here))
    }

    fn label(&self) -> String {
        say(self.lang, "job-tabs", &[])
    }
}
