//! Sends one message by one channel, once, in the shape that the service documents, and returns the service's answer.
//!
//! `sender` decides whether to send again. Errors are reported without addresses: most contain a key.
//!
//! - webhook: Standard Webhooks 1.0.0, symmetric signatures
//! - wecom, dingtalk, feishu: messages of type `text` to a bot of a group; DingTalk signs in the query, Feishu in the body
//! - slack: incoming webhooks

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use reqwest::{Client, RequestBuilder};
use serde::Serialize;
use serde_json::{Value, json};
use sha2::Sha256;
use url::{Host, Url};

use soloist_config::{Secret, Way};
use soloist_remote::http;
use soloist_view::undelivered::{Trouble, Undelivered};

/// What a service answered, or why it did not take the message.
pub type Result<T> = std::result::Result<T, Undelivered>;

/// A service that is slower is not there.
pub(super) const PATIENCE: Duration = Duration::from_secs(10);
/// More of an answer is not read.
const ANSWER_MAX: usize = 16 * 1024;
/// More of it is not shown.
const SHOWN: usize = 200;

/// What a message is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Kind {
    /// Something needs somebody.
    #[serde(rename = "alert.begin")]
    Begin,
    /// It does not any more.
    #[serde(rename = "alert.end")]
    End,
    /// Somebody tries the channel.
    #[serde(rename = "alert.test")]
    Test,
}

/// The same in both languages.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Text {
    /// English.
    pub en: String,
    /// Chinese.
    pub zh: String,
}

/// A message, as webhooks get it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Message {
    /// The same in each attempt.
    #[serde(skip)]
    pub id: String,
    /// What it is.
    #[serde(rename = "type")]
    pub kind: Kind,
    /// The name of the rule.
    pub alert: String,
    /// Of which job, if of one.
    pub job: Option<String>,
    /// Of which node, if of one.
    pub node: Option<String>,
    /// Of which channel, if of one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub channel: Option<String>,
    /// Since when, RFC 3339.
    pub since: String,
    /// For people.
    pub text: Text,
    /// The page about it.
    pub url: String,
}

impl Message {
    /// One text for a room of people, in both languages.
    pub(super) fn both(&self, chinese_first: bool) -> String {
        let Text { en, zh } = &self.text;
        match chinese_first {
            true => format!("{zh}\n{en}\n{}", self.url),
            false => format!("{en}\n{zh}\n{}", self.url),
        }
    }
}

/// What a service says of itself in its answer.
type Judge = fn(&Value) -> Verdict;

/// It took the message, or this is its code for why not.
type Verdict = std::result::Result<(), Option<String>>;

/// Sends it; `Ok` says what the service answered.
///
/// # Errors
/// What was in the way, for people.
pub async fn send(way: &Way, message: &Message) -> Result<String> {
    let now = jiff::Timestamp::now();
    let (request, judge): (RequestBuilder, Judge) = match way {
        Way::Webhook { url, key } => {
            let body = serde_json::to_string(message).map_err(other)?;
            let timestamp = now.as_second().to_string();
            let signed = format!("{}.{timestamp}.{body}", message.id);
            let request = post(url.reveal())?
                .header("content-type", "application/json")
                .header("webhook-id", &message.id)
                .header("webhook-timestamp", timestamp)
                .header("webhook-signature", format!("v1,{}", sign(key, signed.as_bytes())))
                .body(body);
            (request, |_| Ok(()))
        }
        Way::Wecom { url } => {
            let body = json!({"msgtype": "text", "text": {"content": message.both(true)}});
            (as_json(url.reveal(), &body)?, |answer| judged(answer, &["errcode"]))
        }
        Way::Dingtalk { url, secret } => {
            let mut url = Url::parse(url.reveal()).map_err(other)?;
            if let Some(secret) = secret {
                let timestamp = now.as_millisecond();
                let signed = format!("{timestamp}\n{}", secret.reveal());
                let sign = sign(secret.reveal().as_bytes(), signed.as_bytes());
                url.query_pairs_mut()
                    .append_pair("timestamp", &timestamp.to_string())
                    .append_pair("sign", &sign);
            }
            let body = json!({"msgtype": "text", "text": {"content": message.both(true)}});
            (as_json(url.as_str(), &body)?, |answer| judged(answer, &["errcode"]))
        }
        Way::Feishu { url, secret } => {
            let mut body = json!({"msg_type": "text", "content": {"text": message.both(true)}});
            if let Some(secret) = secret {
                let timestamp = now.as_second().to_string();
                let key = format!("{timestamp}\n{}", secret.reveal());
                body["sign"] = sign(key.as_bytes(), b"").into();
                body["timestamp"] = timestamp.into();
            }
            (as_json(url.reveal(), &body)?, |answer| judged(answer, &["code", "StatusCode"]))
        }
        Way::Slack { url } => {
            (as_json(url.reveal(), &json!({"text": message.both(false)}))?, |_| Ok(()))
        }
        #[cfg(feature = "mail")]
        Way::Mail { url, from, to } => {
            return super::mail::send(url.reveal(), from, to, message).await;
        }
        #[cfg(not(feature = "mail"))]
        Way::Mail { .. } => {
            return Err(other(soloist_process::parts::MAIL.missing().unwrap_or_default()));
        }
    };
    ask(request, judge).await
}

