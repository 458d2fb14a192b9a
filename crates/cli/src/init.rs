//! `soloist init`: writes a first `soloist.toml` from three answers, or from none.
//!
//! It never overwrites a file, and leaves none behind that `soloist check` would refuse.

use std::fs::OpenOptions;
use std::io::{BufRead as _, IsTerminal as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use clap::Args;

use super::output::print;
use super::{Cli, Failure};
use soloist_config::{Environment, Overrides, examine};
use soloist_domain::name::JobName;

/// What the answers are when none are given.
const STORE: &str = "sqlite:data/soloist.db";
const JOB: &str = "example";
const COMMAND: &str = "sh -c 'while :; do date; sleep 5; done'";

#[derive(Debug, Args)]
#[expect(missing_docs, reason = "doc comments here are help texts")]
pub struct InitArgs {
    /// Ask nothing: a store on this machine (or --store URL), and a job that prints the time
    #[arg(long)]
    pub yes: bool,
}

/// What the file is made of.
struct Answers {
    store: String,
    job: JobName,
    command: Vec<String>,
}

/// `init`: writes the file that other commands would read: `--config FILE`, else `$SOLOIST_CONFIG`, else `./soloist.toml`.
pub(super) fn init(cli: &Cli, args: &InitArgs, env: Environment<'_>) -> Result<(), Failure> {
    let named = || env("SOLOIST_CONFIG").filter(|file| !file.is_empty()).map(PathBuf::from);
    let file = cli.config.clone().or_else(named);
    let file = file.unwrap_or_else(|| PathBuf::from("soloist.toml"));
    if file.symlink_metadata().is_ok() {
        return Err(exists(&file));
    }
    let store = cli.store.as_deref();
    let answers = match (args.yes, std::io::stdin().is_terminal()) {
        (true, _) => default_answers(store)?,
        (false, true) => asked(store)?,
        (false, false) => {
            return Err(Failure::Usage(
                "nobody can be asked here, because standard input is no terminal: say soloist init --yes".to_owned(),
            ));
        }
    };
    write(&file, &text(&answers), answers.store.contains('@'))?;
    examined(&file, env).inspect_err(|_| remove(&file))?;
    let shown = file.display();
    let named = cli.config.as_ref().map(|_| format!(" --config {shown}")).unwrap_or_default();
    print(&format!(
        "{shown} is written. Next:\n  soloist{named} check      is it right?\n  soloist{named}            run a node; it prints a link that makes the first admin"
    ))
}

fn exists(file: &Path) -> Failure {
    Failure::Refused(format!(
        "{} exists, and was left as it is: look at it with soloist check, or name another file with --config",
        file.display()
    ))
}

fn default_answers(store: Option<&str>) -> Result<Answers, Failure> {
    let job = JobName::new(JOB).map_err(|error| Failure::Failed(error.to_string()))?;
    let command = words(COMMAND).map_err(Failure::Failed)?;
    Ok(Answers { store: store.unwrap_or(STORE).to_owned(), job, command })
}

/// Three questions, each until its answer can be used; the first is left out when `--store` answers it.
fn asked(store: Option<&str>) -> Result<Answers, Failure> {
    let store = match store {
        Some(store) => store.to_owned(),
        None => answer(
            "Where do the nodes meet? A file for one machine, or redis://HOST:6379/0 for several",
            STORE,
            |text| {
                if text.contains(':') {
                    Ok(text.to_owned())
                } else {
                    Err(format!("write it as {STORE} or redis://HOST:6379/0"))
                }
            },
        )?,
    };
    let job = answer("What is the job called? a-z, 0-9, '.', '_', '-'", JOB, |text| {
        JobName::new(text).map_err(|error| error.to_string())
    })?;
    let command = answer("Which command does it run?", COMMAND, words)?;
    Ok(Answers { store, job, command })
}

fn answer<T>(
    question: &str,
    default: &str,
    read: impl Fn(&str) -> Result<T, String>,
) -> Result<T, Failure> {
    loop {
        eprint!("{question}\n  [{default}] ");
        let mut line = String::new();
        let got = std::io::stdin().lock().read_line(&mut line);
        if got.map_err(|error| Failure::Failed(error.to_string()))? == 0 {
            return Err(Failure::Refused("nothing was written".to_owned()));
        }
        let line = line.trim();
        match read(if line.is_empty() { default } else { line }) {
            Ok(value) => return Ok(value),
            Err(problem) => eprintln!("  {problem}"),
        }
    }
}

/// The words of a command as a shell would see them: quotes keep blanks, and what only a shell can do is refused.
fn words(text: &str) -> Result<Vec<String>, String> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None::<char>);
    for c in text.chars() {
        match (quote, c) {
            (Some(end), c) if c == end => quote = None,
            (Some(_), c) => word.get_or_insert_default().push(c),
            (None, '\'' | '"') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None, c) if c.is_whitespace() => words.extend(word.take()),
            (None, '|' | '&' | ';' | '<' | '>' | '$' | '`' | '\\') => {
                return Err(format!(
                    "there is no shell for {c:?}: put that into a script, or quote it behind sh -c"
                ));
            }
            (None, c) => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    match (quote, words.is_empty()) {
        (Some(quote), _) => Err(format!("the quotation mark {quote} is not closed")),
        (None, true) => Err("name a program and its arguments".to_owned()),
        (None, false) => Ok(words),
    }
}

