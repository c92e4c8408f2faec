//! Asks one question: `cargo run --example ask -- "Why is the sky blue?" < keys.txt`
//!
//! A second argument is another base URL.

#![expect(clippy::print_stdout, reason = "the answer is what the program is for")]

use ctxfold_gemini_client::{Client, Keys, Request};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let keys = Keys::parse(&std::io::read_to_string(std::io::stdin())?)?;
    let mut client = Client::builder(keys);
    let mut arguments = std::env::args().skip(1);
    let question = arguments.next().ok_or("what is the question?")?;
    if let Some(url) = arguments.next() {
        client = client.base_url(url);
    }
    let request = Request::new("gemini-3.5-flash-lite", question);
    println!("{}", client.build()?.generate(&request).await?.text);
    Ok(())
}
