//! Keys by which folded parts are addressed: short, and unique within what was read.

use std::collections::HashMap;

/// Shortest key made of a call's identifier.
pub(crate) const SHORTEST: usize = 6;

/// Digits of the session's identifier in an address.
const SESSION: usize = 8;

/// Digits of a row's uuid in a key.
const DIGITS: usize = 12;

/// The session's part of an address.
pub(crate) fn session_part(id: &str) -> String {
    id.chars()
        .filter(char::is_ascii_alphanumeric)
        .take(SESSION)
        .collect()
}

/// A key made of a row's uuid, for words, for attachments, and for calls whose identifier does not
/// serve.
pub(crate) fn row_key(uuid: &str, block: usize) -> String {
    let digits: String = digits(uuid).take(DIGITS).collect();
    if block == 0 {
        format!("u-{digits}")
    } else {
        format!("u-{digits}-{block}")
    }
}

/// Whether a key with these digits names a row. More digits than a key has tell rows apart that
/// begin alike.
pub(crate) fn names_row(key: &str, uuid: &str) -> bool {
    let all = digits(uuid).count();
    key.len() >= DIGITS.min(all) && key.chars().eq(digits(uuid).take(key.len()))
}

fn digits(uuid: &str) -> impl Iterator<Item = char> + '_ {
    uuid.chars().filter(char::is_ascii_alphanumeric)
}

/// For each identifier its shortest suffix that no other one has; `None` for one that is too
/// short, holds other characters than letters, digits, `-` and `_`, or stands twice.
pub(crate) fn call_keys(ids: &[&str]) -> Vec<Option<String>> {
    let mut groups: HashMap<&str, Vec<usize>> = HashMap::new();
    for (i, id) in ids.iter().enumerate() {
        if let Some(suffix) = suffix(id, SHORTEST) {
            groups.entry(suffix).or_default().push(i);
        }
    }
    let mut keys = vec![None; ids.len()];
    let mut work: Vec<(usize, Vec<usize>)> = groups.into_values().map(|g| (SHORTEST, g)).collect();
    while let Some((len, group)) = work.pop() {
        if let [only] = group[..] {
            keys[only] = suffix(ids[only], len).map(str::to_owned);
            continue;
        }
        let mut longer: HashMap<&str, Vec<usize>> = HashMap::new();
        for i in group {
            if let Some(suffix) = suffix(ids[i], len + 1) {
                longer.entry(suffix).or_default().push(i);
            }
        }
        work.extend(longer.into_values().map(|g| (len + 1, g)));
    }
    keys
}

fn suffix(id: &str, len: usize) -> Option<&str> {
    let clean = id
        .bytes()
        .all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-');
    if !clean || id.len() < len {
        return None;
    }
    Some(&id[id.len() - len..])
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn ids_that_do_not_serve_have_no_key() {
        let keys = call_keys(&[
            "toolu_01AAAAAA",
            "toolu_01BAAAAA",
            "",
            "x y z a b",
            "same_1",
            "same_1",
        ]);
        assert_eq!(keys[0].as_deref(), Some("AAAAAA"));
        assert_eq!(keys[1].as_deref(), Some("BAAAAA"));
        assert_eq!(&keys[2..], [None, None, None, None]);
    }

    proptest! {
        #[test]
        fn a_key_is_a_suffix_of_one_id_only(ids in proptest::collection::vec("[ab]{4,9}", 1..12)) {
            let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
            for (i, key) in call_keys(&ids).into_iter().enumerate() {
                if let Some(key) = key {
                    prop_assert!(key.len() >= SHORTEST);
                    let owners: Vec<usize> = (0..ids.len()).filter(|&j| ids[j].ends_with(&key)).collect();
                    prop_assert_eq!(owners, vec![i]);
                }
            }
        }
    }
}
