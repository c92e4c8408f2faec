//! What is asked of a model, and what may come back. Sending it is the caller's business.

use std::fmt;

/// One question to a model.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelRequest {
    /// The instruction of the system.
    pub system: String,
    /// The one user message: the conversation as data, and the task.
    pub text: String,
    /// The form of the answer, where it has to be JSON.
    pub schema: Option<Schema>,
    /// The answer's limit in tokens.
    pub max_output_tokens: u32,
}

/// The form of a JSON answer: the small part of schemas that every provider takes.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Schema {
    /// Any string.
    Text {
        /// What it holds.
        description: String,
    },
    /// One of a few fixed strings.
    Choice(Vec<String>),
    /// A list.
    List(Box<Schema>),
    /// An object whose fields are all required, in this order.
    Object(Vec<(String, Schema)>),
}

/// A model's answer: its text, or why there is none.
pub type Answer = Result<String, Failure>;

/// Why a model gave no usable text.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Failure {
    /// The answer was cut at its limit.
    CutAtLimit,
    /// Anything else, in words for the user.
    Other(String),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::CutAtLimit => f.write_str("the answer was cut at the output limit"),
            Failure::Other(reason) => f.write_str(reason),
        }
    }
}

/// What a job wants next.
#[derive(Debug, Clone, PartialEq)]
pub enum Step<T> {
    /// Send these, in any order or at once, and give the answers back in this order.
    Ask(Vec<ModelRequest>),
    /// The plan is made.
    Done(T),
}
