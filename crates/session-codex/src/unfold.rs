//! Reads folded outputs and messages back, byte for byte as they were first written.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use ctxfold_transcript::Author;
use serde_json::Value;

use crate::activity;
use crate::address::{self, Address, words_key};
use crate::chain::{self, Rollout};
use crate::item::{self, Item};
use crate::lines::{self, Extent};
use crate::live::Live;
use crate::prefix::SUMMARY_PREFIX;
use crate::stamp::parse_timestamp;
use crate::wire::{Compacted, Line};
use crate::write::image_key;
use crate::{Error, ErrorKind, Store};

/// One part of a folded output.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum FoldedPart {
    /// Words.
    Text(String),
    /// An image, as base64.
    Image {
        /// Media type, for example `image/png`.
        media_type: String,
        /// The image in base64.
        base64: String,
    },
    /// Anything else, as JSON.
    Json(String),
}

/// A folded output or message, as it was first written.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Folded {
    /// The address that reads it back.
    pub address: String,
    /// The tool's name; of a message who speaks: `user`, `assistant` or `client`.
    pub tool: String,
    /// One line for people, for example `exec_command(cargo test)`.
    pub label: String,
    /// When it was written, in milliseconds since the Unix epoch.
    pub at_ms: Option<i64>,
    /// Offset in bytes of its line in its rollout.
    pub offset: u64,
    /// What it holds.
    pub parts: Vec<FoldedPart>,
}

impl Folded {
    /// Its words, parts joined by a line break; images are left out.
    pub fn text(&self) -> String {
        let texts: Vec<&str> = self
            .parts
            .iter()
            .filter_map(|part| match part {
                FoldedPart::Text(text) => Some(text.as_str()),
                _ => None,
            })
            .collect();
        texts.join("\n")
    }
}

/// Reads one output or message back as it was first written, whether it is folded now or not.
///
/// # Errors
/// When the rollout cannot be read, or when the address names nothing or several things in it.
pub fn unfold(store: &Store, path: &Path, address: &Address) -> Result<Folded, Error> {
    let chain = whole_chain(store, path)?;
    if address::tail(&chain[0].meta.id) != address.thread() {
        let text = format!("{address} is not of the thread {}", chain[0].meta.id);
        return Err(Error::new(ErrorKind::NotFound, text).at(path));
    }
    let wants_image = address.key().starts_with("img");
    let mut found: Option<Folded> = None;
    let mut first_call = String::new();
    let mut ambiguous = false;
    let mut reader = Outputs::new(&chain[0].meta.id);
    reader.messages = address.may_name_words();
    each_line(&chain, &mut |extent, bytes| {
        if wants_image {
            found = image(bytes, address, extent.start);
            return found.is_none();
        }
        // The first output is the original: later ones are copies in replacement histories.
        if let Some((call, output)) = reader.line(extent, bytes, &|call| address.names(call)) {
            match &found {
                None => {
                    found = Some(output);
                    first_call = call;
                }
                Some(other) => ambiguous = first_call != call && other.parts != output.parts,
            }
        } else if reader.messages && found.is_none() {
            // The client shortens messages that it takes over into a new history.
            found = reader.copied(extent, bytes, &|key| address.names(key));
        }
        !ambiguous
    })?;
    if ambiguous {
        let text = format!("{address} names more than one output");
        return Err(Error::new(ErrorKind::Ambiguous, text).at(path));
    }
    found
        .ok_or_else(|| Error::new(ErrorKind::NotFound, format!("nothing is at {address}")).at(path))
}

/// Calls `visit` with every output and message of the thread that no longer reaches the model as it
/// was written, in the order they were written, until it returns `false`. Summaries are passed
/// over: what they tell of is there itself. Memory is bounded by the live part and one line.
///
/// # Errors
/// When a rollout cannot be read.
pub fn folded(
    store: &Store,
    path: &Path,
    visit: &mut dyn FnMut(Folded) -> bool,
) -> Result<(), Error> {
    let live = Live::read(store.home(), path)?;
    let mut reaching = HashSet::new();
    for entry in &live.entries {
        match &entry.item {
            Item::Output { call, parts, .. } => {
                reaching.insert((call.clone(), fingerprint(parts)));
            }
            Item::Message { blocks, .. } => {
                reaching.insert((words_key(item::words(blocks)), 0));
            }
            _ => {}
        }
    }
    drop(live.chain);
    let chain = whole_chain(store, path)?;
    let mut reader = Outputs::new(&chain[0].meta.id);
    reader.messages = true;
    each_line(&chain, &mut |extent, bytes| {
        let keep = |_: &str| true;
        let Some((call, output)) = reader.line(extent, bytes, &keep) else {
            return true;
        };
        if reaching.contains(&(call, reader.fingerprint)) {
            return true;
        }
        visit(output)
    })
}

