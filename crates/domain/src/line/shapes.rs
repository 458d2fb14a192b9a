//! Characters without a shape of their own that shape their neighbours: joiners in the words of many scripts and in emoji, selectors of
//! variants, tags of flags. Elsewhere they are invisible, and two names that look alike could differ by them; so each is allowed only
//! where it has an effect.
//!
//! The rules are narrower than Unicode's, whose text may hold a joiner anywhere; those of joiners follow CONTEXTJ of RFC 5892.

/// Whether the character at `at` of `text`, which has no shape of its own, belongs to what is seen beside it.
#[must_use]
pub fn shapes(text: &[char], at: usize) -> bool {
    let Some(&c) = text.get(at) else { return false };
    let before = at.checked_sub(1).and_then(|before| text.get(before)).copied();
    let (before, after) = (before.unwrap_or(' '), text.get(at + 1).copied().unwrap_or(' '));
    match c {
        // Behind a virama they choose its form, also at the end of a word.
        '\u{200c}' | '\u{200d}' if is_virama(before) => true,
        '\u{200c}' | '\u{200d}' => {
            is_seen(before) && is_seen(after) && (takes_joiners(before) || takes_joiners(after))
        }
        // Between two marks of one Hebrew letter.
        '\u{034f}' => is_hebrew_mark(before) && is_hebrew_mark(after),
        '\u{180b}'..='\u{180f}' => matches!(before, '\u{1820}'..='\u{18aa}'),
        // As text and not as emoji; dotted letters of Myanmar.
        '\u{fe0e}' => is_emoji(before) || matches!(before, '0'..='9' | '#' | '*'),
        '\u{fe00}' => matches!(before, '\u{1000}'..='\u{109f}' | '\u{aa60}'..='\u{aa7f}'),
        '\u{e0100}'..='\u{e01ef}' => is_ideograph(before),
        '\u{e0020}'..='\u{e007f}' => is_in_flag(text, at),
        _ => false,
    }
}

/// Something that has a shape, or a selector or mark that belongs to one; no space.
fn is_seen(c: char) -> bool {
    let whole = !super::is_invisible(c) && !c.is_whitespace();
    whole || matches!(c, '\u{fe0e}' | '\u{180b}'..='\u{180f}' | '\u{e0100}'..='\u{e01ef}')
}

/// Blocks of the scripts whose letters join or stack, and emoji.
fn takes_joiners(c: char) -> bool {
    matches!(u32::from(c),
        // Hebrew, Arabic, Syriac, Thaana, N'Ko, Samaritan, Mandaic; the scripts of India; Thai, Lao, Tibetan, Myanmar.
        0x0590..=0x109F
        // Philippine scripts, Khmer, Mongolian, Limbu, Tai; Buginese, Tai Tham; Balinese, Sundanese, Batak, Lepcha, Vedic signs.
        | 0x1700..=0x18AF | 0x1900..=0x19DF | 0x1A00..=0x1AAD | 0x1B00..=0x1C4F | 0x1CD0..=0x1CFF
        | 0x2D30..=0x2D7F
        // Syloti, Phags-pa, Saurashtra, Vedic, Kayah Li, Rejang, Javanese, Cham, Myanmar, Meetei; forms of Arabic.
        | 0xA800..=0xA82F | 0xA840..=0xA8FF | 0xA900..=0xA95F | 0xA980..=0xAAFF | 0xABC0..=0xABFF
        | 0xFB1D..=0xFDFF | 0xFE70..=0xFEFC
        // Kharoshthi, Manichaean, Psalter, Sogdian, Hanifi Rohingya; Brahmi and its kin; Adlam; Arabic mathematics.
        | 0x10A00..=0x10A5F | 0x10AC0..=0x10AFF | 0x10B80..=0x10BAF | 0x10D00..=0x10D3F | 0x10F00..=0x10FDF
        | 0x11000..=0x11FFF | 0x1E900..=0x1E95F | 0x1EC70..=0x1EEFF)
        || is_emoji(c)
        || c == '\u{fe0f}'
}

