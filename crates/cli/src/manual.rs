//! `soloist completions` and `soloist man`: what a shell and `man` know of the command line, made from its own definition.
//!
//! Nothing is installed from here: the text goes to standard output, or into a directory that was named.

use std::path::{Path, PathBuf};

use clap::{Args, CommandFactory as _, ValueEnum};
use clap_complete::Shell as Generator;

use super::output::print;
use super::{Cli, Failure};

/// A shell that can be told how to complete the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Shell {
    Bash,
    Zsh,
    Fish,
}

#[derive(Debug, Args)]
#[expect(missing_docs, reason = "doc comments here are help texts")]
pub struct ManArgs {
    /// Write a page for each command into this directory, which is made if need be [default: print the main page]
    #[arg(long, value_name = "DIR")]
    pub dir: Option<PathBuf>,
}

/// `completions`.
pub(super) fn completions(shell: Shell) -> Result<(), Failure> {
    let generator = match shell {
        Shell::Bash => Generator::Bash,
        Shell::Zsh => Generator::Zsh,
        Shell::Fish => Generator::Fish,
    };
    // Not straight to standard output: the generator takes a reader that leaves early for a bug.
    let mut script = Vec::new();
    clap_complete::generate(generator, &mut Cli::command(), "soloist", &mut script);
    print(&String::from_utf8_lossy(&script))
}

/// `man`.
pub(super) fn man(args: &ManArgs) -> Result<(), Failure> {
    match &args.dir {
        Some(dir) => pages(dir),
        None => {
            let mut page = Vec::new();
            clap_mangen::Man::new(Cli::command()).render(&mut page)?;
            print(&String::from_utf8_lossy(&page))
        }
    }
}

fn pages(dir: &Path) -> Result<(), Failure> {
    let cannot = |error: std::io::Error| {
        Failure::Failed(format!("cannot write manual pages into {}: {error}", dir.display()))
    };
    std::fs::create_dir_all(dir).map_err(cannot)?;
    clap_mangen::generate_to(Cli::command(), dir).map_err(cannot)
}
