//! Runs one call through attempts and keys. The rules are in `retry.rs`; this is the one place that
//! sleeps.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::Value;

use crate::clock::{Clock, before};
use crate::course::{Course, seconds};
use crate::error::{Error, ErrorKind};
use crate::failure::Failure;
use crate::progress::Watch;
use crate::retry::{Retry, Step, Stop};
use crate::ring::Ring;
use crate::scrub::Scrubber;
use crate::sse::Events;
use crate::thinking::Setting;
use crate::transport::{Broken, Incoming, Outgoing, Transport};
use crate::wire::{self, Chunk, Fault};

/// Larger replies are refused. The longest output of a model is far below.
pub(crate) const MOST_BYTES: usize = 32 * 1024 * 1024;

/// The machinery that calls of one client share.
#[derive(Debug)]
pub(crate) struct Exchange {
    pub(crate) transport: Transport,
    pub(crate) ring: Ring,
    pub(crate) scrub: Scrubber,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) deadline: Duration,
    pub(crate) idle: Duration,
    /// Thinking settings that a model refused.
    pub(crate) refused: Mutex<HashSet<(String, Setting)>>,
}

/// What to send.
pub(crate) struct Call<'a> {
    pub(crate) path: String,
    pub(crate) query: Vec<(&'static str, String)>,
    /// Writes the body, with the thinking setting or without. It is written anew for each attempt,
    /// because a body may be large and most calls need one.
    pub(crate) body: Option<&'a (dyn Fn(Option<Setting>) -> Value + Sync)>,
    /// The model and the setting it is asked to think with.
    pub(crate) thinking: Option<(String, Setting)>,
    pub(crate) stream: bool,
}

/// What came back.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) documents: Vec<Value>,
    pub(crate) key_place: usize,
    pub(crate) thinking_dropped: bool,
}

/// Where a call is, for the error in case the deadline cuts it off.
#[derive(Default)]
struct State {
    course: Course,
    waiting_for_turn: bool,
}

impl Exchange {
    /// # Errors
    /// One error for all attempts. The call ends by the deadline, whatever the server does.
    pub(crate) async fn run(&self, call: &Call<'_>, watch: &mut Watch<'_>) -> Result<Reply, Error> {
        let begin = self.clock.now();
        let mut state = State::default();
        let alarm = self.clock.alarm(begin.saturating_add(self.deadline));
        match before(alarm, self.attempts(call, begin, &mut state, watch)).await {
            Some(Ok(reply)) => Ok(reply),
            Some(Err(stop)) => Err(state.course.stopped(stop, self.deadline)),
            None => Err(state.course.cut_off(self.deadline, state.waiting_for_turn)),
        }
    }

    async fn attempts(
        &self,
        call: &Call<'_>,
        begin: Duration,
        state: &mut State,
        watch: &mut Watch<'_>,
    ) -> Result<Reply, Stop> {
        let order = self.ring.order(begin);
        let mut retry = Retry::new(order.len(), self.deadline);
        let mut order = order.into_iter();
        let mut index = order.next().ok_or(Stop::NoKeyLeft)?;
        let mut thinking = call
            .thinking
            .clone()
            .filter(|refused| !self.refused().contains(refused));
        loop {
            let key_place = self.ring.key(index).place();
            let setting = thinking.as_ref().map(|(_, setting)| *setting);
            let failure = match self.attempt(call, index, setting, state, watch).await {
                Ok(documents) => {
                    self.ring.succeeded(index);
                    let thinking_dropped = thinking.is_none() && call.thinking.is_some();
                    return Ok(Reply {
                        documents,
                        key_place,
                        thinking_dropped,
                    });
                }
                Err(failure) => failure,
            };
            let elapsed = self.clock.now().saturating_sub(begin);
            let step = retry.after(failure.cause, elapsed);
            state.course.failed(key_place, failure);
            match step {
                Step::Wait(delay) => {
                    watch.waiting(delay);
                    self.clock.wait(delay).await;
                }
                Step::NextKey => index = order.next().ok_or(Stop::NoKeyLeft)?,
                Step::WithoutThinking => self.refused().extend(thinking.take()),
                Step::Stop(stop) => return Err(stop),
            }
        }
    }

    /// One attempt on one key, in its turn.
    async fn attempt(
        &self,
        call: &Call<'_>,
        index: usize,
        thinking: Option<Setting>,
        state: &mut State,
        watch: &mut Watch<'_>,
    ) -> Result<Vec<Value>, Failure> {
        state.waiting_for_turn = true;
        let _turn = self.ring.turn(index).await;
        state.waiting_for_turn = false;
        if let Some(failure) = self.ring.known_failure(index, self.clock.now()) {
            return Err(failure);
        }
        watch.asking(self.ring.key(index).place());
        let result = self.ask(call, index, thinking, watch).await;
        if let Err(failure) = &result {
            self.ring.failed(index, failure, self.clock.now());
        }
        result
    }