/// Emoji, and the symbols that may be shown as emoji.
fn is_emoji(c: char) -> bool {
    matches!(u32::from(c),
        0xA9 | 0xAE | 0x203C | 0x2049 | 0x20E3 | 0x2122 | 0x2139 | 0x2190..=0x27BF | 0x2900..=0x297F
        | 0x2B00..=0x2BFF | 0x3030 | 0x303D | 0x3297 | 0x3299 | 0x1F000..=0x1FAFF)
}

/// Han, of every block.
fn is_ideograph(c: char) -> bool {
    matches!(u32::from(c), 0x3005 | 0x3007 | 0x3400..=0x4DBF | 0x4E00..=0x9FFF | 0xF900..=0xFAFF | 0x20000..=0x3FFFD)
}

fn is_hebrew_mark(c: char) -> bool {
    matches!(
        c,
        '\u{0591}'
            ..='\u{05bd}'
                | '\u{05bf}'
                | '\u{05c1}'
                | '\u{05c2}'
                | '\u{05c4}'
                | '\u{05c5}'
                | '\u{05c7}'
    )
}

/// What ends the vowel of a letter (combining class 9 in UnicodeData.txt).
fn is_virama(c: char) -> bool {
    matches!(
        u32::from(c),
        0x094D
            | 0x09CD
            | 0x0A4D
            | 0x0ACD
            | 0x0B4D
            | 0x0BCD
            | 0x0C4D
            | 0x0CCD
            | 0x0D3B
            | 0x0D3C
            | 0x0D4D
            | 0x0DCA
            | 0x0E3A
            | 0x0EBA
            | 0x0F84
            | 0x1039
            | 0x103A
            | 0x1714
            | 0x1715
            | 0x1734
            | 0x17D2
            | 0x1A60
            | 0x1B44
            | 0x1BAA
            | 0x1BAB
            | 0x1BF2
            | 0x1BF3
            | 0x2D7F
            | 0xA806
            | 0xA82C
            | 0xA8C4
            | 0xA953
            | 0xA9C0
            | 0xAAF6
            | 0xABED
            | 0x10A3F
            | 0x11046
            | 0x11070
            | 0x1107F
            | 0x110B9
            | 0x11133
            | 0x11134
            | 0x111C0
            | 0x11235
            | 0x112EA
            | 0x1134D
            | 0x11442
            | 0x114C2
            | 0x115BF
            | 0x1163F
            | 0x116B6
            | 0x1172B
            | 0x11839
            | 0x1193D
            | 0x1193E
            | 0x119E0
            | 0x11A34
            | 0x11A47
            | 0x11A99
            | 0x11C3F
            | 0x11D44
            | 0x11D45
            | 0x11D97
            | 0x11F41
            | 0x11F42
    )
}

/// Whether the tag at `at` is one of a flag: the black flag, the tags of a region as CLDR names it (3 to 7 small letters and
/// digits), and the tag that ends it.
fn is_in_flag(text: &[char], at: usize) -> bool {
    let is_tag = |c: &char| matches!(c, '\u{e0020}'..='\u{e007f}');
    let begin = text[..at].iter().rposition(|c| !is_tag(c));
    let Some(begin) = begin.filter(|begin| text[*begin] == '\u{1f3f4}') else { return false };
    let tags = &text[begin + 1..];
    let tags = &tags[..tags.iter().position(|c| !is_tag(c)).unwrap_or(tags.len())];
    let Some(('\u{e007f}', region)) = tags.split_last() else { return false };
    let of_region = |c: &char| matches!(c, '\u{e0030}'..='\u{e0039}' | '\u{e0061}'..='\u{e007a}');
    (3..=7).contains(&region.len()) && region.iter().all(of_region)
}

#[cfg(test)]
mod tests {
    use crate::line::{NotALine, clean_line};

