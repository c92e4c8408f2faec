//! Reads one folded output back, or lists all: `cargo run --example unfold -- FILE [ADDRESS]`.
#![expect(clippy::print_stdout, reason = "an example's output")]

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let path = args.next().ok_or("usage: unfold FILE [ADDRESS]")?;
    if let Some(address) = args.next() {
        let folded = ctxfold_session_claude::unfold(path.as_ref(), &address.parse()?)?;
        print!("{}", folded.text());
        return Ok(());
    }
    ctxfold_session_claude::folded(path.as_ref(), &mut |folded| {
        println!(
            "{} {} {} bytes",
            folded.address,
            folded.label,
            folded.text().len()
        );
        true
    })?;
    Ok(())
}
