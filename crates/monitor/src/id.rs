//! Session ids that are safe as a part of a file name.

use std::fmt;

use crate::error::{Error, ErrorKind};

/// The id of a conversation, checked: it cannot leave the folder in which its files lie.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SessionId(String);

impl SessionId {
    /// The longest id, in bytes. File names end at 255.
    pub const MAX: usize = 200;

    /// Checks an id as a host gave it.
    ///
    /// # Errors
    /// [`ErrorKind::BadSession`] when it is empty, too long, or holds `/`, `\`, `..` or a control
    /// character.
    pub fn new(id: &str) -> Result<Self, Error> {
        let bad = |why: &str| {
            Err(Error::new(
                ErrorKind::BadSession,
                format!("session id {why}"),
            ))
        };
        if id.is_empty() {
            bad("is empty")
        } else if id.len() > Self::MAX {
            bad("is too long")
        } else if id.contains(['/', '\\']) || id.contains("..") {
            bad("could leave the folder")
        } else if id.chars().any(char::is_control) {
            bad("holds a control character")
        } else {
            Ok(Self(id.to_owned()))
        }
    }

    /// The id as the host gave it.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_that_could_leave_the_folder_are_refused() {
        for id in [
            "",
            "a/b",
            "a\\b",
            "..",
            "../x",
            "a..b",
            "a\0b",
            "a\nb",
            &"s".repeat(201),
        ] {
            assert_eq!(
                SessionId::new(id).unwrap_err().kind(),
                ErrorKind::BadSession,
                "{id:?}"
            );
        }
        for id in ["a.b", "a b c", "сессия-é", "ses:1", ".", "0197-uuid"] {
            assert_eq!(SessionId::new(id).unwrap().as_str(), id);
        }
    }
}
