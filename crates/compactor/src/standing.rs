//! Finds what the user wants to hold from now on: instructions and prohibitions, by the words
//! that such sentences have. Errs on the side of keeping.

/// Words of one sentence that make it a standing one, in the languages that users write in.
const WORDS: &[&str] = &[
    // English
    "never",
    "don't",
    "dont",
    "don’t",
    "mustn't",
    "mustn’t",
    "must",
    "always",
    "only",
    "no",
    "not",
    "avoid",
    "without",
    "cannot",
    "forbidden",
    "prohibited",
    "require",
    "required",
    "requires",
    "remember",
    "unless",
    "shall",
    "ensure",
    "except",
    "stop",
    "refrain",
    "leave",
    "keep",
    // German
    "nie",
    "niemals",
    "nicht",
    "kein",
    "keine",
    "keinen",
    "keinem",
    "keiner",
    "immer",
    "nur",
    "muss",
    "müssen",
    "musst",
    "darf",
    "darfst",
    "dürfen",
    "vermeide",
    "verboten",
    "ohne",
    "stets",
    "ausschließlich",
    // French
    "jamais",
    "toujours",
    "seulement",
    "uniquement",
    "dois",
    "doit",
    "devez",
    "interdit",
    "évite",
    "évitez",
    "pas",
    "sans",
    // Spanish and Portuguese
    "nunca",
    "jamás",
    "siempre",
    "solo",
    "sólo",
    "solamente",
    "únicamente",
    "debe",
    "debes",
    "prohibido",
    "evita",
    "sin",
    "sempre",
    "apenas",
    "somente",
    "não",
    "deve",
    "proibido",
    "evite",
    "sem",
    // Italian and Dutch
    "mai",
    "non",
    "devi",
    "vietato",
    "evitare",
    "senza",
    "soltanto",
    "nooit",
    "altijd",
    "niet",
    "geen",
    "alleen",
    "moet",
    "zonder",
    // Polish, Czech, Turkish
    "nigdy",
    "zawsze",
    "nie",
    "tylko",
    "musisz",
    "nikdy",
    "vždy",
    "pouze",
    "asla",
    "daima",
    "yalnızca",
    "sadece",
    // Russian and Ukrainian
    "никогда",
    "нельзя",
    "всегда",
    "только",
    "не",
    "должен",
    "должна",
    "должно",
    "должны",
    "без",
    "запрещено",
    "ніколи",
    "завжди",
    "тільки",
];

/// Pieces of sentences in scripts that do not separate words.
const PIECES: &[&str] = &[
    "不要",
    "禁止",
    "必须",
    "必須",
    "总是",
    "總是",
    "始终",
    "永远",
    "只能",
    "切勿",
    "不能",
    "不得",
    "不可",
    "务必",
    "别",
    "請勿",
    "请勿",
    "絶対",
    "必ず",
    "しないで",
    "ないでください",
    "常に",
    "だけ",
    "するな",
    "절대",
    "항상",
    "반드시",
    "금지",
    "하지 마",
    "하지마",
    "말고",
    "만 사용",
    "from now on",
    "make sure",
    "instead of",
    "rather than",
    "لا ",
    "أبدا",
    "دائما",
];

/// Up to this many characters a paragraph is kept as a whole, with the sentences around.
const WHOLE: usize = 300;
/// A longer sentence is looked at in windows of this many characters, each half over the last.
const LONGEST: usize = 1_000;
/// Of a longer message only the ends are the user's own words; the rest is pasted.
const PASTED: usize = 20_000;
const PASTED_ENDS: usize = 4_000;

/// The standing sentences of a user message, as they were written.
pub(crate) fn standing(message: &str) -> Vec<String> {
    let mut found = Vec::new();
    for text in own_words(message) {
        for paragraph in paragraphs(text) {
            if paragraph.chars().count() <= WHOLE {
                found.extend(keep(&paragraph));
            } else {
                let windows = sentences(&paragraph).into_iter().flat_map(windows);
                found.extend(windows.filter_map(keep));
            }
        }
    }
    found
}

fn own_words(message: &str) -> Vec<&str> {
    if message.len() <= PASTED {
        return vec![message];
    }
    let head = message.floor_char_boundary(PASTED_ENDS);
    let tail = message.ceil_char_boundary(message.len() - PASTED_ENDS);
    vec![&message[..head], &message[tail..]]
}

