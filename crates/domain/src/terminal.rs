//! What a line of output would look like on a terminal: its text, its colours, and nothing else that a terminal does.
//!
//! Only the sequences that choose a look are read (SGR, ECMA-48 8.3.117). Every other sequence is removed, and so is every control
//! character but the tab: a line can neither move a cursor nor hide what is beside it. A sequence without an end loses only its beginning,
//! so that no text behind it is hidden. Each line begins plain.

use std::borrow::Cow;

/// A colour of the sixteen: 0 to 7 as SGR 30 to 37, 8 to 15 as 90 to 97.
pub type Colour = u8;

/// How a piece of text looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[expect(missing_docs, reason = "the names say it")]
#[expect(clippy::struct_excessive_bools, reason = "a terminal switches each by itself")]
pub struct Look {
    pub colour: Option<Colour>,
    pub ground: Option<Colour>,
    pub bold: bool,
    pub dim: bool,
    pub italic: bool,
    pub underline: bool,
}

/// A piece of text that looks the same from its beginning to its end.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Span {
    pub look: Look,
    pub text: String,
}

/// The sixteen colours as xterm has them: another colour becomes the nearest of these.
const SIXTEEN: [[u8; 3]; 16] = [
    [0, 0, 0],
    [205, 0, 0],
    [0, 205, 0],
    [205, 205, 0],
    [0, 0, 238],
    [205, 0, 205],
    [0, 205, 205],
    [229, 229, 229],
    [127, 127, 127],
    [255, 0, 0],
    [0, 255, 0],
    [255, 255, 0],
    [92, 92, 255],
    [255, 0, 255],
    [0, 255, 255],
    [255, 255, 255],
];

const ESCAPE: char = '\u{1b}';
const BELL: char = '\u{7}';
/// Introducers of one character, and the end of a string.
const CSI: char = '\u{9b}';
const END: char = '\u{9c}';

/// Whether `text` has anything that a terminal would not print as it stands.
#[must_use]
pub fn is_plain(text: &str) -> bool {
    !text.chars().any(|c| c.is_control() && c != '\t')
}

/// `text` as people read it.
#[must_use]
pub fn plain(text: &str) -> Cow<'_, str> {
    if is_plain(text) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(spans(text).into_iter().map(|span| span.text).collect())
}

/// `text` in pieces; none is empty, and no two neighbours look the same.
#[must_use]
pub fn spans(text: &str) -> Vec<Span> {
    let (mut spans, mut look, mut rest) = (Vec::<Span>::new(), Look::default(), text);
    while let Some(c) = rest.chars().next() {
        let behind = &rest[c.len_utf8()..];
        rest = match c {
            ESCAPE => escape(behind, &mut look),
            CSI => control(behind, &mut look),
            '\u{90}' | '\u{98}' | '\u{9d}' | '\u{9e}' | '\u{9f}' => string(behind),
            // What a progress bar writes over itself stands side by side.
            '\r' if !behind.is_empty() => push(&mut spans, look, ' ', behind),
            c if c.is_control() && c != '\t' => behind,
            c => push(&mut spans, look, c, behind),
        };
    }
    spans
}

fn push<'t>(spans: &mut Vec<Span>, look: Look, c: char, behind: &'t str) -> &'t str {
    match spans.last_mut() {
        Some(last) if last.look == look => last.text.push(c),
        _ => spans.push(Span { look, text: c.to_string() }),
    }
    behind
}

/// What is behind the sequence that an ESC began.
fn escape<'t>(rest: &'t str, look: &mut Look) -> &'t str {
    let Some(c) = rest.chars().next() else { return rest };
    match c {
        '[' => control(&rest[1..], look),
        'P' | 'X' | ']' | '^' | '_' => string(&rest[1..]),
        // Some intermediate bytes, then a final one.
        ' '..='~' => {
            let end = rest.trim_start_matches(|c| matches!(c, ' '..='/'));
            end.strip_prefix(|c| matches!(c, '0'..='~')).unwrap_or(end)
        }
        _ => rest,
    }
}

/// What is behind a string: it ends with ST or BEL.
fn string(rest: &str) -> &str {
    let mut found = rest.char_indices().filter(|(_, c)| matches!(*c, BELL | END | ESCAPE));
    match found.next() {
        // Another sequence would begin here: the string had no end.
        Some((at, ESCAPE)) => rest[at + 1..].strip_prefix('\\').unwrap_or(rest),
        Some((at, c)) => &rest[at + c.len_utf8()..],
        None => rest,
    }
}