/// A number that tells outputs apart.
fn fingerprint(parts: &[ctxfold_transcript::Part]) -> u64 {
    use std::hash::{DefaultHasher, Hash, Hasher};
    let mut hasher = DefaultHasher::new();
    for part in parts {
        match part {
            ctxfold_transcript::Part::Text(text) => text.hash(&mut hasher),
            ctxfold_transcript::Part::Image(image) => image.bytes.hash(&mut hasher),
            ctxfold_transcript::Part::Other { bytes, .. } => bytes.hash(&mut hasher),
            _ => {}
        }
    }
    hasher.finish()
}

/// The thread's rollouts, its own first.
fn whole_chain(store: &Store, path: &Path) -> Result<Vec<Rollout>, Error> {
    let mut chain = vec![Rollout::open(path)?];
    // Where one is missing, what is there is still read.
    while let Ok(Some(mut parent)) = chain::parent(store.home(), &chain) {
        let base = chain.last().and_then(|r| r.meta.history_base.as_ref());
        if let Some(base) = base.filter(|_| !parent.compressed) {
            parent.len = parent.len.min(base.end_byte_offset);
        }
        chain.push(parent);
    }
    Ok(chain)
}

/// Every line that belongs to the thread, the oldest first.
fn each_line(chain: &[Rollout], visit: &mut dyn FnMut(Extent, &[u8]) -> bool) -> Result<(), Error> {
    let mut going = true;
    for (index, rollout) in chain.iter().enumerate().rev() {
        // Where the rollout that hangs on this one begins.
        let end = index
            .checked_sub(1)
            .and_then(|child| chain[child].meta.history_base.as_ref())
            .map_or(u64::MAX, |base| base.end_byte_offset);
        let mut limited = |extent: Extent, bytes: &[u8]| {
            going = extent.start < end && visit(extent, bytes);
            going
        };
        rollout.lines(0, rollout.len, &mut limited)?;
        going |= rollout.compressed && end != u64::MAX;
        if !going {
            break;
        }
    }
    Ok(())
}

/// Pairs outputs with their calls as lines go by.
struct Outputs<'t> {
    thread: &'t str,
    /// Whether messages are read too.
    messages: bool,
    /// Tool and label of the calls that have no output yet.
    calls: HashMap<String, (String, String)>,
    fingerprint: u64,
}

impl Outputs<'_> {
    fn new(thread: &str) -> Outputs<'_> {
        Outputs {
            thread,
            messages: false,
            calls: HashMap::new(),
            fingerprint: 0,
        }
    }

    /// The output in a line, if its call is wanted, or the message, if its key is.
    fn line(
        &mut self,
        extent: Extent,
        bytes: &[u8],
        wanted: &dyn Fn(&str) -> bool,
    ) -> Option<(String, Folded)> {
        let head = &bytes[..bytes.len().min(512)];
        if lines::kind(head).is_some_and(|kind| kind != b"response_item") {
            return None;
        }
        let line = Line::parse(bytes).filter(|line| line.kind == "response_item")?;
        match item::parse(line.payload.get(), SUMMARY_PREFIX)? {
            Item::Call { id, tool, input } if wanted(&id) => {
                let label = activity::label(&tool, &input);
                self.calls.insert(id, (tool, label));
                None
            }
            Item::Output { call, parts, .. } if wanted(&call) => {
                self.fingerprint = fingerprint(&parts);
                let (tool, label) = self.calls.remove(&call).unwrap_or_default();
                let value: Value = serde_json::from_str(line.payload.get()).ok()?;
                let folded = Folded {
                    address: address::of(self.thread, &call),
                    tool,
                    label,
                    at_ms: line.timestamp.as_deref().and_then(parse_timestamp),
                    offset: extent.start,
                    parts: folded_parts(&value["output"]),
                };
                Some((call, folded))
            }
            item => {
                self.fingerprint = 0;
                self.message(extent, &line, item, wanted)
            }
        }
    }

    /// The message that an item of a line is, if its key is wanted.
    fn message(
        &self,
        extent: Extent,
        line: &Line<'_>,
        item: Item,
        wanted: &dyn Fn(&str) -> bool,
    ) -> Option<(String, Folded)> {
        let Item::Message {
            author,
            blocks,
            reinjected: false,
        } = item
        else {
            return None;
        };
        let tool = match author {
            Author::User => "user",
            Author::Assistant => "assistant",
            Author::Client => "client",
            _ => return None,
        };
        let key = words_key(item::words(&blocks));
        let first = item::words(&blocks).next()?;
        if !self.messages || !wanted(&key) {
            return None;
        }
        let head: String = first.chars().take(200).collect();
        let folded = Folded {
            address: address::of_words(self.thread, item::words(&blocks)),
            tool: tool.to_owned(),
            label: activity::label(tool, &head),
            at_ms: line.timestamp.as_deref().and_then(parse_timestamp),
            offset: extent.start,
            parts: item::words(&blocks)
                .map(|text| FoldedPart::Text(text.to_owned()))
                .collect(),
        };
        Some((key, folded))
    }

    /// A message that only the history of a compaction holds.
    fn copied(
        &self,
        extent: Extent,
        bytes: &[u8],
        wanted: &dyn Fn(&str) -> bool,
    ) -> Option<Folded> {
        let head = &bytes[..bytes.len().min(512)];
        if lines::kind(head).is_some_and(|kind| kind != b"compacted") {
            return None;
        }
        let line = Line::parse(bytes).filter(|line| line.kind == "compacted")?;
        let items = line.payload::<Compacted<'_>>()?.replacement_history?;
        items.into_iter().find_map(|raw| {
            let item = item::parse(raw.get(), SUMMARY_PREFIX)?;
            let (_, folded) = self.message(extent, &line, item, wanted)?;
            Some(folded)
        })
    }
}

