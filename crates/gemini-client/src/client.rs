//! The client and its calls.

use std::fmt;
use std::sync::Arc;

use tokio::sync::OnceCell;

use crate::answer::{self, Answer};
use crate::builder::ClientBuilder;
use crate::error::{Error, ErrorKind};
use crate::exchange::{Call, Exchange, Reply};
use crate::failure::Failure;
use crate::key::Keys;
use crate::model::{self, Model};
use crate::progress::{Progress, Watch};
use crate::request::{Request, model_id};
use crate::thinking;
use crate::wire::{self, Chunk};

/// The most pages of models that are read; the real list has one.
const MOST_PAGES: usize = 50;

/// A client for the Gemini API.
///
/// Clones are cheap and share everything: connections, the list of models, the place of the last
/// good key, and what was learned about quotas and thinking settings. Calls of one client that use
/// the same key take turns.
///
/// A call is cancelled by dropping its future; that closes its connection, and nothing goes on in
/// the background.
#[derive(Clone)]
pub struct Client(Arc<Inner>);

struct Inner {
    exchange: Exchange,
    models: OnceCell<Vec<Model>>,
}

impl Client {
    /// Begins a client that uses these keys.
    pub fn builder(keys: Keys) -> ClientBuilder {
        ClientBuilder::new(keys)
    }

    pub(crate) fn of(exchange: Exchange) -> Self {
        Self(Arc::new(Inner {
            exchange,
            models: OnceCell::new(),
        }))
    }

    /// The models that take text and answer with text, as the server lists them.
    ///
    /// The list is fetched once and then kept as long as the client or one of its clones.
    ///
    /// # Errors
    /// As for [`generate`](Self::generate), as far as it concerns keys, server and network;
    /// [`ErrorKind::Malformed`] when the reply is no list. A failure is not kept.
    pub async fn models(&self) -> Result<Vec<Model>, Error> {
        self.listed().await.map(<[Model]>::to_vec)
    }

    /// The listed model of this id, which may have `models/` before it.
    ///
    /// # Errors
    /// [`ErrorKind::ModelUnknown`] with the three closest ids when it is not listed, and as for
    /// [`models`](Self::models).
    pub async fn check_model(&self, id: &str) -> Result<Model, Error> {
        let id = model_id(id)?;
        let models = self.listed().await?;
        let shown = self.0.exchange.scrub.line(id);
        model::find(models, id)
            .cloned()
            .ok_or_else(|| model::unknown(models, id, &shown))
    }

    /// Asks for a text and waits for all of it.
    ///
    /// The server is silent until the model is done, so only the deadline limits that. For long
    /// answers prefer [`generate_stream`](Self::generate_stream), which notices sooner that a
    /// server stopped half-way.
    ///
    /// # Errors
    /// See [`ErrorKind`] for what each kind means. Keys, network and server:
    /// [`InvalidKey`](ErrorKind::InvalidKey), [`Forbidden`](ErrorKind::Forbidden),
    /// [`Quota`](ErrorKind::Quota), [`Overloaded`](ErrorKind::Overloaded),
    /// [`Server`](ErrorKind::Server), [`Network`](ErrorKind::Network),
    /// [`Deadline`](ErrorKind::Deadline). The request:
    /// [`InvalidRequest`](ErrorKind::InvalidRequest), [`ModelUnknown`](ErrorKind::ModelUnknown),
    /// [`SchemaTooComplex`](ErrorKind::SchemaTooComplex),
    /// [`InputTooLong`](ErrorKind::InputTooLong). The answer: [`Blocked`](ErrorKind::Blocked),
    /// [`Truncated`](ErrorKind::Truncated), [`Stopped`](ErrorKind::Stopped),
    /// [`Empty`](ErrorKind::Empty), [`Malformed`](ErrorKind::Malformed),
    /// [`TooLarge`](ErrorKind::TooLarge). An answer that cannot be used is not asked for again,
    /// because it was paid for and would be again.
    pub async fn generate(&self, request: &Request) -> Result<Answer, Error> {
        self.answer(request, false, &mut |_| {}).await
    }