/// What is behind a control sequence; changes `look` if that is what it is for.
fn control<'t>(rest: &'t str, look: &mut Look) -> &'t str {
    let parameters = rest.len() - rest.trim_start_matches(|c| matches!(c, '0'..='?')).len();
    let (parameters, behind) = rest.split_at(parameters);
    let end = behind.trim_start_matches(|c| matches!(c, ' '..='/'));
    let Some(last) = end.chars().next().filter(|c| matches!(c, '@'..='~')) else { return end };
    // One with `<`, `=`, `>` or `?` is private, one with intermediate bytes is another.
    let private = parameters.starts_with(['<', '=', '>', '?']);
    if last == 'm' && end.len() == behind.len() && !private {
        choose(parameters, look);
    }
    &end[1..]
}

/// Carries out the parameters of an SGR; what is not known changes nothing.
fn choose(parameters: &str, look: &mut Look) {
    let mut given = parameters.split(';');
    while let Some(parameter) = given.next() {
        let (code, sub) = parameter.split_once(':').unwrap_or((parameter, ""));
        match number(code) {
            Some(which @ (38 | 48 | 58)) => {
                let colour = if sub.is_empty() { listed(&mut given) } else { nested(sub) };
                match (which, colour) {
                    (38, Some(colour)) => look.colour = Some(colour),
                    (48, Some(colour)) => look.ground = Some(colour),
                    _ => {}
                }
            }
            Some(4) => look.underline = sub != "0",
            Some(code) if sub.is_empty() => simple(code, look),
            _ => {}
        }
    }
}

fn simple(code: u16, look: &mut Look) {
    let nth = |from: u16| u8::try_from(code - from).ok();
    match code {
        0 => *look = Look::default(),
        1 => look.bold = true,
        2 => look.dim = true,
        3 => look.italic = true,
        21 => look.underline = true,
        22 => (look.bold, look.dim) = (false, false),
        23 => look.italic = false,
        24 => look.underline = false,
        30..=37 => look.colour = nth(30),
        39 => look.colour = None,
        40..=47 => look.ground = nth(40),
        49 => look.ground = None,
        90..=97 => look.colour = nth(82),
        100..=107 => look.ground = nth(92),
        _ => {}
    }
}

/// One that is left out is 0.
fn number(text: &str) -> Option<u16> {
    if text.is_empty() { Some(0) } else { text.parse().ok() }
}

/// `5;N` or `2;R;G;B`, as the parameters behind.
fn listed<'t>(given: &mut impl Iterator<Item = &'t str>) -> Option<Colour> {
    match given.next()? {
        "5" => indexed(given.next()?),
        "2" => Some(nearest([part(given.next()?)?, part(given.next()?)?, part(given.next()?)?])),
        _ => None,
    }
}

/// `5:N`, `2:R:G:B` or `2:SPACE:R:G:B`.
fn nested(sub: &str) -> Option<Colour> {
    let parts: Vec<&str> = sub.split(':').collect();
    match parts[..] {
        ["5", index, ..] => indexed(index),
        ["2", red, green, blue] | ["2", _, red, green, blue, ..] => {
            Some(nearest([part(red)?, part(green)?, part(blue)?]))
        }
        _ => None,
    }
}

fn part(text: &str) -> Option<u8> {
    number(text)?.try_into().ok()
}

/// A colour of the 256: the sixteen, a cube of 6 by 6 by 6, and 24 greys.
fn indexed(text: &str) -> Option<Colour> {
    let index = part(text)?;
    Some(match index {
        0..=15 => index,
        16..=231 => {
            let step = |n: u8| if n == 0 { 0 } else { 55 + n * 40 };
            let n = index - 16;
            nearest([step(n / 36), step(n / 6 % 6), step(n % 6)])
        }
        232.. => nearest([8 + (index - 232) * 10; 3]),
    })
}

