//! Text that others wrote, made harmless where it is shown: what has no shape of its own gets one.
//!
//! A control character could move the cursor of a terminal; a bidirectional one changes what the letters around it seem to say; an
//! invisible one makes two names look alike. They stay in the store as they came. A joiner inside a Persian word or between two
//! emoji does none of that: by what is a line for people (`domain::line`) it is part of what is seen.

use std::borrow::Cow;

use soloist_domain::line::shapes;

/// `text` without control characters (U+FFFD stands for each; tabs stay), and with `<U+202E>` for each character that is not
/// seen or that turns the direction of others.
#[must_use]
pub fn visible(text: &str) -> Cow<'_, str> {
    if !text.chars().any(|c| is_control(c) || is_unseen(c)) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    let all: Vec<char> = text.chars().collect();
    for (at, c) in all.iter().copied().enumerate() {
        match c {
            c if is_control(c) => shown.push('\u{fffd}'),
            c if is_unseen(c) && !shapes(&all, at) => {
                shown.push_str(&format!("<U+{:04X}>", u32::from(c)))
            }
            c => shown.push(c),
        }
    }
    Cow::Owned(shown)
}

/// The same in a whole page, whose line ends are its own. What is put in is text there, too.
#[must_use]
pub fn visible_page(html: String) -> String {
    let is_own = |c: char| matches!(c, '\n' | '\r');
    if !html.chars().any(|c| is_hidden(c) && !is_own(c)) {
        return html;
    }
    let mut shown = String::with_capacity(html.len() + 64);
    let all: Vec<char> = html.chars().collect();
    for (at, c) in all.iter().copied().enumerate() {
        match c {
            c if !is_hidden(c) || is_own(c) => shown.push(c),
            c if is_control(c) => shown.push('\u{fffd}'),
            c if shapes(&all, at) => shown.push(c),
            c => shown.push_str(&format!("&#60;U+{:04X}&#62;", u32::from(c))),
        }
    }
    shown
}

/// Whether this moves the cursor of a terminal, is not seen, or turns the direction of others.
#[must_use]
pub fn is_hidden(c: char) -> bool {
    is_control(c) || is_unseen(c)
}

fn is_control(c: char) -> bool {
    c.is_control() && c != '\t'
}

/// Format characters (Unicode category Cf), separators of lines, fillers, tags and private use.
fn is_unseen(c: char) -> bool {
    matches!(u32::from(c),
        0xAD | 0x34F | 0x61C | 0x115F | 0x1160 | 0x17B4 | 0x17B5 | 0x180B..=0x180F | 0x200B..=0x200F
        | 0x2028..=0x202E | 0x2060..=0x206F | 0x3164 | 0xE000..=0xF8FF | 0xFEFF | 0xFFA0 | 0xFFF0..=0xFFFB
        | 0x1BCA0..=0x1BCA3 | 0x1D173..=0x1D17A | 0xE0000..=0xE0FFF | 0xF0000..=0x10FFFF)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_turns_or_hides_text_is_seen_and_plain_text_is_not_copied() {
        for plain in ["出库任务", "naïve 🚚 é", "a\tb", ""] {
            assert!(matches!(visible(plain), Cow::Borrowed(text) if text == plain), "{plain}");
        }
        assert_eq!(visible("ad\u{200b}min"), "ad<U+200B>min");
        assert_eq!(visible("\u{202e}nimda"), "<U+202E>nimda");
        assert_eq!(visible("\u{1b}[2J\r\n"), "\u{fffd}[2J\u{fffd}\u{fffd}");
        assert_eq!(visible("\u{9b}31m"), "\u{fffd}31m");
        assert_eq!(visible("\u{e0041}"), "<U+E0041>");
        assert_eq!(visible("ad\u{200d}min"), "ad<U+200D>min");
        for joined in ["می\u{200c}خواهم", "👩\u{200d}💻", "葛\u{e0100}城", "ශ්\u{200d}රී"]
        {
            assert_eq!(visible(joined), joined);
        }
    }

    #[test]
    fn a_page_keeps_its_lines_and_shows_what_hides_in_its_texts() {
        let page = |html: &str| visible_page(html.to_owned());
        assert_eq!(page("<p>\n\t出库\r\n</p>"), "<p>\n\t出库\r\n</p>");
        assert_eq!(page("<b>a\u{1b}[2J\u{202e}b</b>"), "<b>a\u{fffd}[2J&#60;U+202E&#62;b</b>");
        assert_eq!(page("<b>👩\u{200d}💻</b>"), "<b>👩\u{200d}💻</b>");
    }
}
