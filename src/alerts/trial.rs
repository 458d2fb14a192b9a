//! A test of a channel: one message, sent from here, and what the service answered.

use super::channel::{self, Kind, Message, Text};
use super::id_of_message;
use crate::config::{Channel, Config};
use crate::domain::time::StoreTime;
use crate::view::alerts::Tested;
use crate::words::{Language, iso, say};

/// Sends a test by `channel` in the name of `user` and waits for the answer.
pub(crate) async fn test(config: &Config, channel: &Channel, user: &str) -> Tested {
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
        since: iso(StoreTime(jiff::Timestamp::now().as_millisecond())),
        text: Text { en: text(Language::En), zh: text(Language::Zh) },
        url: config.public_url.clone(),
    };
    match channel::send(&channel.way, &message).await {
        Ok(said) => Tested { ok: true, said },
        Err(why) => Tested { ok: false, said: why.to_string() },
    }
}