fn nearest(colour: [u8; 3]) -> Colour {
    let apart = |other: &[u8; 3]| -> i32 {
        let square = |(a, b): (&u8, &u8)| (i32::from(*a) - i32::from(*b)).pow(2);
        colour.iter().zip(other).map(square).sum()
    };
    let best = (0_u8..).zip(&SIXTEEN).min_by_key(|(_, other)| apart(other));
    best.map_or(0, |(nth, _)| nth)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> Vec<(String, String)> {
        let words = |look: Look| {
            let mut words = Vec::new();
            words.extend(look.colour.map(|colour| format!("f{colour}")));
            words.extend(look.ground.map(|ground| format!("g{ground}")));
            let switches = [
                (look.bold, "bold"),
                (look.dim, "dim"),
                (look.italic, "italic"),
                (look.underline, "underline"),
            ];
            words.extend(switches.iter().filter(|(on, _)| *on).map(|(_, word)| (*word).to_owned()));
            words.join(" ")
        };
        spans(text).into_iter().map(|span| (words(span.look), span.text)).collect()
    }

    #[test]
    fn colours_and_weights_are_read_and_everything_else_is_removed() {
        for (text, expected) in [
            ("plain 出库 🚚\ttab", &[("", "plain 出库 🚚\ttab")][..]),
            ("\u{1b}[31mred\u{1b}[0m off", &[("f1", "red"), ("", " off")]),
            ("\u{1b}[1;4;33;44mall\u{1b}[m", &[("f3 g4 bold underline", "all")]),
            (
                "\u{1b}[2;3ma\u{1b}[22mb\u{1b}[23mc",
                &[("dim italic", "a"), ("italic", "b"), ("", "c")],
            ),
            (
                "\u{1b}[4ma\u{1b}[24;21mb\u{1b}[4:0mc\u{1b}[4:3md",
                &[("underline", "ab"), ("", "c"), ("underline", "d")],
            ),
            ("\u{1b}[95;103mx\u{1b}[39my\u{1b}[49mz", &[("f13 g11", "x"), ("g11", "y"), ("", "z")]),
            ("\u{1b}[38;5;196ma\u{1b}[38;5;9mb\u{1b}[48;5;232mc", &[("f9", "ab"), ("f9 g0", "c")]),
            (
                "\u{1b}[38;2;0;0;240ma\u{1b}[38:2::0:250:0mb\u{1b}[38:2:0:250:0mc",
                &[("f4", "a"), ("f10", "bc")],
            ),
            ("\u{1b}[38:5:1ma\u{1b}[58;5;2;1mb", &[("f1", "a"), ("f1 bold", "b")]),
            (
                "\u{1b}[38;5;999ma\u{1b}[38;7;1mb\u{1b}[999mc\u{1b}[1:2md",
                &[("", "a"), ("bold", "bcd")],
            ),
            ("\u{1b}[2J\u{1b}[1;1Ha\u{1b}[?25lb\u{1b}[>4;1mc\u{1b}[1 md", &[("", "abcd")]),
            ("\u{1b}]8;;https://example.org\u{1b}\\link\u{1b}]8;;\u{7}.", &[("", "link.")]),
            ("\u{1b}]0;title\u{9c}a\u{1b}Pq#1\u{1b}\\b\u{90}x\u{9c}c", &[("", "abc")]),
            ("\u{1b}(Ba\u{1b}=b\u{1b}cc\u{9b}32md", &[("", "abc"), ("f2", "d")]),
            ("\u{1b}]0;no end", &[("", "0;no end")]),
            ("\u{1b}]0;\u{1b}[31mred", &[("", "0;"), ("f1", "red")]),
            ("\u{1b}[31", &[]),
            ("a\u{1b}[31\u{1b}[32mb\u{1b}[3é", &[("", "a"), ("f2", "bé")]),
            ("a\u{8}b\0c\u{7f}d\u{85}e\u{1b}", &[("", "abcde")]),
            ("10%\r20%\r", &[("", "10% 20%")]),
            ("\u{1b}[31m\u{1b}[31ma\u{1b}[0;31mb", &[("f1", "ab")]),
        ] {
            let expected: Vec<(String, String)> =
                expected.iter().map(|(look, text)| ((*look).into(), (*text).into())).collect();
            assert_eq!(shown(text), expected, "{text:?}");
        }
    }

    #[test]
    fn whatever_bytes_come_nothing_is_left_that_a_terminal_would_obey() {
        const PIECES: [&str; 24] = [
            "\u{1b}", "[", "]", "m", "3", "8", ";", ":", "5", "\u{9b}", "\u{9c}", "\u{7}", "\\",
            "P", "?", " ", "é", "出", "\t", "\r", "\0", "\u{90}", "a", "\u{85}",
        ];
        let mut seed = 7_u64;
        let mut roll = |sides: u64| {
            seed = seed
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) % sides
        };
        for _ in 0..20_000 {
            let mut text = String::new();
            for _ in 0..roll(24) {
                match roll(3) {
                    0 => text.extend(char::from_u32(u32::try_from(roll(0x300)).unwrap_or(0))),
                    _ => text.push_str(PIECES[usize::try_from(roll(24)).unwrap_or(0)]),
                }
            }
            let spans = spans(&text);
            let whole: String = spans.iter().map(|span| span.text.as_str()).collect();
            assert!(is_plain(&whole), "{text:?} became {whole:?}");
            assert_eq!(whole, plain(&text), "{text:?}");
            assert!(spans.iter().all(|span| !span.text.is_empty()), "{text:?}");
            assert!(spans.windows(2).all(|pair| pair[0].look != pair[1].look), "{text:?}");
            let wide = |text: &str| text.chars().filter(|c| matches!(c, 'é' | '出')).count();
            assert!(wide(&text) >= wide(&whole), "{text:?}");
            assert_eq!(plain(&whole), whole, "what is plain stays as it is");
        }
    }
}