fn text(answers: &Answers) -> String {
    let quoted = |text: &str| toml::Value::from(text).to_string();
    let command: Vec<String> = answers.command.iter().map(|word| quoted(word)).collect();
    format!(
        "\
# Written by soloist init. Every key: docs/configuration.md. Paths are relative to this file.

store  = {}
listen = \"127.0.0.1:8080\"
# public_url = \"https://jobs.example.org\"   # the address that browsers use, when it is another

[[job]]
name    = {}
command = [{}]   # a program and its arguments; there is no shell
",
        quoted(&answers.store),
        quoted(answers.job.as_str()),
        command.join(", ")
    )
}

fn write(file: &Path, text: &str, is_secret: bool) -> Result<(), Failure> {
    let cannot = |error| Failure::Failed(format!("cannot write {}: {error}", file.display()));
    let mode = if is_secret { 0o600 } else { 0o644 };
    let opened = OpenOptions::new().write(true).create_new(true).mode(mode).open(file);
    let mut opened = opened.map_err(|error| match error.kind() {
        std::io::ErrorKind::AlreadyExists => exists(file),
        _ => cannot(error),
    })?;
    opened.write_all(text.as_bytes()).inspect_err(|_| remove(file)).map_err(cannot)
}

/// Only what this process made: it was not there before.
fn remove(file: &Path) {
    std::fs::remove_file(file).ok();
}

/// What `soloist check` says of the file itself; the environment may well say something else for a while.
fn examined(file: &Path, env: Environment<'_>) -> Result<(), Failure> {
    let path = |name: &str| if name == "PATH" { env(name) } else { None };
    let over = Overrides { only_looks: true, ..Overrides::default() };
    examine(Some(file), over, &path).config?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_split_as_a_shell_splits_it_and_what_needs_a_shell_is_refused() {
        assert_eq!(words("sh ship.sh  --all").unwrap(), ["sh", "ship.sh", "--all"]);
        assert_eq!(words("sh -c 'a; b' \"\"").unwrap(), ["sh", "-c", "a; b", ""]);
        assert_eq!(words(COMMAND).unwrap().len(), 3);
        for wrong in ["", "  ", "a | b", "a > b", "a $HOME", "sh -c 'a"] {
            assert!(words(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn answers_with_quotes_are_still_toml() {
        let command = vec!["sh".to_owned(), "-c".to_owned(), "echo \"it's\" \\ 出库".to_owned()];
        let job = JobName::new("a").unwrap();
        let text = text(&Answers { store: STORE.to_owned(), job, command: command.clone() });
        let read: toml::Table = text.parse().unwrap();
        let read = read["job"][0]["command"].as_array().unwrap();
        assert!(read.iter().map(|word| word.as_str().unwrap()).eq(command.iter()));
    }
}