    /// Words as people write them, several of each script.
    const WRITTEN: [(&str, &[&str]); 24] = [
        (
            "Persian",
            &[
                "می\u{200c}خواهم اجرا شود",
                "علی\u{200c}رضا",
                "PDF\u{200c}ها",
                "۱۰\u{200c}ها",
                "ه\u{200d}.ق.",
            ],
        ),
        ("Arabic", &["محمد", "الشَّمْس", "لـه"]),
        ("Urdu", &["ٹائم\u{200c}پاس", "پاکستان"]),
        ("Sorani", &["بە\u{200c}کار", "دە\u{200c}وڵەت"]),
        ("Sinhala", &["ශ්\u{200d}රී ලංකා", "ක්\u{200d}ෂ", "වාක්\u{200d}ය"]),
        ("Devanagari", &["क्\u{200d}ष", "क्\u{200c}ष", "र्\u{200d}य", "नमस्ते", "क्\u{200d}"]),
        ("Bengali", &["র\u{200d}্যাব", "উদ্\u{200c}যাপন", "বাংলা"]),
        ("Malayalam", &["അവന്\u{200d}", "മലയാളം", "പാല്\u{200d} വില"]),
        ("Kannada", &["ರ\u{200d}್ಯಾಂಕ್", "ಕನ್ನಡ"]),
        ("Tamil", &["க்\u{200c}ஷ", "தமிழ்"]),
        ("Telugu", &["క్\u{200c}షేత్రం", "తెలుగు"]),
        ("Gujarati", &["ક્\u{200d}ષ", "ગુજરાતી"]),
        ("Thai", &["สวัสดี", "ที่นี่", "กรุงเทพฯ"]),
        ("Lao and Khmer", &["ສະບາຍດີ", "ភាសាខ្មែរ", "ខ្\u{200c}ម"]),
        ("Tibetan", &["བོད་སྐད་", "རྒྱ་མཚོ"]),
        ("Myanmar", &["မြန်မာ", "ကြည်", "က\u{fe00}"]),
        ("Mongolian", &["ᠮᠣᠩᠭᠣᠯ", "ᠪᠠᠶ\u{180b}ᠢᠨ\u{180e}ᠠ"]),
        ("Hebrew", &["שָׁלוֹם", "יְרוּשָׁלַ\u{34f}ִם", "צה״ל"]),
        ("Hangul", &["한국어", "\u{1112}\u{1161}\u{11ab}", "\u{1100}\u{1161}"]),
        ("Han and Kana", &["李伟", "葛\u{e0100}城", "カナ", "が"]),
        ("Latin", &["Zoë O’Neill", "Đặng Thị", "e\u{301}cole", "naïve"]),
        (
            "Families",
            &[
                "👩\u{200d}💻 takes over",
                "👨\u{200d}👩\u{200d}👧 day off",
                "❤\u{fe0f}\u{200d}🔥",
                "🏳\u{fe0f}\u{200d}🌈",
                "👩🏽\u{200d}🔧",
                "🧑🏻\u{200d}❤\u{fe0f}\u{200d}💋\u{200d}🧑🏿",
                "🐻\u{200d}❄\u{fe0f}",
            ],
        ),
        (
            "Flags",
            &[
                "🇨🇳 ok",
                "🏴\u{e0067}\u{e0062}\u{e0065}\u{e006e}\u{e0067}\u{e007f} office",
                "🏴\u{200d}☠\u{fe0f}",
                "🏴\u{e0067}\u{e0062}\u{e0073}\u{e0063}\u{e0074}\u{e007f}🏴\u{e0067}\u{e0062}\u{e0077}\u{e006c}\u{e0073}\u{e007f}",
            ],
        ),
        (
            "Keycaps and text style",
            &["1\u{fe0f}\u{20e3}", "#\u{fe0f}\u{20e3}", "☎\u{fe0e}", "✔\u{fe0e} done", "👍🏿"],
        ),
    ];

    /// What is never visible, whatever its neighbours.
    const UNSEEN: [std::ops::RangeInclusive<char>; 10] = [
        '\u{0}'..='\u{1f}',
        '\u{7f}'..='\u{9f}',
        '\u{ad}'..='\u{ad}',
        '\u{61c}'..='\u{61c}',
        '\u{200b}'..='\u{200b}',
        '\u{200e}'..='\u{200f}',
        '\u{2028}'..='\u{202e}',
        '\u{2060}'..='\u{206f}',
        '\u{feff}'..='\u{feff}',
        '\u{e0000}'..='\u{e001f}',
    ];