/// Blocks of lines, each bullet a block of its own.
fn paragraphs(text: &str) -> Vec<String> {
    let mut out: Vec<String> = vec![String::new()];
    for line in text.lines() {
        let trimmed = line.trim();
        let is_bullet = trimmed.starts_with(['-', '*', '•'])
            || trimmed.split_once(['.', ')']).is_some_and(|(n, rest)| {
                !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()) && rest.starts_with(' ')
            });
        if trimmed.is_empty() || is_bullet {
            out.push(String::new());
        }
        if let Some(last) = out.last_mut() {
            if !last.is_empty() {
                last.push('\n');
            }
            last.push_str(trimmed);
        }
    }
    out.retain(|p| !p.is_empty());
    out
}

/// Splits behind full stops that a capital or a wide character follows.
fn sentences(paragraph: &str) -> Vec<&str> {
    let mut out = Vec::new();
    let mut start = 0;
    let mut chars = paragraph.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        let end = at + c.len_utf8();
        let ends = match c {
            '。' | '！' | '？' => true,
            '.' | '!' | '?' => {
                let rest = &paragraph[end..];
                let next = rest.trim_start().chars().next();
                rest.starts_with(char::is_whitespace)
                    && next.is_none_or(|n| !n.is_lowercase() && !n.is_ascii_punctuation())
            }
            _ => false,
        };
        if ends || chars.peek().is_none() {
            out.push(&paragraph[start..end]);
            start = end;
        }
    }
    out
}

/// A sentence as it is, or a longer one in overlapping windows.
fn windows(sentence: &str) -> Vec<&str> {
    let places: Vec<usize> = sentence.char_indices().map(|(at, _)| at).collect();
    if places.len() <= LONGEST {
        return vec![sentence];
    }
    let place = |n: usize| places.get(n).copied().unwrap_or(sentence.len());
    (0..places.len())
        .step_by(LONGEST / 2)
        .map(|start| &sentence[place(start)..place(start + LONGEST)])
        .collect()
}

fn keep(sentence: &str) -> Option<String> {
    let sentence = sentence.trim();
    is_standing(sentence).then(|| sentence.to_owned())
}

fn is_standing(sentence: &str) -> bool {
    let lower = sentence.to_lowercase();
    PIECES.iter().any(|piece| lower.contains(piece))
        || lower
            .split(|c: char| !c.is_alphanumeric() && c != '\'' && c != '’')
            .any(|word| WORDS.contains(&word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prohibitions_are_found_in_many_languages() {
        for text in [
            "never push to main",
            "Don't touch the schema.",
            "Do not rename public items",
            "You must run the tests first",
            "Use tabs only",
            "no new dependencies",
            "Bitte niemals auf main pushen!",
            "Ne modifie jamais ce fichier",
            "No toques la base de datos, nunca",
            "Никогда не трогай миграции",
            "不要修改数据库",
            "データベースを絶対に変更しないでください",
            "절대 main에 푸시하지 마세요",
        ] {
            assert_eq!(standing(text), [text], "{text}");
        }
    }

    #[test]
    fn plain_requests_are_not_standing() {
        for text in [
            "Fix the parser",
            "What does this do?",
            "now add a test for it",
            "",
        ] {
            assert!(standing(text).is_empty(), "{text}");
        }
    }

    #[test]
    fn a_long_paragraph_gives_the_sentence_alone() {
        let text = format!(
            "{} Never deploy on e.g. fridays. {}",
            "I looked at the code. ".repeat(20).trim(),
            "Then I went on. ".repeat(20).trim()
        );
        assert_eq!(standing(&text), ["Never deploy on e.g. fridays."]);
    }

    #[test]
    fn bullets_and_wrapped_lines_stay_whole() {
        let text = "Rules:\n- never push\n  to main\n- write tests\n1. only use std";
        assert_eq!(standing(text), ["- never push\nto main", "1. only use std"]);
    }

    #[test]
    fn of_a_paste_only_the_ends_are_the_users() {
        let paste = "error: must not happen\n".repeat(5_000);
        let text = format!("never do that\n\n{paste}\n\nalways ask");
        let found = standing(&text);
        assert!(found.iter().any(|s| s == "never do that"));
        assert!(found.iter().any(|s| s == "always ask"));
        assert!(found.len() < 500);
    }
}