/// Zero under one of these keys is a yes.
fn judged(answer: &Value, keys: &[&str]) -> Verdict {
    let codes = || keys.iter().map(|key| &answer[*key]).filter(|code| !code.is_null());
    if codes().any(|code| *code == 0) {
        return Ok(());
    }
    Err(codes().find_map(|code| Some(code.as_i64()?.to_string())))
}

pub(super) fn other(error: impl std::fmt::Display) -> Undelivered {
    Undelivered::other(error.to_string())
}

/// HMAC-SHA256 in base64.
fn sign(key: &[u8], text: &[u8]) -> String {
    match Hmac::<Sha256>::new_from_slice(key) {
        Ok(mut mac) => {
            mac.update(text);
            STANDARD.encode(mac.finalize().into_bytes())
        }
        // HMAC takes keys of any length.
        Err(_) => String::new(),
    }
}

/// Whether an address leads to this machine.
pub(super) fn is_here(url: &Url) -> bool {
    match url.host() {
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        Some(Host::Domain(name)) => name == "localhost" || name == "127.0.0.1",
        None => false,
    }
}

/// Calls an address that wants nothing but to be called; `Ok` says what it answered.
///
/// # Errors
/// What was in the way, without the address.
pub(super) async fn call(url: &Secret) -> Result<String> {
    let url = Url::parse(url.reveal()).map_err(other)?;
    ask(client(&url)?.get(url), |_| Ok(())).await
}

fn client(url: &Url) -> Result<Client> {
    let mut client =
        http::client().timeout(PATIENCE).connect_timeout(PATIENCE).pool_max_idle_per_host(0);
    if is_here(url) {
        client = client.no_proxy();
    }
    client.build().map_err(other)
}

fn post(url: &str) -> Result<RequestBuilder> {
    let url = Url::parse(url).map_err(other)?;
    Ok(client(&url)?.post(url))
}

fn as_json(url: &str, body: &Value) -> Result<RequestBuilder> {
    Ok(post(url)?.header("content-type", "application/json").body(body.to_string()))
}

/// Of which kind an error of the network is. Libraries wrap the cause several times; what they agree on is the text of the system,
/// of rustls and of HTTP.
pub(super) fn kind(timed_out: bool, said: &str) -> Trouble {
    let said = said.to_ascii_lowercase();
    let any = |texts: &[&str]| texts.iter().any(|text| said.contains(text));
    if timed_out || any(&["timed out", "timeout"]) {
        Trouble::TimedOut
    } else if any(&["connection refused"]) {
        Trouble::Refused
    } else if any(&["dns error", "failed to lookup address"]) {
        Trouble::UnknownName
    } else if any(&["certificate", "tls", "handshake", "corrupt message"]) {
        Trouble::Untrusted
    } else if any(&["connection reset", "broken pipe", "before message completed", "closed", "eof"])
    {
        Trouble::BrokenOff
    } else {
        Trouble::Other
    }
}

async fn ask(request: RequestBuilder, judge: Judge) -> Result<String> {
    let why = |error: reqwest::Error| {
        let error = error.without_url();
        let mut said = error.to_string();
        let mut cause = std::error::Error::source(&error);
        while let Some(deeper) = cause {
            said = format!("{said}: {deeper}");
            cause = deeper.source();
        }
        Undelivered { trouble: kind(error.is_timeout(), &said), said }
    };
    let mut response = request.send().await.map_err(why)?;
    let status = response.status();
    let mut body = Vec::new();
    while let Some(piece) = response.chunk().await.map_err(why)? {
        if body.len() + piece.len() > ANSWER_MAX {
            break;
        }
        body.extend_from_slice(&piece);
    }
    let text = String::from_utf8_lossy(&body);
    let shown: String = text.chars().filter(|c| !c.is_control()).take(SHOWN).collect();
    let said = format!("{status} {shown}").trim_end().to_owned();
    let answer = serde_json::from_slice(&body).unwrap_or(Value::Null);
    let trouble = match (status.is_success(), judge(&answer)) {
        (true, Ok(())) => return Ok(said),
        (false, _) => Trouble::Status(status.as_u16().to_string()),
        (true, Err(Some(code))) => Trouble::Code(code),
        (true, Err(None)) => Trouble::Other,
    };
    Err(Undelivered { trouble, said })
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;

    use super::{STANDARD, kind, sign};
    use soloist_view::undelivered::Trouble;

    /// The example of the specification of Standard Webhooks.
    #[test]
    fn a_signature_is_that_of_the_specification() {
        let key = STANDARD.decode("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap();
        let text = br#"msg_p5jXN8AQM9LWM0D4loKWxJek.1614265330.{"test": 2432232314}"#;
        assert_eq!(sign(&key, text), "g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    }

    #[test]
    fn an_error_of_the_network_is_of_the_kind_that_its_text_says() {
        let sent = "error sending request: client error (Connect): ";
        for (text, trouble) in [
            ("tcp connect error: Connection refused (os error 111)", Trouble::Refused),
            ("dns error: failed to lookup address information: Name or", Trouble::UnknownName),
            ("invalid peer certificate: UnknownIssuer", Trouble::Untrusted),
            ("received corrupt message of type InvalidContentType", Trouble::Untrusted),
            ("connection closed before message completed", Trouble::BrokenOff),
            ("Connection reset by peer (os error 104)", Trouble::BrokenOff),
            ("operation timed out", Trouble::TimedOut),
            ("something else", Trouble::Other),
        ] {
            assert_eq!(kind(false, &format!("{sent}{text}")), trouble, "{text}");
        }
        assert_eq!(kind(true, sent), Trouble::TimedOut);
    }
}
