//! The start of a connection, and the task that moves its bytes.

use std::time::Duration;

use tokio::sync::mpsc;
use tokio_postgres::NoTls;

use super::place::Place;
use super::session::Conn;
use crate::sql::fault::{Fault, Outcome};

/// A lock of a transaction that is sent as a whole is held for milliseconds.
const LOCK_TIMEOUT: Duration = Duration::from_millis(900);

/// What the server says without being asked.
pub(super) type Heard = mpsc::UnboundedReceiver<tokio_postgres::Notification>;

/// A new connection, set up for our statements; its own task moves the bytes, and ends with it.
pub(super) async fn connect(
    place: &Place,
    timeout: Duration,
    called: &str,
) -> Outcome<(Conn, Heard)> {
    let called = if called.is_empty() { "soloist" } else { called };
    let connecting = async {
        let (heard, hears) = mpsc::unbounded_channel();
        let client = match &place.tls {
            Some(tls) => {
                let (client, connection) = place.config.connect(tls.clone()).await?;
                tokio::spawn(pump(connection, heard));
                client
            }
            None => {
                let (client, connection) = place.config.connect(NoTls).await?;
                tokio::spawn(pump(connection, heard));
                client
            }
        };
        client.batch_execute(&settings(place, timeout, called)).await?;
        Ok((Conn::new(client), hears))
    };
    let late = || Fault::Broken(format!("no connection within {timeout:?}"));
    tokio::time::timeout(timeout, connecting).await.unwrap_or_else(|_| Err(late()))
}

/// `SET` and no start-up parameter, which a pooler would refuse in words that do not help.
///
/// What is asked often finds its rows by an index. So each statement is planned once for all values, and by an index also while the tables are
/// still empty: to plan it for each set of values costs as much as to carry it out. A few calls read a whole table; they stay right without
/// sequential scans, and `jit` is off because these look too dear to the planner then.
fn settings(place: &Place, timeout: Duration, called: &str) -> String {
    let lock = LOCK_TIMEOUT.min(timeout / 2).as_millis().max(1);
    format!(
        "SET search_path = \"{}\"; SET application_name = '{called}'; SET statement_timeout = {}; SET lock_timeout = {lock}; \
         SET idle_in_transaction_session_timeout = 1000; SET client_min_messages = warning; \
         SET default_transaction_isolation = 'read committed'; \
         SET plan_cache_mode = force_generic_plan; SET enable_seqscan = off; SET jit = off; \
         SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'; \
         SELECT set_config('soloist.system', system_identifier::text, false) FROM pg_control_system()",
        place.schema,
        timeout.as_millis().max(1),
    )
}

async fn pump<S, T>(
    mut connection: tokio_postgres::Connection<S, T>,
    heard: mpsc::UnboundedSender<tokio_postgres::Notification>,
) where
    S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin,
    T: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin,
{
    loop {
        let message = std::future::poll_fn(|context| connection.poll_message(context)).await;
        match message {
            Some(Ok(tokio_postgres::AsyncMessage::Notification(said))) => {
                // Only the listener listens.
                drop(heard.send(said));
            }
            Some(Ok(_)) => {}
            Some(Err(error)) => {
                tracing::debug!(%error, "a connection to PostgreSQL has ended");
                return;
            }
            None => return,
        }
    }
}
