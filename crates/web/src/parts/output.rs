//! Lines of output as a page shows them: with their colours, and a rule where another run goes on.

use askama::Template;

use super::endings::Endings;
use super::render;
use soloist_domain::terminal::{self, Look};
use soloist_store::journal::LogLine;
use soloist_view::LogLineView;
use soloist_view::words::{Arg, Language, Piece, say, second, visible};

/// A piece of a line: the classes of its look, and its text.
pub type Piecewise = Vec<(String, String)>;

/// Lines of output, with a rule where another run goes on.
#[derive(Template)]
#[template(path = "parts/log_lines.html")]
pub struct Lines {
    lines: Vec<Line>,
    /// How the run of the last line ended.
    ended: Option<String>,
}

struct Line {
    /// Runs alike that came before this one.
    alike: Option<Vec<Piece>>,
    /// That another run goes on here, and how the one before it ended.
    rule: Option<String>,
    view: LogLineView,
    at: Vec<Piece>,
    said: Piecewise,
    /// The reader followed a link to it.
    sought: bool,
}

impl Lines {
    /// Puts the lines together, oldest first.
    #[must_use]
    pub fn new(lines: &[LogLine], endings: &Endings, lang: Language) -> Self {
        let mut before: Option<&LogLine> = None;
        let mut rendered = Vec::new();
        for line in lines {
            let (run, node) = (line.run.as_str(), &line.node);
            let other = before.filter(|it| it.run != line.run || it.node != *node);
            let rule = other.map(|it| {
                let known = endings.rule(Some(it.run.as_str()), run, node, lang);
                known.unwrap_or_else(|| match it.node == *node {
                    true => say(lang, "output-next-run", &[]),
                    false => say(lang, "output-from-here", &[("node", Arg::from(node.as_str()))]),
                })
            });
            let alike = endings.alike(run).filter(|_| other.is_some()).map(<[Piece]>::to_vec);
            before = Some(line);
            rendered.push(Line {
                alike,
                rule,
                at: vec![second(line.at)],
                said: looks(&line.text),
                view: line.clone().into(),
                sought: false,
            });
        }
        Self { lines: rendered, ended: None }
    }

    /// The same, with the line marked that the reader followed a link to.
    #[must_use]
    pub fn seeking(mut self, seq: Option<u64>) -> Self {
        for line in &mut self.lines {
            line.sought = Some(line.view.seq) == seq;
        }
        self
    }

    /// The same, with a rule behind the last line if its run is over: for a reader to whom no line is added.
    #[must_use]
    pub fn to_the_end(self, endings: &Endings) -> Self {
        let last = self.lines.last();
        let ended = last.and_then(|line| endings.why(&line.view.run)).map(str::to_owned);
        Self { ended, ..self }
    }

    /// As text.
    #[must_use]
    pub fn html(&self) -> String {
        render(self)
    }
}

/// A text as a terminal would show it, in pieces.
#[must_use]
pub fn looks(text: &str) -> Piecewise {
    let pieces = terminal::spans(text).into_iter();
    pieces.map(|span| (classes(span.look), visible(&span.text).into_owned())).collect()
}

/// `f1 g4 bold`: colours by their numbers; nothing for plain text.
fn classes(look: Look) -> String {
    let colours = [("f", look.colour), ("g", look.ground)];
    let colours = colours.into_iter().filter_map(|(of, nth)| Some(format!("{of}{}", nth?)));
    let switches = [
        (look.bold, "bold"),
        (look.dim, "dim"),
        (look.italic, "italic"),
        (look.underline, "underline"),
    ];
    let switches = switches.into_iter().filter(|(on, _)| *on).map(|(_, word)| word.to_owned());
    colours.chain(switches).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_piece_has_classes_and_no_style() {
        assert_eq!(
            looks("a\u{1b}[1;31;42mb"),
            [(String::new(), "a".to_owned()), ("f1 g2 bold".to_owned(), "b".to_owned())]
        );
        assert_eq!(looks("\u{202e}x"), [(String::new(), "<U+202E>x".to_owned())]);
        assert_eq!(looks(""), []);
    }
}