    fn words() -> impl Iterator<Item = &'static str> {
        WRITTEN.iter().flat_map(|(_, words)| *words).copied()
    }

    /// `word` with `c` put before its character `at`.
    fn with(word: &str, at: usize, c: char) -> String {
        let mut all: Vec<char> = word.chars().collect();
        all.insert(at, c);
        all.into_iter().collect()
    }

    fn is_line(text: &str) -> bool {
        clean_line(text, 64).is_ok()
    }

    #[test]
    fn every_word_that_people_write_is_a_line_alone_and_beside_any_other() {
        for (script, words) in WRITTEN {
            for word in words {
                assert_eq!(clean_line(word, 64).as_deref(), Ok(*word), "{script}");
            }
        }
        for (one, other) in words().flat_map(|one| words().map(move |other| (one, other))) {
            assert!(is_line(&format!("{one} {other}")), "{one} {other}");
            assert!(is_line(&format!("{one}, {other}!")), "{one}, {other}!");
        }
    }

    #[test]
    fn what_is_never_seen_is_refused_at_every_place_of_every_word() {
        for word in words() {
            let inner = 1..word.chars().count();
            for c in UNSEEN.into_iter().flatten() {
                for at in inner.clone() {
                    let text = with(word, at, c);
                    // It may part a joiner from what it joins, and that is found first.
                    let refused = clean_line(&text, 64);
                    assert!(
                        matches!(refused, Err(NotALine::Invisible(_))),
                        "{text:?}: {refused:?}"
                    );
                }
            }
        }
    }

    #[test]
    fn a_joiner_that_joins_nothing_and_a_tag_without_its_flag_are_refused() {
        let joiners = ['\u{200c}', '\u{200d}'];
        for word in words() {
            for (one, other) in joiners.iter().flat_map(|one| joiners.map(|other| (*one, other))) {
                // Doubled, wherever one stood or none did.
                for at in 0..=word.chars().count() {
                    let text = with(&with(word, at, one), at, other);
                    assert!(!is_line(&text), "{text:?}");
                }
            }
            for joiner in joiners {
                for text in [
                    format!("{joiner}{word}"),
                    format!("{word} {joiner}"),
                    format!("a {joiner}{word}"),
                ] {
                    assert!(!is_line(&text), "{text:?}");
                }
            }
            for tag in ('\u{e0020}'..='\u{e007f}').step_by(7) {
                for at in 0..=word.chars().count() {
                    let text = with(word, at, tag);
                    // In the middle of a flag it may make another one.
                    assert!(word.contains('🏴') || !is_line(&text), "{text:?}");
                }
            }
        }
        for text in [
            "\u{200d}",
            "\u{200c}",
            "ad\u{200c}min",
            "ad\u{200d}min",
            "a\u{200d}",
            "出\u{200d}库",
            "аd\u{200c}мин",
        ] {
            assert!(!is_line(text), "{text:?}");
        }
        // Cut short, too long, without its flag, with capitals, empty.
        for tags in ["gbeng", "gbengxxx\u{7f}", "GBENG\u{7f}", "gb\u{7f}", "\u{7f}", "gb en\u{7f}"]
        {
            let tags: String =
                tags.chars().filter_map(|c| char::from_u32(0xE0000 + u32::from(c))).collect();
            assert!(!is_line(&format!("🏴{tags}")), "{tags:?}");
            assert!(!is_line(&format!("🏴{tags} office")), "{tags:?}");
        }
        assert!(!is_line("a\u{e0067}\u{e0062}\u{e0065}\u{e006e}\u{e0067}\u{e007f}"));
        assert!(
            !is_line("ad\u{fe0e}min") && !is_line("ad\u{e0100}min") && !is_line("ad\u{34f}min")
        );
    }
}
