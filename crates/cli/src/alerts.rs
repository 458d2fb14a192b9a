//! Alerts: what is on and what was, muting one, testing a channel.

use std::time::Duration;

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::office::Office;
use super::output::{local, print, print_json, table};
use super::{Failure, ListArgs, duration};
use soloist_domain::time::{StoreTime, format_duration};
use soloist_remote::{Call, part};
use soloist_view::alerts::{AlertsView, ChannelView, Tested};
use soloist_view::millis;
use soloist_view::words::iso;

/// Longer than a channel has to answer.
const TEST_MAX: Duration = Duration::from_secs(30);

const NOTHING: &str = "\
The configuration tells nobody of anything. Write into it, on every node:

  [[alert]]
  when = \"wanted_not_running\"
  to = [\"ops\"]

  [channel.ops]
  kind = \"slack\"
  url = \"https://hooks.slack.com/services/...\"";

#[derive(Debug, Subcommand)]
#[expect(missing_docs, reason = "doc comments here are help texts")]
pub enum AlertCommand {
    /// Show what is on, the rules, the channels, and what was
    #[command(after_help = "--json gives the object of GET /api/v1/alerts.")]
    List(ListArgs),
    /// Keep an alert from speaking for a while
    #[command(after_help = "\
Example: soloist alert mute node_lost --for 2h --reason 'moving the rack'

What begins meanwhile is told afterwards, if it is still on then.")]
    Mute(MuteArgs),
    /// Let a muted alert speak again
    Unmute {
        /// Name of the alert, as `soloist alert list` shows it
        name: String,
        /// Who does it [default: the login name]
        #[arg(long, value_name = "NAME", env = "SOLOIST_USER")]
        user: Option<String>,
    },
    /// Send a test by a channel and say what its service answered; for admins
    #[command(after_help = "\
Exit code 0 when the message was taken, else 1. It goes out from this machine, with --server from the node.")]
    Test {
        /// Name of the channel, as `soloist alert list` shows it
        channel: String,
        /// Who does it [default: the login name]
        #[arg(long, value_name = "NAME", env = "SOLOIST_USER")]
        user: Option<String>,
    },
}

/// Arguments of `alert mute`.
#[derive(Debug, Args)]
pub struct MuteArgs {
    /// Name of the alert, as `soloist alert list` shows it
    pub name: String,
    /// For how long
    #[arg(long = "for", value_name = "DUR", value_parser = duration, required_unless_present = "until")]
    pub lasting: Option<Duration>,
    /// Until this instant (RFC 3339: 2026-05-04T18:00:00Z), instead
    #[arg(long, value_name = "INSTANT", value_parser = instant_of, conflicts_with = "lasting")]
    pub until: Option<StoreTime>,
    /// Why; kept in the audit
    #[arg(long, value_name = "TEXT")]
    pub reason: Option<String>,
    /// Who does it [default: the login name]
    #[arg(long, value_name = "NAME", env = "SOLOIST_USER")]
    pub user: Option<String>,
}

fn instant_of(text: &str) -> Result<StoreTime, String> {
    let at = text.parse::<jiff::Timestamp>();
    at.map(|at| StoreTime(at.as_millisecond()))
        .map_err(|_| "use RFC 3339, as in 2026-05-04T18:00:00Z".to_owned())
}

/// `alert ...`.
pub(super) async fn act(office: &Office, command: AlertCommand) -> Result<(), Failure> {
    match command {
        AlertCommand::List(args) => list(office, &args).await,
        AlertCommand::Mute(args) => mute(office, &args).await,
        AlertCommand::Unmute { name, user } => {
            put_mute(office, &name, json!({"until": null}), user.as_deref()).await?;
            print(&format!("{name} speaks again."))
        }
        AlertCommand::Test { channel, user } => {
            let call = Call::post(format!("/api/v1/channels/{}/test", part(&channel)));
            let acting = office.acting(user.as_deref()).await?;
            let tested: Tested = acting.ask(call.within(TEST_MAX)).await?;
            match tested.ok {
                true => print(&format!("{channel} took the test. It answered: {}", tested.said)),
                false => Err(Failure::Failed(format!(
                    "{channel} did not take the test: {}",
                    super::output::visible(&tested.said)
                ))),
            }
        }
    }
}

async fn mute(office: &Office, args: &MuteArgs) -> Result<(), Failure> {
    let MuteArgs { name, lasting, until, reason, user } = args;
    let body = match (lasting, until) {
        (Some(lasting), _) => json!({"for_ms": millis(*lasting), "reason": reason}),
        (None, Some(until)) => json!({"until": iso(*until), "reason": reason}),
        (None, None) => {
            return Err(Failure::Usage("say --for DUR or --until INSTANT".to_owned()));
        }
    };
    let all = put_mute(office, name, body, user.as_deref()).await?;
    let now = all.alerts.into_iter().find(|one| one.name == *name);
    match now.and_then(|one| one.muted_until) {
        Some(until) => print(&format!("{name} is mute until {}.", local(until))),
        None => print(&format!("{name} is mute no longer.")),
    }
}

/// Mutes an alert, or lets it speak again; all alerts after it.
async fn put_mute(
    office: &Office,
    alert: &str,
    body: Value,
    user: Option<&str>,
) -> Result<AlertsView, Failure> {
    let call = Call::put(format!("/api/v1/alerts/{}/mute", part(alert))).with(&body);
    office.acting(user).await?.ask(call).await
}

async fn list(office: &Office, args: &ListArgs) -> Result<(), Failure> {
    let all: AlertsView = office.get("/api/v1/alerts").await?;
    if args.json {
        return print_json(&all);
    }
    if all.alerts.is_empty() && all.channels.is_empty() {
        return print(NOTHING);
    }
    let on = on_rows(&all);
    match on.is_empty() {
        true => print("Nothing is on.")?,
        false => print(&table(&["ON SINCE", "ALERT", "WHAT"], &on))?,
    }
    print("")?;
    let rules: Vec<_> = all
        .alerts
        .iter()
        .map(|rule| {
            let lasting = format_duration(Duration::from_millis(rule.for_ms)).to_string();
            let muted = rule.muted_until.map_or_else(|| "-".to_owned(), local);
            vec![
                rule.name.clone(),
                rule.when.clone(),
                lasting,
                rule.jobs.join(", "),
                rule.to.join(", "),
                muted,
            ]
        })
        .collect();
    print(&table(&["ALERT", "WHEN", "FOR", "JOBS", "TELLS", "MUTE UNTIL"], &rules))?;
    print("")?;
    let channels: Vec<_> = all.channels.iter().map(channel_row).collect();
    print(&table(&["CHANNEL", "KIND", "LAST MESSAGE"], &channels))?;
    let past: Vec<_> = all
        .past
        .iter()
        .take(10)
        .map(|past| {
            vec![local(past.over), local(past.since), past.alert.clone(), past.text.clone()]
        })
        .collect();
    if past.is_empty() {
        return Ok(());
    }
    print("")?;
    print(&table(&["OVER", "ON SINCE", "ALERT", "WHAT"], &past))
}

fn on_rows(all: &AlertsView) -> Vec<Vec<String>> {
    let on = all.alerts.iter().flat_map(|rule| rule.on.iter().map(move |on| (rule, on)));
    on.map(|(rule, on)| {
        let mute = if on.muted { " (mute)" } else { "" };
        vec![local(on.since), format!("{}{mute}", rule.name), on.text.clone()]
    })
    .collect()
}

fn channel_row(channel: &ChannelView) -> Vec<String> {
    let last = match &channel.last {
        None => "none yet".to_owned(),
        Some(last) => match &last.error {
            Some(error) if !last.ok => format!("{} not taken: {error}", local(last.at)),
            _ => format!("{} taken", local(last.at)),
        },
    };
    vec![channel.name.clone(), channel.kind.clone(), last]
}
