//! Scans or checks a session file and prints what it found and how long that took.
//!
//! `cargo run --release --example scan -- FILE [check|tail|list]`

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "an example talks"
)]

use std::path::Path;
use std::time::Instant;

use ctxfold_session_claude::{Filter, ScanOptions, Store, SystemProcesses, check, read_tail, scan};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let path = args.next().ok_or("usage: scan FILE [check|tail|list]")?;
    let path = Path::new(&path);
    let start = Instant::now();
    match args.next().as_deref() {
        Some("tail") => println!("{:#?}", read_tail(path)?),
        Some("list") => {
            for entry in Store::new(path).list(&Filter::default(), &SystemProcesses)? {
                println!("{} {} {:?}", entry.id, entry.size, entry.title);
            }
        }
        Some("check") => {
            for finding in check(path, &mut |_, _| {})?.findings {
                println!("{finding}");
            }
        }
        _ => {
            let scan = scan(path, &ScanOptions::default(), &mut |_, _| {})?;
            println!(
                "{} bytes, {} rows, {} answers",
                scan.bytes,
                scan.rows,
                scan.turns.len()
            );
            for kind in &scan.kinds {
                println!("{:>12} {:>8}  {}", kind.bytes, kind.rows, kind.kind);
            }
            for output in scan.largest.iter().take(5) {
                println!("{:>12} {}  {:?}", output.bytes, output.tool, output.address);
            }
        }
    }
    eprintln!("{:?}", start.elapsed());
    Ok(())
}
