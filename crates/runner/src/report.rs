//! The reports of one run to the journal: collected, and written in the order of the events.
//!
//! A slow store makes reports larger, never their queue longer; a store that forgot the run gets all of it again.

use std::collections::VecDeque;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::timeout;

use super::keeper::Told;
use super::spec::Spec;
use soloist_domain::job::Progress;
use soloist_domain::time::{Began, Boot, StoreTime};
use soloist_process::clock;
use soloist_store::journal::{Journal, LOG_LINES, NewLine, Output, Started, Stream};
use soloist_store::{Store, StoreError};

/// How long the end of a run waits for its last output to be stored.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// How often the store learns that a run writes without a whole line.
const HEARD_EVERY: Duration = Duration::from_secs(1);

enum Report {
    Started(Started),
    Stopping(Duration),
    Output(Output),
}

/// Gathers what happened and writes it to the journal in order, in a task of its own.
pub(super) struct Reporter {
    reports: mpsc::UnboundedSender<Report>,
    /// One permit per output report under way: a slow store makes batches larger, never the queue longer.
    done: mpsc::Receiver<()>,
    busy: bool,
    task: tokio::task::JoinHandle<()>,
    lines: VecDeque<NewLine>,
    left_out: u64,
    /// It wrote what is no line yet: not reported yet, and when it was for the last time.
    heard: bool,
    heard_at: Option<Boot>,
    /// Not reported yet.
    progress: Option<Progress>,
    /// The newest.
    shown: Option<Progress>,
    /// Pid of the script, and when it started.
    script: Option<(u32, Boot)>,
    /// The same instant as the store said it.
    said: Arc<OnceLock<StoreTime>>,
    /// When the script is killed that was told to stop.
    kill_at: Option<Boot>,
    blank: Output,
}

impl Reporter {
    pub(super) fn start(store: Store, spec: &Spec, told: Told) -> Self {
        let (reports, inbox) = mpsc::unbounded_channel();
        let (done_tx, done) = mpsc::channel(1);
        let blank = Output {
            job: spec.job.clone(),
            token: spec.token,
            run: spec.run.clone(),
            node: spec.program.node.clone(),
            lines: Vec::new(),
            progress: None,
            heard: false,
        };
        let said = Arc::new(OnceLock::new());
        let write = write_reports(store, blank.clone(), inbox, done_tx, Arc::clone(&said), told);
        let task = tokio::spawn(write);
        Self {
            reports,
            done,
            busy: false,
            task,
            lines: VecDeque::new(),
            left_out: 0,
            heard: false,
            heard_at: None,
            progress: None,
            shown: None,
            script: None,
            said,
            kill_at: None,
            blank,
        }
    }

    fn send(&self, report: Report) {
        // The task ends early only when a newer token exists: then nothing may be written any more.
        drop(self.reports.send(report));
    }

    pub(super) fn started(&mut self, pid: u32) {
        self.script = Some((pid, clock::boot()));
        self.report_started();
    }

    fn report_started(&self) {
        let (Some((pid, _)), Some(began)) = (self.script, self.began()) else { return };
        let Output { job, token, run, node, .. } = self.blank.clone();
        self.send(Report::Started(Started { job, token, run, node, pid, began }));
    }

    fn began(&self) -> Option<Began> {
        self.script.map(|(_, boot)| Began { boot, at: self.said.get().copied() })
    }

    pub(super) fn stopping(&mut self, grace: Duration) {
        self.kill_at = Some(clock::boot() + grace);
        self.send(Report::Stopping(grace));
    }

    pub(super) fn progress(&mut self, progress: Progress) {
        self.shown = Some(progress.clone());
        self.progress = Some(progress);
    }

    /// It wrote something that is no line yet.
    pub(super) fn heard(&mut self) {
        let now = clock::boot();
        if self.heard_at.is_none_or(|at| now.since(at) >= HEARD_EVERY) {
            (self.heard, self.heard_at) = (true, Some(now));
        }
    }

    /// The store forgot the run: everything that it shows of it is said once more.
    pub(super) fn again(&mut self) {
        self.report_started();
        if let Some(kill_at) = self.kill_at {
            self.send(Report::Stopping(kill_at.since(clock::boot())));
        }
        if self.script.is_some() && self.progress.is_none() {
            self.progress.clone_from(&self.shown);
        }
    }

    pub(super) fn remark(&mut self, text: String) {
        tracing::warn!(job = %self.blank.job, "{text}");
        self.line(NewLine { stream: Stream::Soloist, text });
    }

    pub(super) fn line(&mut self, line: NewLine) {
        if self.lines.len() >= LOG_LINES {
            self.lines.pop_front();
            self.left_out += 1;
        }
        self.lines.push_back(line);
    }

    pub(super) fn flush(&mut self, even_if_empty: bool) {
        if self.done.try_recv().is_ok() {
            self.busy = false;
        }
        let nothing = self.lines.is_empty() && self.progress.is_none() && !self.heard;
        if !even_if_empty && (self.busy || nothing) {
            return;
        }
        if self.left_out > 0 {
            let text = format!(
                "{} lines were left out: they came faster than they can be kept",
                self.left_out
            );
            self.left_out = 0;
            self.lines.push_front(NewLine { stream: Stream::Soloist, text });
        }
        let lines = self.lines.drain(..).collect();
        let (progress, heard) = (self.progress.take(), std::mem::take(&mut self.heard));
        let output = Output { lines, progress, heard, ..self.blank.clone() };
        self.busy = true;
        self.send(Report::Output(output));
    }

    /// Waits until what is left is written; returns when the script started.
    pub(super) async fn finish(mut self) -> Option<Began> {
        if !self.lines.is_empty() || self.progress.is_some() {
            self.flush(true);
        }
        drop(self.reports);
        if timeout(LAST_WORDS, &mut self.task).await.is_err() {
            self.task.abort();
            tracing::warn!(job = %self.blank.job, "the last output could not be stored in time");
        }
        self.script.map(|(_, boot)| Began { boot, at: self.said.get().copied() })
    }
}

async fn write_reports(
    store: Store,
    blank: Output,
    mut inbox: mpsc::UnboundedReceiver<Report>,
    done: mpsc::Sender<()>,
    said: Arc<OnceLock<StoreTime>>,
    told: Told,
) {
    while let Some(report) = inbox.recv().await {
        loop {
            let result = match &report {
                Report::Started(started) => store.record_started(started).await.map(|at| {
                    said.get_or_init(|| at);
                    told.reported(&started.run);
                }),
                Report::Stopping(grace) => {
                    store.record_stopping(&blank.job, blank.token, *grace).await
                }
                Report::Output(output) => store.record_output(output).await,
            };
            match result {
                Ok(()) => break,
                Err(StoreError::Unavailable(_)) => {
                    tokio::time::sleep(Duration::from_millis(200)).await;
                }
                Err(error) => {
                    tracing::warn!(job = %blank.job, %error, "a report was refused");
                    return;
                }
            }
        }
        if matches!(report, Report::Output(_)) {
            // Full means that the run has not looked yet; one permit is enough.
            done.try_send(()).ok();
        }
    }
}
