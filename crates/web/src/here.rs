//! The handlers of the API without a network: for the command line, which asks them in its own process when it opens the store itself.
//!
//! [`open`] makes the same application as [`super::serve`], of the lines of the same table that are for programs, and hands calls to it as values. So a command is told the
//! same by a node and at the store. Nothing is kept true between two calls: before each the nodes and the jobs are read anew.
//!
//! Who calls is a `Person`: a value that only this file makes, and that it lays beside the request. The door takes it from there. What
//! comes over a connection is made of bytes, and no bytes become one.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;

use actix_http::Request;
use actix_service::{IntoServiceFactory as _, Service, ServiceFactory as _};
use actix_web::body::MessageBody;
use actix_web::dev::{AppConfig, Payload, ServiceResponse};
use actix_web::http::header::{self, HeaderValue};
use actix_web::http::{Method, Uri};
use actix_web::middleware::from_fn;
use actix_web::{App, Error, HttpMessage as _, web};
use tokio::sync::{mpsc, oneshot};

use super::auth::Caller;
use super::{BODY_MAX, Desks, Web, door, followed, routes};
use soloist_config::{Config, Current};
use soloist_desk::dispatch::ClaimDesk;
use soloist_desk::rotation::TurnDesk;
use soloist_desk::waiting::WaitingRoom;
use soloist_ops::Actor;
use soloist_process::telemetry::Metrics;
use soloist_remote::{Answered, Answering, Call, Client};
use soloist_store::Store;
use soloist_store::feed::{Feed, Looks};

/// Pieces of an answer that wait to be read.
const PIECES: usize = 4;

/// Whoever sits at the terminal that has this process.
#[derive(Debug, Clone)]
pub(super) struct Person(Arc<Actor>);

impl Person {
    /// As the door lets it in.
    pub(super) fn caller(&self) -> Caller {
        Caller::at_terminal(&self.0)
    }
}

/// A call, who makes it, and where its answer goes.
type Asked = (Call, Person, oneshot::Sender<Answered>);

/// Where calls go; cheap to clone.
#[derive(Debug, Clone)]
pub struct Here(mpsc::UnboundedSender<Asked>);

impl Here {
    /// A client whose calls `actor` makes.
    #[must_use]
    pub fn client(&self, actor: Actor) -> Client {
        let (calls, person) = (self.0.clone(), Person(Arc::new(actor)));
        Client::here(Answering::new(move |call| {
            let (answer, answered) = oneshot::channel();
            // When nobody answers any more, the caller sees it by that.
            calls.send((call, person.clone(), answer)).ok();
            answered
        }))
    }
}

/// Calls of the handlers on `store`, and the future that answers them, one after the other, for as long as there is a [`Here`]: whoever
/// makes a call drives it meanwhile.
///
/// # Panics
/// Outside a tokio runtime.
pub fn open(store: Store, config: Config) -> (Here, impl Future<Output = ()>) {
    let (calls, asked) = mpsc::unbounded_channel();
    let (feed, metrics) = (Feed::idle(), Metrics::global());
    let looks = feed.looks(store.clone(), followed(&config));
    // Nobody waits here, and pumps are for nodes.
    let room = WaitingRoom::shut(store.clone(), &config.node);
    let work = ClaimDesk::start(room.clone(), Arc::clone(&metrics));
    let turns = TurnDesk::start(room.clone(), Arc::clone(&metrics));
    let web = Web::new(store, feed, Current::new(config), metrics, Desks { room, work, turns });
    (Here(calls), answer_all(web, looks, asked))
}

async fn answer_all(web: Web, mut looks: Looks, mut asked: mpsc::UnboundedReceiver<Asked>) {
    // Not every command makes a call.
    let mut next = asked.recv().await;
    let app = App::new()
        .app_data(web::Data::new(web.clone()))
        .app_data(web::PayloadConfig::new(BODY_MAX))
        .wrap(from_fn(door::door))
        .configure(routes::mount_api);
    let Ok(app) = app.into_factory().new_service(AppConfig::default()).await else { return };
    while let Some((call, person, answer)) = next {
        looks.look().await;
        web.live.read_now().await;
        answer_one(&app, call, person, answer).await;
        next = asked.recv().await;
    }
}

async fn answer_one<S, B>(app: &S, call: Call, person: Person, answer: oneshot::Sender<Answered>)
where
    S: Service<Request, Response = ServiceResponse<B>, Error = Error>,
    B: MessageBody,
{
    let Some(request) = request(call, person) else { return };
    let response = match app.call(request).await {
        Ok(response) => response,
        Err(error) => {
            tracing::error!(%error, "a call was not answered");
            return;
        }
    };
    let (pieces, body) = mpsc::channel(PIECES);
    let status = response.status().as_u16();
    if answer.send(Answered { status, body }).is_err() {
        return;
    }
    let mut body = pin!(response.into_body());
    while let Some(piece) = poll_fn(|context| body.as_mut().poll_next(context)).await {
        let piece = piece.map(|bytes| bytes.to_vec());
        let piece = piece.map_err(|error| format!("the answer broke off: {}", error.into()));
        // Whoever asked reads no more.
        if pieces.send(piece).await.is_err() {
            return;
        }
    }
}

/// The request that `call` is; `None`: its address is none.
fn request(call: Call, person: Person) -> Option<Request> {
    let (method, path, accept) = call.head();
    let mut request = Request::new();
    let head = request.head_mut();
    head.method = Method::from_bytes(method.as_bytes()).ok()?;
    head.uri = path.parse::<Uri>().ok()?;
    head.headers.insert(header::ACCEPT, HeaderValue::from_static(accept));
    if let Some(body) = call.into_body() {
        head.headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        request = request.replace_payload(Payload::from(body)).0;
    }
    request.extensions_mut().insert(person);
    Some(request)
}