    /// Asks for a text and tells how it comes in.
    ///
    /// The answer is the same as [`generate`](Self::generate)'s. When an attempt fails half-way,
    /// what it brought is thrown away and the next one begins with the same request.
    ///
    /// # Errors
    /// As for [`generate`](Self::generate); [`ErrorKind::Network`] also when a stream that has
    /// begun falls silent for longer than the idle timeout, or ends before the answer does.
    pub async fn generate_stream(
        &self,
        request: &Request,
        progress: &mut (dyn FnMut(Progress) + Send),
    ) -> Result<Answer, Error> {
        self.answer(request, true, progress).await
    }

    /// Counts the tokens of the whole request, system instruction and schema included.
    ///
    /// # Errors
    /// As for [`generate`](Self::generate), as far as it concerns keys, server, network and
    /// request; [`ErrorKind::Malformed`] when the reply holds no count.
    pub async fn count_tokens(&self, request: &Request) -> Result<u64, Error> {
        let id = request.model_id()?;
        let body = |_| wire::count_body(id, request);
        let reply = self
            .run(&Call {
                path: format!("models/{id}:countTokens"),
                query: Vec::new(),
                body: Some(&body),
                thinking: None,
                stream: false,
            })
            .await?;
        let count = reply.documents.first().and_then(wire::token_count);
        count.ok_or_else(|| Error::new(ErrorKind::Malformed, "Gemini's reply holds no token count"))
    }

    async fn answer(
        &self,
        request: &Request,
        stream: bool,
        progress: &mut (dyn FnMut(Progress) + Send),
    ) -> Result<Answer, Error> {
        let id = request.model_id()?;
        let body = |thinking| wire::generate_body(request, thinking);
        let call = Call {
            path: format!(
                "models/{id}:{}",
                if stream {
                    "streamGenerateContent"
                } else {
                    "generateContent"
                }
            ),
            query: if stream {
                vec![("alt", "sse".to_owned())]
            } else {
                Vec::new()
            },
            body: Some(&body),
            thinking: thinking::setting(id, request.thinking)
                .map(|setting| (id.to_owned(), setting)),
            stream,
        };
        let exchange = &self.0.exchange;
        let Reply {
            documents,
            key_place,
            thinking_dropped,
        } = exchange.run(&call, &mut Watch::new(progress)).await?;
        let draft = answer::judge(
            documents.iter().map(Chunk::read),
            request.schema.as_ref(),
            &exchange.scrub,
        )
        .map_err(|failure: Failure| failure.error(""))?;
        Ok(draft.answer(key_place, thinking_dropped))
    }

    async fn listed(&self) -> Result<&[Model], Error> {
        self.0
            .models
            .get_or_try_init(|| self.fetch_models())
            .await
            .map(Vec::as_slice)
    }

    async fn fetch_models(&self) -> Result<Vec<Model>, Error> {
        let malformed = |text| Error::new(ErrorKind::Malformed, text);
        let mut models = Vec::new();
        let mut token: Option<String> = None;
        for _ in 0..MOST_PAGES {
            let mut query = vec![("pageSize", "1000".to_owned())];
            query.extend(token.take().map(|token| ("pageToken", token)));
            let call = Call {
                path: "models".to_owned(),
                query,
                body: None,
                thinking: None,
                stream: false,
            };
            let reply = self.run(&call).await?;
            let page = reply.documents.first().and_then(wire::models_page);
            let (page, next) =
                page.ok_or_else(|| malformed("Gemini's reply is no list of models"))?;
            models.extend(
                page.into_iter()
                    .filter(|model| model::answers_with_text(&model.id)),
            );
            token = next;
            if token.is_none() {
                return Ok(models);
            }
        }
        Err(malformed("Gemini's list of models does not end"))
    }

    async fn run(&self, call: &Call<'_>) -> Result<Reply, Error> {
        self.0
            .exchange
            .run(call, &mut Watch::new(&mut |_| {}))
            .await
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let exchange = &self.0.exchange;
        f.debug_struct("Client")
            .field("host", &exchange.transport.host())
            .field("keys", exchange.ring.keys())
            .field("deadline", &exchange.deadline)
            .finish_non_exhaustive()
    }
}
