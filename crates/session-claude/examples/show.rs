//! Prints a session's conversation, one message a line: `cargo run --example show -- FILE`.
#![expect(clippy::print_stdout, reason = "an example's output")]

use ctxfold_session_claude::{Options, Session};
use ctxfold_transcript::Content;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args_os().nth(1).ok_or("usage: show FILE")?;
    let session = Session::open(path.as_ref(), &Options::default())?;
    let transcript = session.transcript();
    for message in &transcript.messages {
        print!("{:?} {} bytes:", message.author, message.bytes());
        for block in &message.blocks {
            let shown = match &block.content {
                Content::Text(text) => {
                    format!("text {:?}", text.chars().take(40).collect::<String>())
                }
                Content::ToolCall(call) => format!("call {}", transcript.calls[*call].label),
                Content::ToolResult { call, .. } => {
                    format!("result of {call:?}, {} bytes", block.bytes)
                }
                Content::Attachment { kind, .. } => kind.clone(),
                other => format!("{other:?}"),
            };
            print!(" {shown}");
        }
        println!();
    }
    for call in &transcript.calls {
        println!(
            "{} {} {:?} {:?}",
            call.address, call.label, call.outcome, call.activities
        );
    }
    println!("{:?} {:?}", transcript.measure(), transcript.fill);
    println!("{:?}", session.meta());
    for finding in session.findings() {
        println!("{finding}");
    }
    Ok(())
}
