//! The size of an image from the beginning of its base64 text: PNG and JPEG.

/// Pixels of the longest side that the API takes.
pub(crate) const LARGEST: u32 = 8000;

/// Characters of base64 that are looked at. A JPEG's size may stand behind a preview image.
const LOOKED_AT: usize = 512 << 10;

/// Width and height in pixels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Size {
    pub(crate) width: u32,
    pub(crate) height: u32,
}

/// The size of an image, where its beginning tells.
pub(crate) fn size_of_base64(text: &[u8]) -> Option<Size> {
    let text = &text[..text.len().min(LOOKED_AT)];
    let head = decode(&text[..text.len().min(32)]);
    if head.starts_with(b"\x89PNG\r\n\x1a\n") {
        return png(&head);
    }
    if head.starts_with(b"\xff\xd8") {
        return jpeg(&decode(text));
    }
    None
}

fn png(bytes: &[u8]) -> Option<Size> {
    let number = |at: usize| Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
    Some(Size {
        width: number(16)?,
        height: number(20)?,
    })
}

/// Walks the segments up to the frame, which holds the size.
fn jpeg(bytes: &[u8]) -> Option<Size> {
    let number = |at: usize| Some(u16::from_be_bytes(bytes.get(at..at + 2)?.try_into().ok()?));
    let mut at = 2;
    loop {
        if *bytes.get(at)? != 0xff {
            return None;
        }
        match *bytes.get(at + 1)? {
            0xff => at += 1,
            0x01 | 0xd0..=0xd8 => at += 2,
            0xc0..=0xc3 | 0xc5..=0xc7 | 0xc9..=0xcb | 0xcd..=0xcf => {
                return Some(Size {
                    height: number(at + 5)?.into(),
                    width: number(at + 7)?.into(),
                });
            }
            0xd9 | 0xda => return None,
            _ => at += 2 + usize::from(number(at + 2)?.max(2)),
        }
    }
}

/// Decodes base64 up to the first character that is none.
fn decode(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len() / 4 * 3);
    let (mut bits, mut count) = (0u32, 0);
    for c in text {
        let value = match c {
            b'A'..=b'Z' => c - b'A',
            b'a'..=b'z' => c - b'a' + 26,
            b'0'..=b'9' => c - b'0' + 52,
            b'+' | b'-' => 62,
            b'/' | b'_' => 63,
            _ => break,
        };
        bits = bits << 6 | u32::from(value);
        count += 6;
        if count >= 8 {
            count -= 8;
            out.push((bits >> count) as u8);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encode(bytes: &[u8]) -> String {
        const DIGITS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        let bits: Vec<String> = bytes.iter().map(|b| format!("{b:08b}")).collect();
        let bits = bits.concat();
        bits.as_bytes()
            .chunks(6)
            .map(|c| {
                let c = format!("{:0<6}", std::str::from_utf8(c).unwrap());
                char::from(DIGITS[usize::from_str_radix(&c, 2).unwrap()])
            })
            .collect()
    }

    #[test]
    fn s7_a_png_tells_its_size() {
        let mut png = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR".to_vec();
        png.extend(9000u32.to_be_bytes());
        png.extend(10u32.to_be_bytes());
        png.extend([8, 6, 0, 0, 0]);
        let size = size_of_base64(encode(&png).as_bytes());
        assert_eq!(
            size,
            Some(Size {
                width: 9000,
                height: 10
            })
        );
    }

    #[test]
    fn a_jpeg_tells_its_size_behind_other_segments() {
        let mut jpeg = b"\xff\xd8\xff\xe0\0\x10JFIF\0\x01\x01\0\0\x01\0\x01\0\0".to_vec();
        jpeg.extend(b"\xff\xe1");
        jpeg.extend(30_000u16.to_be_bytes());
        jpeg.extend(std::iter::repeat_n(0xff, 29_998));
        jpeg.extend(b"\xff\xc2\0\x11\x08");
        jpeg.extend(12u16.to_be_bytes());
        jpeg.extend(8001u16.to_be_bytes());
        let size = size_of_base64(encode(&jpeg).as_bytes());
        assert_eq!(
            size,
            Some(Size {
                width: 8001,
                height: 12
            })
        );
        for cut in [3, 10, 40, 30_010] {
            let part = encode(&jpeg[..cut]);
            assert_eq!(size_of_base64(part.as_bytes()), None);
        }
    }

    #[test]
    fn other_bytes_have_no_size() {
        assert_eq!(size_of_base64(b""), None);
        assert_eq!(size_of_base64(b"not base64!"), None);
        assert_eq!(size_of_base64(encode(b"GIF89a").as_bytes()), None);
    }
}
