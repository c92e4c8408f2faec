//! What takes up the bytes of a whole rollout.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use sha2::{Digest, Sha256};

use crate::activity;
use crate::chain::Rollout;
use crate::item::{self, Item};
use crate::lines;
use crate::prefix::SUMMARY_PREFIX;
use crate::unfold::each_image;
use crate::wire::Line;
use crate::{Error, Finding, address};

/// The largest outputs that are named.
const LARGEST: usize = 20;

/// A number of things and their bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Sum {
    /// How many.
    pub count: u64,
    /// Their bytes in the file.
    pub bytes: u64,
}

impl Sum {
    fn add(&mut self, bytes: u64) {
        self.count += 1;
        self.bytes += bytes;
    }
}

/// One large output.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Large {
    /// Bytes of its line.
    pub bytes: u64,
    /// The address that reads it back.
    pub address: String,
    /// One line for people.
    pub label: String,
}

/// What takes up the bytes of a rollout.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Scan {
    /// All lines.
    pub lines: Sum,
    /// By the line's type; `?` for lines that cannot be read.
    pub by_kind: BTreeMap<String, Sum>,
    /// Outputs by tool.
    pub by_tool: BTreeMap<String, Sum>,
    /// The largest outputs, the largest first.
    pub largest: Vec<Large>,
    /// `compacted` lines.
    pub compacted: Sum,
    /// Images, each time they occur.
    pub images: Sum,
    /// Different images.
    pub unique_images: Sum,
}

impl Scan {
    /// What is worth telling: images that are stored again and again.
    pub fn findings(&self) -> Vec<Finding> {
        let again = self.images.bytes - self.unique_images.bytes;
        if self.images.count < 2 * self.unique_images.count.max(1) {
            return Vec::new();
        }
        let text = format!(
            "{} images are stored {} times; the copies take {again} bytes",
            self.unique_images.count, self.images.count
        );
        vec![Finding::new("images-duplicated", text)]
    }
}

/// Goes through a whole rollout, plain or compressed. Memory is bounded by the longest line.
///
/// # Errors
/// When the file cannot be read or is no rollout.
pub fn scan(path: &Path) -> Result<Scan, Error> {
    let rollout = Rollout::open(path)?;
    let mut scanner = Scanner {
        thread: rollout.meta.id.clone(),
        scan: Scan::default(),
        calls: HashMap::new(),
        images: HashMap::new(),
    };
    let mut visit = |extent: lines::Extent, bytes: &[u8]| {
        scanner.line(extent.len(), bytes);
        true
    };
    rollout.lines(0, rollout.len, &mut visit)?;
    Ok(scanner.finish())
}

struct Scanner {
    thread: String,
    scan: Scan,
    /// Tool and label of calls that have no output yet.
    calls: HashMap<String, (String, String)>,
    /// Bytes by the beginning of the hash.
    images: HashMap<[u8; 16], u64>,
}

impl Scanner {
    fn line(&mut self, len: u64, bytes: &[u8]) {
        self.scan.lines.add(len);
        let head = &bytes[..bytes.len().min(512)];
        let kind = lines::kind(head).and_then(|k| std::str::from_utf8(k).ok());
        let kind = kind.unwrap_or("?").to_owned();
        match kind.as_str() {
            "compacted" => self.scan.compacted.add(len),
            "response_item" => self.item(len, bytes),
            _ => {}
        }
        self.scan.by_kind.entry(kind).or_default().add(len);
        each_image(bytes, &mut |url| {
            self.scan.images.add(url.len() as u64);
            let hash = Sha256::digest(url.as_bytes());
            let mut key = [0; 16];
            key.copy_from_slice(&hash[..16]);
            self.images.insert(key, url.len() as u64);
        });
    }

    fn item(&mut self, len: u64, bytes: &[u8]) {
        let Some(line) = Line::parse(bytes) else {
            return;
        };
        match item::parse(line.payload.get(), SUMMARY_PREFIX) {
            Some(Item::Call { id, tool, input }) => {
                let label = activity::label(&tool, &input);
                self.calls.insert(id, (tool, label));
            }
            Some(Item::Output { call, .. }) => {
                let (tool, label) = self.calls.remove(&call).unwrap_or_default();
                self.scan.by_tool.entry(tool).or_default().add(len);
                let largest = &mut self.scan.largest;
                let at = largest.partition_point(|other| other.bytes >= len);
                if at < LARGEST {
                    let address = address::of(&self.thread, &call);
                    largest.insert(
                        at,
                        Large {
                            bytes: len,
                            address,
                            label,
                        },
                    );
                    largest.truncate(LARGEST);
                }
            }
            _ => {}
        }
    }

    fn finish(mut self) -> Scan {
        for bytes in self.images.into_values() {
            self.scan.unique_images.add(bytes);
        }
        self.scan
    }
}
