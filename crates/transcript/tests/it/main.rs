//! Plans over conversations: what is valid, what they weigh, what they leave, how they read.

mod generate;
mod plan;
mod render;
