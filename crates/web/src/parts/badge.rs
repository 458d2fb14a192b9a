//! The badge of a job: its title and its word as a small picture, for pages that are not ours.

use askama::Template;

use soloist_domain::job::State;
use soloist_view::JobView;

/// Pixels of one letter of 11 px; a Chinese one is as wide as it is high.
const NARROW: usize = 7;
const WIDE: usize = 12;
/// Beside each of the two words, on both sides together.
const AROUND: usize = 16;
/// A longer title is cut.
const LONGEST: usize = 40;

#[derive(Template)]
#[template(path = "parts/badge.svg")]
struct Badge<'a> {
    xmlns: &'static str,
    title: String,
    word: &'a str,
    colour: &'static str,
    left: usize,
    width: usize,
    middles: (usize, usize),
}

/// The picture, as text. The colours are the dark ones of the light theme, on which white can be read.
#[must_use]
pub fn svg(job: &JobView) -> String {
    let title: String = job.title.chars().take(LONGEST).collect();
    let word = job.shown.word.as_str();
    let (left, right) = (wide(&title), wide(word));
    let badge = Badge {
        xmlns: "http://www.w3.org/2000/svg",
        middles: (left / 2, left + right / 2),
        width: left + right,
        colour: colour(job),
        title,
        word,
        left,
    };
    super::render(&badge)
}

fn wide(text: &str) -> usize {
    AROUND + text.chars().map(|c| if c.is_ascii() { NARROW } else { WIDE }).sum::<usize>()
}

fn colour(job: &JobView) -> &'static str {
    match job.state {
        _ if job.shown.needs => "#b3231f",
        State::Running => "#0b754a",
        State::Resting | State::Scheduled => "#1f7280",
        State::Starting => "#1f66b8",
        State::Waiting | State::Late | State::FailingOver | State::BackingOff => "#8f5600",
        State::Held => "#6a3fb0",
        State::GivenUp => "#b3231f",
        State::Off | State::Stopping | State::Unknown => "#63666d",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use soloist_view::fixtures::every_state;
    use soloist_view::words::Language;

    #[test]
    fn a_badge_says_title_and_word_and_nothing_in_it_is_markup() {
        for lang in Language::ALL {
            for (_, mut view) in every_state(lang) {
                view.title = "<b>Shipping & more".to_owned();
                let svg = svg(&view);
                assert!(svg.starts_with("<svg ") && svg.trim_end().ends_with("</svg>"), "{svg}");
                assert!(svg.contains(&view.shown.word) && svg.contains("Shipping"), "{svg}");
                assert!(!svg.contains("<b>"), "{svg}");
            }
        }
    }
}