    async fn ask(
        &self,
        call: &Call<'_>,
        index: usize,
        thinking: Option<Setting>,
        watch: &mut Watch<'_>,
    ) -> Result<Vec<Value>, Failure> {
        let body = call
            .body
            .map(|body| body(thinking).to_string().into_bytes());
        let outgoing = Outgoing {
            path: &call.path,
            query: &call.query,
            body,
        };
        // The server is silent until the model's first word, which may take minutes on a long
        // input, also in a stream; until then the deadline is the limit.
        let sent = self.transport.send(outgoing, self.ring.key(index)).await;
        let mut incoming = self.broken(sent)?;
        if !incoming.is_success() {
            let body = self.whole(&mut incoming).await?;
            let (status, hint) = (incoming.status, incoming.retry_after);
            return Err(Failure::of_status(
                status,
                &body,
                hint,
                thinking.is_some(),
                &self.scrub,
            ));
        }
        if call.stream && incoming.events {
            return self.events(&mut incoming, thinking.is_some(), watch).await;
        }
        let body = self.whole(&mut incoming).await?;
        let documents = self.documents(&body, incoming.status, thinking.is_some())?;
        for document in &documents {
            tell(watch, document);
        }
        if call.stream {
            self.ended(documents)
        } else {
            Ok(documents)
        }
    }

    async fn events(
        &self,
        incoming: &mut Incoming,
        thinking_sent: bool,
        watch: &mut Watch<'_>,
    ) -> Result<Vec<Value>, Failure> {
        let mut documents = Vec::new();
        let mut take = |event: &[u8]| {
            if event.trim_ascii() == b"[DONE]" {
                return Ok(());
            }
            for document in self.documents(event, 200, thinking_sent)? {
                tell(watch, &document);
                documents.push(document);
            }
            Ok(())
        };
        let mut events = Events::default();
        let mut size = 0;
        while let Some(bytes) = self.unless_idle(self.transport.chunk(incoming)).await? {
            let bytes = bytes.as_ref();
            size = self.grown(size, bytes.len())?;
            for event in events.push(bytes) {
                take(&event)?;
            }
        }
        if let Some(event) = events.finish() {
            // What the end of a broken connection left of an event is no answer of the server's.
            take(&event).map_err(|failure| {
                if failure.kind == ErrorKind::Malformed {
                    self.half_way()
                } else {
                    failure
                }
            })?;
        }
        self.ended(documents)
    }

    /// The documents of a body, unless one is an error in disguise.
    fn documents(
        &self,
        body: &[u8],
        status: u16,
        thinking_sent: bool,
    ) -> Result<Vec<Value>, Failure> {
        let documents = wire::documents(body).map_err(|problem| {
            let text = format!("Gemini HTTP {status}: {}", problem.text());
            Failure {
                status: Some(status),
                ..Failure::of_answer(ErrorKind::Malformed, text)
            }
        })?;
        match documents.iter().find_map(Fault::read) {
            Some(fault) => Err(Failure::of_hidden(&fault, thinking_sent, &self.scrub)),
            None => Ok(documents),
        }
    }

    /// A stream that ends without a reason was cut, however good the text looks.
    fn ended(&self, documents: Vec<Value>) -> Result<Vec<Value>, Failure> {
        let ended = documents
            .iter()
            .map(Chunk::read)
            .any(|chunk| chunk.finish.is_some() || chunk.block.is_some());
        // Nothing but usage, or nothing at all, is an answer without candidates; that is judged
        // later.
        let begun = documents
            .iter()
            .map(Chunk::read)
            .any(|chunk| chunk.candidate);
        if ended || (!begun && !documents.is_empty()) {
            Ok(documents)
        } else {
            Err(self.half_way())
        }
    }

    fn half_way(&self) -> Failure {
        Failure::of_network(
            format!(
                "the stream of {} ended before the answer did",
                self.transport.host()
            ),
            true,
        )
    }

    async fn whole(&self, incoming: &mut Incoming) -> Result<Vec<u8>, Failure> {
        let mut body = Vec::new();
        while let Some(bytes) = self.unless_idle(self.transport.chunk(incoming)).await? {
            self.grown(body.len(), bytes.as_ref().len())?;
            body.extend_from_slice(bytes.as_ref());
        }
        Ok(body)
    }

    fn grown(&self, size: usize, by: usize) -> Result<usize, Failure> {
        let size = size.saturating_add(by);
        if size <= MOST_BYTES {
            return Ok(size);
        }
        let text = format!(
            "the reply of {} is larger than {} MB",
            self.transport.host(),
            MOST_BYTES >> 20
        );
        Err(Failure::of_answer(ErrorKind::TooLarge, text))
    }

    async fn unless_idle<T>(
        &self,
        work: impl Future<Output = Result<T, Broken>>,
    ) -> Result<T, Failure> {
        let alarm = self.clock.alarm(self.clock.now().saturating_add(self.idle));
        if let Some(result) = before(alarm, work).await {
            self.broken(result)
        } else {
            let text = format!(
                "{} sent nothing for {}",
                self.transport.host(),
                seconds(self.idle)
            );
            Err(Failure::of_network(text, false))
        }
    }

    fn broken<T>(&self, result: Result<T, Broken>) -> Result<T, Failure> {
        result.map_err(|Broken(text)| Failure::of_network(self.scrub.line(&text), true))
    }

    fn refused(&self) -> std::sync::MutexGuard<'_, HashSet<(String, Setting)>> {
        self.refused.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn tell(watch: &mut Watch<'_>, document: &Value) {
    let chunk = Chunk::read(document);
    watch.received(chunk.text.len() as u64, chunk.thought_bytes);
}
