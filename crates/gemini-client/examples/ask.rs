//! Asks one question: `cargo run --example ask -- "Why is the sky blue?" < keys.txt`

#![expect(clippy::print_stdout, reason = "the answer is what the program is for")]

use std::io::Read as _;

use ctxfold_gemini_client::{Client, Keys, Request};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut keys = String::new();
    std::io::stdin().read_to_string(&mut keys)?;
    let client = Client::builder(Keys::parse(&keys)?).build()?;
    let question = std::env::args()
        .nth(1)
        .unwrap_or_else(|| "Say hello.".to_owned());
    let answer = client
        .generate(&Request::new("gemini-3.5-flash-lite", question))
        .await?;
    println!("{}", answer.text);
    Ok(())
}
