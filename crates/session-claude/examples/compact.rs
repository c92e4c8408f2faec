//! Tries the writer by hand: `cargo run --example compact -- FILE mask|drop|notes|summary|undo [KEEP]`.
#![expect(clippy::print_stdout, reason = "an example's output")]

use std::time::{SystemTime, UNIX_EPOCH};

use ctxfold_session_claude::{CommitOptions, Options, Session, Stamp};
use ctxfold_transcript::{Action, Author, BlockRef, Content, Mode, Note, Plan, Target};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let path = args.next().ok_or("usage: compact FILE MODE [KEEP]")?;
    let mode = args.next().ok_or("which mode?")?;
    let keep: usize = args.next().map_or(Ok(2), |n| n.parse())?;
    let session = Session::open(path.as_ref(), &Options::default())?;
    let transcript = session.transcript();
    let now = SystemTime::now().duration_since(UNIX_EPOCH)?;
    let counter = std::cell::Cell::new(now.as_nanos());
    let stamp = Stamp::new(now.as_millis() as i64, move || {
        counter.set(counter.get() + 1);
        counter
            .get()
            .wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835)
    });
    let append = if mode == "undo" {
        session.prepare_undo(&stamp)?
    } else {
        let kind = match mode.as_str() {
            "summary" => Mode::Summary,
            "mask" => Mode::Mask,
            _ => Mode::Prune,
        };
        let mut plan = Plan::keep_all(transcript, kind);
        plan.tail = transcript.messages.len().saturating_sub(keep);
        while kind == Mode::Summary
            && !matches!(
                transcript.messages[plan.tail].author,
                Author::User | Author::Assistant
            )
        {
            plan.tail -= 1;
        }
        if kind == Mode::Summary {
            plan.summary = Some("SUMMARY-OF-ALL: work was done.".into());
        }
        for (index, call) in transcript.calls.iter().enumerate() {
            let in_tail = call.result.is_none_or(|at| at.message >= plan.tail);
            if in_tail || kind == Mode::Summary {
                continue;
            }
            let several = transcript.messages[call.at.message].calls().count() > 1;
            if mode == "mask" {
                let text = format!("[folded: {} | ctxfold unfold {}]", call.label, call.address);
                if transcript.result(index).is_some_and(|b| b.bytes > 400) {
                    plan.decide_call(index, Action::Truncate(text), "size");
                }
            } else if several && mode != "notes" {
                plan.decide_call(index, Action::Drop, "hand");
                if !plan.adjacent_answers(transcript).is_empty() {
                    plan.decide_call(index, Action::Truncate("[cut]".into()), "hand");
                }
            } else {
                plan.decide_call(index, Action::Truncate("[cut]".into()), "hand");
            }
        }
        if mode == "mask" {
            for (message, m) in transcript.messages.iter().enumerate().take(plan.tail) {
                for (block, b) in m.blocks.iter().enumerate() {
                    if let Content::Attachment { foldable: true, .. } = b.content {
                        let at = Target::Attachment(BlockRef { message, block });
                        plan.decide(at, Action::Truncate("[folded file]".into()), "file");
                    }
                }
            }
        }
        if mode == "notes" || mode == "drop" {
            let answers = transcript.messages.iter().enumerate().take(plan.tail);
            plan.notes = answers
                .filter(|(_, m)| m.author == Author::Assistant && m.calls().next().is_some())
                .map(|(message, _)| Note {
                    message,
                    text: format!("[NOTE-{message}]"),
                })
                .collect();
        }
        plan.measure(transcript);
        println!("{:?} -> {:?}", plan.before, plan.after);
        session.prepare(&plan, &stamp)?
    };
    println!(
        "{:?}",
        append.commit(&CommitOptions::default().keep_mtime(true))?
    );
    Ok(())
}
