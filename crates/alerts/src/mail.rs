//! Alerts by mail: plain text in both languages, over TLS. Without TLS only to a server on this machine.

use lettre::message::header::ContentType;
use lettre::message::{Mailbox, Message as Mail};
use lettre::{AsyncSmtpTransport, AsyncTransport as _, Tokio1Executor};
use url::Url;

use super::channel::{Kind, Message, PATIENCE, Result, is_here, kind, other};
use soloist_view::undelivered::{Trouble, Undelivered};

/// More of the first sentence is no subject.
const SUBJECT: usize = 100;

/// Sends it; the id of the message is in its `Message-ID`.
pub(super) async fn send(
    url: &str,
    from: &str,
    to: &[String],
    message: &Message,
) -> Result<String> {
    let parsed = Url::parse(url).map_err(other)?;
    let url = match parsed.scheme() == "smtp" && !is_here(&parsed) {
        true => format!("{url}?tls=required"),
        false => url.to_owned(),
    };
    let mut mail = Mail::builder()
        .from(mailbox(from)?)
        .subject(subject(message))
        .message_id(Some(format!("<{}@soloist>", message.id)));
    for one in to {
        mail = mail.to(mailbox(one)?);
    }
    let mail = mail.header(ContentType::TEXT_PLAIN).body(message.both(false)).map_err(other)?;
    let server = AsyncSmtpTransport::<Tokio1Executor>::from_url(&url)
        .map_err(other)?
        .timeout(Some(PATIENCE))
        .build::<Tokio1Executor>();
    // The time-out is that of one command.
    let sending = tokio::time::timeout(PATIENCE * 3, server.send(mail));
    match sending.await {
        Ok(Ok(answer)) => Ok(format!("{} {}", answer.code(), answer.first_line().unwrap_or(""))
            .trim_end()
            .to_owned()),
        Ok(Err(error)) => {
            let said = error.to_string();
            let trouble = match error.status() {
                Some(code) => Trouble::Code(code.to_string()),
                None => kind(error.is_timeout(), &said),
            };
            Err(Undelivered { trouble, said })
        }
        Err(_) => {
            let said = "the mail server does not answer in time".to_owned();
            Err(Undelivered { trouble: Trouble::TimedOut, said })
        }
    }
}

fn mailbox(text: &str) -> Result<Mailbox> {
    text.parse().map_err(other)
}

fn subject(message: &Message) -> String {
    let about = message.job.as_deref().or(message.node.as_deref());
    let mark = match message.kind {
        Kind::Begin => "!",
        Kind::End => "✓",
        Kind::Test => "?",
    };
    let subject = match about {
        Some(about) => format!("[Soloist {mark}] {}: {about}", message.alert),
        None => format!("[Soloist {mark}] {}", message.alert),
    };
    subject.chars().take(SUBJECT).collect()
}
