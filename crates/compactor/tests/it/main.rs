//! The engine as its callers use it.

mod generate;
mod hostile;
mod idle;
mod ledger;
mod mask;
mod properties;
mod prune;
mod redact;
mod rounds;
mod summary;
