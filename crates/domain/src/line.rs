//! One line that people write and others read: display names, names of tokens, reasons.
//!
//! Invisible characters, and those that make a reader see something else than what is written, are refused here and nowhere else. It
//! decides nothing about scripts: every letter of every language is allowed. Some letters and emoji contain characters that have no shape
//! of their own (Persian and Sinhala with joiners, flags with tags): [`shapes`] knows where those belong to the visible text.

mod shapes;

use super::detail::Detail;

pub use shapes::shapes;

/// Why a text is no such line; reads on from the name of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotALine {
    /// Nothing but spaces.
    #[error("is empty: use at least one letter")]
    Empty,
    /// Over the limit.
    #[error("is too long: use at most {0} characters")]
    TooLong(usize),
    /// Something invisible.
    #[error(
        "has the invisible character U+{0:04X} (a control, a direction mark, or one without a shape): remove it"
    )]
    Invisible(u32),
}

impl NotALine {
    /// The same for programs and for people.
    #[must_use]
    pub fn detail(self) -> Detail {
        let text = Detail::new(self.to_string());
        match self {
            Self::Empty => text.told("refused-line-empty", &[]),
            Self::TooLong(most) => text.told("refused-line-long", &[("most", &most)]),
            Self::Invisible(c) => {
                text.told("refused-line-invisible", &[("code", &format!("U+{c:04X}"))])
            }
        }
    }
}

/// `text` without spaces at its ends, if it is one visible line of 1 to `most` characters.
///
/// # Errors
/// [`NotALine`].
pub fn clean_line(text: &str, most: usize) -> Result<String, NotALine> {
    let text = text.trim();
    if text.is_empty() {
        return Err(NotALine::Empty);
    }
    if text.chars().count() > most {
        return Err(NotALine::TooLong(most));
    }
    if !text.chars().any(is_invisible) {
        return Ok(text.to_owned());
    }
    let all: Vec<char> = text.chars().collect();
    let stray = |(at, c): (usize, &char)| (is_invisible(*c) && !shapes(&all, at)).then_some(*c);
    match all.iter().enumerate().find_map(stray) {
        Some(c) => Err(NotALine::Invisible(u32::from(c))),
        None => Ok(text.to_owned()),
    }
}

/// Controls, format characters (bidirectional marks too), fillers that look like nothing, line ends, private use and what is no
/// character. The emoji selector U+FE0F is none of them: it only chooses a shape. Where [`shapes`] says so others do, too.
fn is_invisible(c: char) -> bool {
    c.is_control()
        || matches!(u32::from(c),
            0x00AD | 0x034F | 0x0600..=0x0605 | 0x061C | 0x06DD | 0x070F | 0x0890 | 0x0891 | 0x08E2
            | 0x115F | 0x1160 | 0x17B4 | 0x17B5 | 0x180B..=0x180F | 0x200B..=0x200F | 0x2028..=0x202E
            | 0x2060..=0x206F | 0x2800 | 0x3164 | 0xE000..=0xF8FF | 0xFE00..=0xFE0E | 0xFEFF | 0xFFA0
            | 0xFFF0..=0xFFFB | 0x110BD | 0x110CD | 0x13430..=0x1345F | 0x1BCA0..=0x1BCA3
            | 0x1D173..=0x1D17A | 0xE0000..=0x10_FFFF)
        || u32::from(c) & 0xFFFE == 0xFFFE
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_every_script_are_lines_and_nothing_invisible_is() {
        for good in
            ["李伟", "Zoë O’Neill", "محمد", "Đặng Thị", "😀", "नमस्ते", "葛\u{e0100}城", "❤\u{fe0f}"]
        {
            assert_eq!(clean_line(&format!(" {good} "), 64).as_deref(), Ok(good));
        }
        for bad in [
            '\u{202e}',
            '\u{2066}',
            '\u{2069}',
            '\u{200e}',
            '\u{200f}',
            '\u{61c}',
            '\u{200b}',
            '\u{200c}',
            '\u{200d}',
            '\u{feff}',
            '\u{ad}',
            '\n',
            '\u{1b}',
            '\u{7f}',
            '\u{85}',
            '\u{2028}',
            '\u{3164}',
            '\u{e000}',
            '\u{e0041}',
            '\u{e0100}',
            '\u{ffff}',
            '\u{10ffff}',
        ] {
            let refused = clean_line(&format!("a{bad}b"), 64);
            assert_eq!(refused, Err(NotALine::Invisible(u32::from(bad))));
        }
    }

    #[test]
    fn a_line_is_neither_empty_nor_longer_than_allowed() {
        assert_eq!(clean_line("  ", 64), Err(NotALine::Empty));
        assert!(clean_line(&"李".repeat(64), 64).is_ok());
        assert_eq!(clean_line(&"李".repeat(65), 64), Err(NotALine::TooLong(64)));
    }
}
