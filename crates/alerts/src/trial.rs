//! A test of a channel: one message, sent from here, and what the service answered.

use super::channel::{self, Kind, Message, Text};
use super::id_of_message;
use soloist_config::{Channel, Config};
use soloist_domain::time::StoreTime;
use soloist_store::Store;
use soloist_store::alerts::Alerts as _;
use soloist_view::alerts::Tested;
use soloist_view::words::{Language, iso, say};

/// Sends a test by `channel` in the name of `user` and waits for the answer. One that was taken ends the alert that the channel is lost.
pub async fn test(store: &Store, config: &Config, channel: &Channel, user: &str) -> Tested {
    let text = |lang| {
        let args = [("channel", channel.name.as_str().into()), ("user", user.into())];
        say(lang, "alert-test", &args)
    };
    let message = Message {
        id: id_of_message(),
        kind: Kind::Test,
        alert: "test".to_owned(),
        job: None,
        node: Some(config.node.to_string()),
        channel: None,
        since: iso(StoreTime(jiff::Timestamp::now().as_millisecond())),
        text: Text { en: text(Language::En), zh: text(Language::Zh) },
        url: config.public_url.clone(),
    };
    match channel::send(&channel.way, &message).await {
        Ok(said) => {
            if let Err(error) = store.channel_took(&channel.name).await {
                tracing::debug!(%error, "that a channel took a test is not noted");
            }
            Tested { ok: true, said }
        }
        Err(why) => Tested { ok: false, said: why.to_string() },
    }
}
