//! The binary `ctxfold`.
fn main() {}
