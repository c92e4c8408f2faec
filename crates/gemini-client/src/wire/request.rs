//! Requests as the API takes them.

use serde_json::{Map, Value, json};

use crate::request::{Content, Level, Property, Request, Role, Schema};
use crate::thinking::Setting;

/// The body of `generateContent` and `streamGenerateContent`.
pub(crate) fn generate_body(request: &Request, thinking: Option<Setting>) -> Value {
    let mut body = Map::new();
    body.insert(
        "contents".into(),
        request.contents.iter().map(content).collect(),
    );
    if let Some(system) = &request.system {
        body.insert(
            "systemInstruction".into(),
            json!({ "parts": [{ "text": system }] }),
        );
    }
    let config = config(request, thinking);
    if !config.is_empty() {
        body.insert("generationConfig".into(), Value::Object(config));
    }
    Value::Object(body)
}

/// The body of `countTokens`, which counts a whole request and not only its turns.
pub(crate) fn count_body(id: &str, request: &Request) -> Value {
    let mut inner = generate_body(request, None);
    inner["model"] = format!("models/{id}").into();
    json!({ "generateContentRequest": inner })
}

fn config(request: &Request, thinking: Option<Setting>) -> Map<String, Value> {
    let mut config = Map::new();
    if let Some(limit) = request.max_output_tokens {
        config.insert("maxOutputTokens".into(), limit.into());
    }
    if let Some(schema_) = &request.schema {
        config.insert("responseMimeType".into(), "application/json".into());
        config.insert("responseSchema".into(), schema(schema_));
    }
    match thinking {
        None => {}
        Some(Setting::Level(level)) => {
            config.insert(
                "thinkingConfig".into(),
                json!({ "thinkingLevel": level_name(level) }),
            );
        }
        Some(Setting::Budget(budget)) => {
            config.insert("thinkingConfig".into(), json!({ "thinkingBudget": budget }));
        }
    }
    config
}

fn content(content: &Content) -> Value {
    let role = match content.role {
        Role::User => "user",
        Role::Model => "model",
    };
    json!({ "role": role, "parts": [{ "text": content.text }] })
}

fn level_name(level: Level) -> &'static str {
    match level {
        Level::Minimal => "MINIMAL",
        Level::Low => "LOW",
        Level::Medium => "MEDIUM",
        Level::High => "HIGH",
    }
}

fn schema(schema_: &Schema) -> Value {
    match schema_ {
        Schema::Object(properties) => object(properties),
        Schema::Array { items, max_items } => {
            let mut array = json!({ "type": "ARRAY", "items": schema(items) });
            if let Some(most) = max_items {
                array["maxItems"] = (*most).into();
            }
            array
        }
        Schema::String => json!({ "type": "STRING" }),
        Schema::Enum(values) => json!({ "type": "STRING", "format": "enum", "enum": values }),
        Schema::Boolean => json!({ "type": "BOOLEAN" }),
    }
}

fn object(properties: &[Property]) -> Value {
    let shapes: Map<_, _> = properties
        .iter()
        .map(|property| (property.name.clone(), described(property)))
        .collect();
    let names: Vec<_> = properties.iter().map(|property| &property.name).collect();
    let required: Vec<_> = properties
        .iter()
        .filter(|property| property.required)
        .map(|property| &property.name)
        .collect();
    json!({
        "type": "OBJECT",
        "properties": shapes,
        "required": required,
        "propertyOrdering": names,
    })
}

fn described(property: &Property) -> Value {
    let mut shape = schema(&property.schema);
    if let Some(description) = &property.description {
        shape["description"] = description.clone().into();
    }
    shape
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_says_only_what_was_asked() {
        let body = generate_body(&Request::new("m", "hello"), None);
        assert_eq!(
            body,
            json!({ "contents": [{ "role": "user", "parts": [{ "text": "hello" }] }] })
        );
    }

    #[test]
    fn a_full_request_uses_the_schema_subset() {
        let ids = Schema::Array {
            items: Box::new(Schema::String),
            max_items: Some(100),
        };
        let action = Schema::Enum(vec!["keep".into(), "drop".into()]);
        let request = Request {
            system: Some("be brief".into()),
            contents: vec![Content::user("q"), Content::model("a"), Content::user("q2")],
            schema: Some(Schema::Object(vec![
                Property::required("ids", ids).describe("plain ids"),
                Property::required("action", action),
                Property::optional("sure", Schema::Boolean),
            ])),
            max_output_tokens: Some(4096),
            ..Request::new("gemini-3.5-flash", "")
        };
        insta::assert_snapshot!(format!(
            "{:#}",
            generate_body(&request, Some(Setting::Level(Level::Low)))
        ));
        insta::assert_snapshot!(format!("{:#}", count_body("gemini-3.5-flash", &request)));
        let budget = generate_body(&request, Some(Setting::Budget(-1)));
        assert_eq!(
            budget["generationConfig"]["thinkingConfig"],
            json!({ "thinkingBudget": -1 }),
            "never both"
        );
    }
}