fn folded_parts(output: &Value) -> Vec<FoldedPart> {
    match output {
        Value::String(text) => vec![FoldedPart::Text(text.clone())],
        Value::Array(parts) => parts
            .iter()
            .map(|part| {
                if let Some(image) = part["image_url"].as_str().and_then(data_url) {
                    image
                } else if let Some(text) = part["text"].as_str() {
                    FoldedPart::Text(text.to_owned())
                } else {
                    FoldedPart::Json(part.to_string())
                }
            })
            .collect(),
        Value::Object(object) if object.get("content").is_some_and(Value::is_string) => {
            vec![FoldedPart::Text(
                object["content"].as_str().unwrap_or_default().to_owned(),
            )]
        }
        other => vec![FoldedPart::Json(other.to_string())],
    }
}

fn data_url(url: &str) -> Option<FoldedPart> {
    let (head, base64) = url.strip_prefix("data:")?.split_once(',')?;
    Some(FoldedPart::Image {
        media_type: head.split(';').next().unwrap_or_default().to_owned(),
        base64: base64.to_owned(),
    })
}

/// The image with this key in a line.
fn image(bytes: &[u8], address: &Address, offset: u64) -> Option<Folded> {
    let line = Line::parse(bytes)?;
    let at_ms = line.timestamp.as_deref().and_then(parse_timestamp);
    let mut found = None;
    each_image(bytes, &mut |url| {
        if found.is_none() && image_key(url) == address.key() {
            found = data_url(url);
        }
    });
    Some(Folded {
        address: address.to_string(),
        tool: "image".to_owned(),
        label: "image".to_owned(),
        at_ms,
        offset,
        parts: vec![found?],
    })
}

/// Calls `visit` with every image in the items of a line, as a data URL.
pub(crate) fn each_image(bytes: &[u8], visit: &mut dyn FnMut(&str)) {
    if memchr::memmem::find(bytes, b"data:image/").is_none() {
        return;
    }
    let Some(line) = Line::parse(bytes) else {
        return;
    };
    let raws: Vec<&str> = match &*line.kind {
        "response_item" => vec![line.payload.get()],
        "compacted" => line
            .payload::<Compacted<'_>>()
            .and_then(|c| c.replacement_history)
            .unwrap_or_default()
            .into_iter()
            .map(serde_json::value::RawValue::get)
            .collect(),
        _ => Vec::new(),
    };
    for raw in raws {
        let Ok(item) = serde_json::from_str::<crate::wire::Item<'_>>(raw) else {
            continue;
        };
        for parts in [item.content, item.output].into_iter().flatten() {
            let parts: Vec<crate::wire::ContentPart<'_>> =
                serde_json::from_str(parts.get()).unwrap_or_default();
            for url in parts.iter().filter_map(|part| part.image_url.as_deref()) {
                visit(url);
            }
        }
    }
}
