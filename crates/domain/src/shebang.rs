//! The first line of a script, `#!` and its interpreter, and what editors of other systems do to it.
//!
//! It only looks at bytes; `config` reads them to warn, a guard reads them to say why a script could not be started.

use std::fmt;

/// So much of a script is read: Linux looks no further.
pub const HEAD: usize = 256;

/// Why the kernel does not find the interpreter that a person reads in the first line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// `#!/bin/sh` and a carriage return, which is part of the name then.
    CarriageReturn,
    /// A byte order mark before `#!`.
    ByteOrderMark,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::CarriageReturn => {
                "the first line ends with a carriage return, which counts as part of the interpreter's name: save the file with Unix line ends"
            }
            Self::ByteOrderMark => {
                "a byte order mark stands before #!, so the first line names no interpreter: save the file as UTF-8 without a byte order mark"
            }
        })
    }
}

/// What is wrong with the first line of a script that begins with `head`.
#[must_use]
pub fn fault(head: &[u8]) -> Option<Fault> {
    if let Some(rest) = head.strip_prefix("\u{feff}".as_bytes()) {
        return rest.starts_with(b"#!").then_some(Fault::ByteOrderMark);
    }
    line(head)?.ends_with(b"\r").then_some(Fault::CarriageReturn)
}

/// The interpreter that the first line names.
#[must_use]
pub fn interpreter(head: &[u8]) -> Option<&str> {
    let line = std::str::from_utf8(line(head)?).ok()?;
    line.split([' ', '\t']).find(|word| !word.is_empty())
}

/// The first line behind `#!`.
fn line(head: &[u8]) -> Option<&[u8]> {
    head.strip_prefix(b"#!")?.split(|byte| *byte == b'\n').next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_other_systems_do_to_a_first_line_is_named_and_nothing_else_is() {
        assert_eq!(fault(b"#!/bin/sh\r\necho hi\r\n"), Some(Fault::CarriageReturn));
        assert_eq!(fault(b"#!/usr/bin/env bash\r\n"), Some(Fault::CarriageReturn));
        assert_eq!(fault(b"\xef\xbb\xbf#!/bin/sh\n"), Some(Fault::ByteOrderMark));
        for fine in [&b"#!/bin/sh\necho hi\r\n"[..], b"\xef\xbb\xbfecho", b"\x7fELF\r", b"", b"#!"]
        {
            assert_eq!(fault(fine), None, "{fine:?}");
        }
    }

    #[test]
    fn the_interpreter_is_the_first_word() {
        assert_eq!(interpreter(b"#! /usr/bin/env pyton3\nprint(1)\n"), Some("/usr/bin/env"));
        assert_eq!(interpreter(b"#!/opt/py\n"), Some("/opt/py"));
        assert_eq!(interpreter(b"echo\n"), None);
    }
}
