//! Makes a rollout of two gigabytes, 500 compactions full of images and a short live part, compacts
//! it, and measures. Fails where the process ever held more than the live part and 64 MiB.
//!
//! `cargo run --release -p ctxfold-session-codex --example large_rollout [COMPACTIONS]`
#![expect(clippy::print_stdout, reason = "a measurement is printed")]

use std::error::Error;
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::Path;
use std::time::Instant;

use ctxfold_session_codex::{CommitOptions, Stamp, Store, Thread};
use ctxfold_transcript::{Author, Mode, Plan};

const ID: &str = "01a22eb2-072d-76f3-a271-8cf7acd69144";
const LINE_BYTES: usize = 4_200_000;
const TURNS: usize = 50;

fn main() -> Result<(), Box<dyn Error>> {
    let compactions = std::env::args().nth(1).map_or(Ok(500), |n| n.parse())?;
    let home = tempfile::tempdir()?;
    let folder = home.path().join("sessions/2026/12/01");
    fs::create_dir_all(&folder)?;
    let path = folder.join(format!("rollout-2026-12-01T00-00-00-{ID}.jsonl"));
    generate(&path, compactions)?;

    let start = Instant::now();
    let store = Store::new(home.path());
    let thread = Thread::open(&store, &path)?;
    let transcript = thread.transcript();
    let mut plan = Plan::keep_all(transcript, Mode::Summary);
    plan.tail = transcript
        .messages
        .iter()
        .rposition(|m| m.author == Author::User)
        .ok_or("no prompt")?;
    plan.summary = Some("what was done so far".to_owned());
    plan.measure(transcript);
    let stamp = Stamp::new(1_796_083_200_000, || 0x1234_5678_9abc);
    let receipt = thread
        .prepare(&plan, &stamp)?
        .commit(&CommitOptions::default())?;
    let time = start.elapsed();

    // The baseline in the same run: one pass over the file.
    let start = Instant::now();
    let lines = count_lines(&path)?;
    let pass = start.elapsed();
    let live = thread.meta().live_bytes;
    let most = most_memory()?;
    println!(
        "{} bytes in {lines} lines, {live} of them live: compacted in {time:?}, one pass over the file takes {pass:?} ({:.1} times), at most {most} bytes of memory",
        receipt.len_before,
        pass.as_secs_f64() / time.as_secs_f64(),
    );
    if most > live + 64 * 1024 * 1024 {
        return Err("more memory than the live part and 64 MiB".into());
    }
    Ok(())
}

fn generate(path: &Path, compactions: usize) -> Result<(), Box<dyn Error>> {
    let mut out = BufWriter::new(File::create(path)?);
    let mut ordinal = 0;
    let mut line = |kind: &str, payload: &str| {
        let text = format!(
            "{{\"timestamp\":\"2026-12-01T00:00:00.000Z\",\"ordinal\":{ordinal},\"type\":\"{kind}\",\"payload\":{payload}}}"
        );
        ordinal += 1;
        writeln!(out, "{text}")
    };
    line(
        "session_meta",
        &format!(
            "{{\"id\":\"{ID}\",\"cwd\":\"/home/dev\",\"cli_version\":\"0.171.0\",\"history_mode\":\"paginated\"}}"
        ),
    )?;
    let image = "A".repeat(LINE_BYTES / 8);
    let item = format!(
        "{{\"type\":\"message\",\"role\":\"user\",\"content\":[{{\"type\":\"input_image\",\"image_url\":\"data:image/png;base64,{image}\"}}]}}"
    );
    let history = [item.as_str(); 8].join(",");
    let compacted =
        format!("{{\"message\":\"m\",\"replacement_history\":[{history}],\"window_number\":1}}");
    for _ in 0..compactions {
        line("compacted", &compacted)?;
    }
    for _ in 0..TURNS {
        for (role, kind) in [("user", "input_text"), ("assistant", "output_text")] {
            let text = "z".repeat(2000);
            line(
                "response_item",
                &format!(
                    "{{\"type\":\"message\",\"role\":\"{role}\",\"content\":[{{\"type\":\"{kind}\",\"text\":\"{text}\"}}]}}"
                ),
            )?;
        }
    }
    // What is written here must not be counted as what the append brings to the disk.
    out.into_inner()?.sync_all()?;
    Ok(())
}

fn count_lines(path: &Path) -> std::io::Result<usize> {
    use std::io::Read;
    let mut file = File::open(path)?;
    let mut chunk = vec![0; 256 * 1024];
    let mut lines = 0;
    loop {
        let len = file.read(&mut chunk)?;
        if len == 0 {
            return Ok(lines);
        }
        lines += memchr::memchr_iter(b'\n', &chunk[..len]).count();
    }
}

/// The most memory that this process ever held, in bytes: the generator's own too.
fn most_memory() -> Result<u64, Box<dyn Error>> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.ok_or("the system does not tell")?;
    Ok(kib.trim().trim_end_matches(" kB").parse::<u64>()? * 1024)
}
