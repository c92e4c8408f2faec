//! Names of the projects' folders.

use std::path::Path;

/// Units of a path that are kept in its folder's name.
const KEPT: usize = 200;

/// The name of the folder in which the client keeps the sessions of a working directory: every
/// UTF-16 unit that is no ASCII letter or digit becomes a dash, and a long name is cut and gets a
/// hash. The name does not tell the directory; the rows do.
pub fn project_folder(cwd: &Path) -> String {
    encode(&cwd.to_string_lossy())
}

fn encode(path: &str) -> String {
    let units: Vec<u16> = path.encode_utf16().collect();
    let mut name: String = units.iter().take(KEPT).map(|u| dashed(*u)).collect();
    if units.len() > KEPT {
        let hash = units.iter().fold(0i32, |h, u| {
            h.wrapping_shl(5)
                .wrapping_sub(h)
                .wrapping_add(i32::from(*u))
        });
        name.push('-');
        name.push_str(&base36(hash.unsigned_abs()));
    }
    name
}

fn dashed(unit: u16) -> char {
    match u8::try_from(unit) {
        Ok(byte) if byte.is_ascii_alphanumeric() => char::from(byte),
        _ => '-',
    }
}

fn base36(mut n: u32) -> String {
    let mut digits = Vec::new();
    loop {
        digits.push(char::from_digit(n % 36, 36).unwrap_or('0'));
        n /= 36;
        if n == 0 {
            return digits.into_iter().rev().collect();
        }
    }
}

/// Whether a folder's name is the one wanted. Windows does not care for the case of a path, and
/// programs spell the drive's letter both ways, so the client made two folders for one directory.
pub(super) fn same(name: &str, wanted: &str, cwd: &Path) -> bool {
    name == wanted || (is_windows(cwd) && name.eq_ignore_ascii_case(wanted))
}

fn is_windows(path: &Path) -> bool {
    let text = path.to_string_lossy();
    let bytes = text.as_bytes();
    text.starts_with("\\\\")
        || (bytes.len() > 2
            && bytes[0].is_ascii_alphabetic()
            && bytes[1] == b':'
            && matches!(bytes[2], b'\\' | b'/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_unit_that_is_no_letter_or_digit_is_a_dash() {
        assert_eq!(encode("/home/dev/my_app.v2 x"), "-home-dev-my-app-v2-x");
        assert_eq!(encode("/grüße"), "-gr--e");
        // Two units outside the basic plane.
        assert_eq!(encode("/a😀b"), "-a--b");
    }

    #[test]
    fn s11_a_share_has_a_name_too() {
        assert_eq!(encode(r"\\srv\share\x"), "--srv-share-x");
    }

    #[test]
    fn only_names_over_200_units_get_a_hash() {
        let path = |n: usize| format!("/{}", "a".repeat(n - 1));
        assert_eq!(encode(&path(200)).len(), 200);
        let long = encode(&path(201));
        assert_eq!(&long[..200], encode(&path(200)));
        assert!(long[200..].starts_with('-') && long.len() > 202);
    }

    /// The hash as the definition has it, with numbers that cannot overflow.
    #[test]
    fn the_hash_agrees_with_its_definition() {
        let path = format!("/home/dev/{}", "wide-ü-".repeat(40));
        let mut h: i64 = 0;
        for unit in path.encode_utf16() {
            h = (h * 31 + i64::from(unit)) & 0xffff_ffff;
        }
        if h >= 1 << 31 {
            h -= 1 << 32;
        }
        let digits = &encode(&path)[201..];
        assert_eq!(i64::from_str_radix(digits, 36).unwrap(), h.abs());
    }

    #[test]
    fn s10_case_counts_except_on_windows() {
        let windows = Path::new(r"C:\Users\dev\x");
        assert!(same("c--users-dev-x", &project_folder(windows), windows));
        let unix = Path::new("/Users/dev/x");
        assert!(!same("-users-dev-x", &project_folder(unix), unix));
    }
}
