//! What a caller asks for.

use crate::error::{Error, ErrorKind};

/// One request for a text, sent whole each time; the client keeps no conversation.
///
/// ```
/// use ctxfold_gemini_client::{Request, Thinking, Level};
///
/// let request = Request {
///     system: Some("Answer in one word.".to_owned()),
///     thinking: Thinking::Level(Level::Low),
///     ..Request::new("gemini-3.5-flash-lite", "What is the capital of France?")
/// };
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Request {
    /// The model's id, with or without `models/` before it.
    pub model: String,
    /// The system instruction.
    pub system: Option<String>,
    /// The turns, oldest first; the last one is usually the user's.
    pub contents: Vec<Content>,
    /// Asks for JSON of this shape. The answer's text is then checked to be one JSON document of
    /// the schema's outermost type; what is inside is the caller's to check.
    pub schema: Option<Schema>,
    /// How much the model thinks before it answers.
    pub thinking: Thinking,
    /// The longest answer, in tokens. Thoughts count against it.
    pub max_output_tokens: Option<u32>,
}

impl Request {
    /// A request with one user turn and the model's own settings.
    pub fn new(model: impl Into<String>, text: impl Into<String>) -> Self {
        Self {
            model: model.into(),
            contents: vec![Content::user(text)],
            ..Self::default()
        }
    }

    /// The model's id without `models/`.
    ///
    /// An id with other characters than those of model names could reach another address of the
    /// server.
    pub(crate) fn model_id(&self) -> Result<&str, Error> {
        model_id(&self.model)
    }
}

pub(crate) fn model_id(model: &str) -> Result<&str, Error> {
    let id = model.strip_prefix("models/").unwrap_or(model);
    let named = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    if id.bytes().any(|byte| byte.is_ascii_alphanumeric()) && id.bytes().all(named) {
        Ok(id)
    } else {
        // The text is not repeated: a key pasted in the wrong place would be shown.
        Err(Error::new(
            ErrorKind::InvalidRequest,
            "the model's id may hold letters, digits, '-', '_' and '.' only",
        ))
    }
}

/// Who speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The user.
    User,
    /// The model.
    Model,
}

/// One turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Content {
    /// Who speaks.
    pub role: Role,
    /// What is said.
    pub text: String,
}

impl Content {
    /// A turn of the user.
    pub fn user(text: impl Into<String>) -> Self {
        Self {
            role: Role::User,
            text: text.into(),
        }
    }

    /// A turn of the model.
    pub fn model(text: impl Into<String>) -> Self {
        Self {
            role: Role::Model,
            text: text.into(),
        }
    }
}

/// How much the model thinks before it answers.
///
/// Models from Gemini 3 on take a level, Gemini 2.5 takes a budget, and both together are an error.
/// The client sends the one that the model takes: levels become the budgets that the API documents
/// for them, and budgets the nearest level. Models that do not think are sent neither. Where a
/// model refuses the setting all the same, the request is repeated once without it, and the client
/// remembers that for the model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Thinking {
    /// Nothing is sent; the model decides.
    #[default]
    ModelDefault,
    /// A level.
    Level(Level),
    /// A budget in tokens; 0 asks for none, -1 leaves it to the model.
    Budget(i32),
}

/// A thinking level. Not every model has each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// The least; several models refuse it.
    Minimal,
    /// Little.
    Low,
    /// The usual amount of most models.
    Medium,
    /// The most.
    High,
}

/// The shape of a JSON answer: the part of JSON Schema that Gemini takes.
///
/// Integer enums, ranges and `additionalProperties` are refused by the API, so they cannot be
/// written here. Keep schemas small: long lists of values, long names and large `max_items` are
/// refused as "too many states".
///
/// ```
/// use ctxfold_gemini_client::{Property, Schema};
///
/// let ids = Schema::Array { items: Box::new(Schema::String), max_items: Some(100) };
/// let schema = Schema::Object(vec![
///     Property::required("drop", ids.clone()).describe("ids of calls that are no longer needed"),
///     Property::optional("truncate", ids),
/// ]);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Schema {
    /// An object; its properties are written in this order.
    Object(Vec<Property>),
    /// An array.
    Array {
        /// Each item's shape.
        items: Box<Schema>,
        /// The most items.
        max_items: Option<u32>,
    },
    /// Any string.
    String,
    /// One of these strings.
    Enum(Vec<String>),
    /// `true` or `false`.
    Boolean,
}

/// A property of [`Schema::Object`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Property {
    /// Its name.
    pub name: String,
    /// Its shape.
    pub schema: Schema,
    /// Whether the answer must have it.
    pub required: bool,
    /// What the model should put there.
    pub description: Option<String>,
}

impl Property {
    /// A property that the answer must have.
    pub fn required(name: impl Into<String>, schema: Schema) -> Self {
        Self {
            name: name.into(),
            schema,
            required: true,
            description: None,
        }
    }

    /// A property that the answer may leave out.
    pub fn optional(name: impl Into<String>, schema: Schema) -> Self {
        Self {
            required: false,
            ..Self::required(name, schema)
        }
    }

    /// Says what the model should put there.
    #[must_use]
    pub fn describe(self, text: impl Into<String>) -> Self {
        Self {
            description: Some(text.into()),
            ..self
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_id_cannot_change_the_address() {
        assert_eq!(
            model_id("models/gemini-3.5-flash").unwrap(),
            "gemini-3.5-flash"
        );
        for bad in [
            "",
            "..",
            "models/",
            "a/b",
            "a?key=AIzaPlanted",
            "a:countTokens",
            "a b",
            "a%2f",
            "gemini\n",
        ] {
            let error = model_id(bad).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidRequest, "{bad:?}");
            assert!(!error.to_string().contains("AIza"));
        }
    }
}
