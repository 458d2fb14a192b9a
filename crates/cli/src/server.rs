//! Whether a command asks a node, which one, and by which token: `--server`, `--token-file` and the environment.

use std::path::Path;

use super::{Cli, Command, Failure};
use soloist_config::{Environment, read_secret};
use soloist_remote::{Access, CA, SERVER, TOKEN};

impl Cli {
    /// The nodes that carry `command` out; `None`: it is carried out here, at the store.
    ///
    /// What stands on the command line goes before the environment: with `--store` the variable is left aside, and so it is by
    /// commands that never ask a node.
    ///
    /// # Errors
    /// [`Failure::Usage`]: a command that no node can carry out, no token, or an address that is none.
    pub fn access(
        &self,
        command: &Command,
        env: Environment<'_>,
    ) -> Result<Option<Access>, Failure> {
        let here = stays_here(command);
        if let (Some(_), Some((name, why))) = (&self.server, here) {
            return Err(Failure::Usage(format!("--server is not for soloist {name}: {why}")));
        }
        if self.server.is_some() && self.store.is_some() {
            // One before the command and one behind it, which clap does not see.
            return Err(Failure::Usage(
                "--server and --store cannot be used together: a command asks a node or opens the store".to_owned(),
            ));
        }
        let from_env = || env(SERVER).filter(|text| !text.trim().is_empty());
        let server = match (&self.server, &self.store, here) {
            (Some(given), _, _) => Some(given.clone()),
            (None, None, None) => from_env(),
            _ => None,
        };
        let Some(server) = server else {
            if self.token_file.is_some() {
                return Err(Failure::Usage(format!(
                    "--token-file is for --server: name the node with --server URL, or in ${SERVER}"
                )));
            }
            return Ok(None);
        };
        let (token, from) = match &self.token_file {
            Some(file) => (of_file(file)?, file.display().to_string()),
            None => {
                let token = env(TOKEN).filter(|text| !text.trim().is_empty());
                let missing = || {
                    Failure::Usage(format!(
                        "no API token for --server: set ${TOKEN}, or name a file with --token-file (an admin makes one with soloist token new)"
                    ))
                };
                (token.ok_or_else(missing)?, format!("${TOKEN}"))
            }
        };
        let ca = env(CA).filter(|text| !text.is_empty());
        Ok(Some(Access::new(&server, (&token, &from), ca.as_deref().map(Path::new))?))
    }
}

fn of_file(file: &Path) -> Result<String, Failure> {
    read_secret(file).map_err(|why| Failure::Usage(format!("--token-file: {why}")))
}

/// The name of a command that never asks a node, and why.
fn stays_here(command: &Command) -> Option<(&'static str, &'static str)> {
    Some(match command {
        Command::Serve(_) => ("serve", "a node needs the store itself"),
        Command::Check => ("check", "it reads the configuration of this machine"),
        Command::Init(_) => ("init", "it writes a configuration of this machine"),
        Command::Ping(_) => ("ping", "it asks the node of this machine"),
        Command::Completions { .. } => ("completions", "it prints what this program knows"),
        Command::Man(_) => ("man", "it prints what this program knows"),
        Command::Fence { .. } => ("fence", "it compares tokens in a file of this machine"),
        Command::Store(_) => ("store", "it opens both stores itself"),
        Command::Link { .. } => (
            "link",
            "whoever may open the store makes sign-in links; an account is invited with soloist user add NAME --invite",
        ),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::ServeArgs;

    fn access(words: &[&str], env: &[(&str, &str)]) -> Result<Option<Access>, String> {
        let mut cli = Cli::try_parse_from(words).map_err(|error| error.to_string())?;
        let command = cli.command.take().unwrap_or(Command::Serve(ServeArgs::default()));
        let found = |name: &str| {
            env.iter().find(|(known, _)| *known == name).map(|(_, text)| (*text).to_owned())
        };
        cli.access(&command, &found).map_err(|failure| {
            assert!(matches!(failure, Failure::Usage(_)), "{failure:?}");
            failure.to_string()
        })
    }

    const TOKEN_SET: (&str, &str) = (TOKEN, "sol_s3cret");

    #[test]
    fn a_command_asks_a_node_when_one_is_named() {
        let named = access(&["soloist", "--server", "http://h:1", "status"], &[TOKEN_SET]);
        assert_eq!(named.unwrap().unwrap().servers(), ["http://h:1"]);
        let env = [(SERVER, "http://a:1,http://b:2"), TOKEN_SET];
        let two = access(&["soloist", "status"], &env).unwrap().unwrap();
        assert_eq!(two.servers(), ["http://a:1", "http://b:2"]);
        assert_eq!(access(&["soloist", "status"], &[TOKEN_SET]), Ok(None));
        // What was typed goes before the environment.
        assert_eq!(access(&["soloist", "--store", "sqlite:x", "status"], &env), Ok(None));
        let typed = access(&["soloist", "status", "--server", "http://c:3"], &env);
        assert_eq!(typed.unwrap().unwrap().servers(), ["http://c:3"]);
    }

    #[test]
    fn what_no_node_can_do_is_refused_with_the_reason_and_without_the_token() {
        let words: [&[&str]; 5] = [
            &["soloist"],
            &["soloist", "serve"],
            &["soloist", "check"],
            &["soloist", "link"],
            &["soloist", "fence", "f", "--", "true"],
        ];
        for words in words {
            let mut with = vec!["soloist", "--server", "http://h:1"];
            with.extend(&words[1..]);
            let said = access(&with, &[TOKEN_SET]).unwrap_err();
            assert!(said.contains("--server is not for soloist"), "{words:?}: {said}");
            assert!(!said.contains("s3cret"));
            // The variable is for those that can.
            assert_eq!(access(words, &[(SERVER, "http://h:1"), TOKEN_SET]), Ok(None), "{words:?}");
        }
        let both = ["soloist", "--server", "http://h:1", "--store", "sqlite:x", "status"];
        assert!(access(&both, &[TOKEN_SET]).unwrap_err().contains("cannot be used with"));
        let apart = ["soloist", "--store", "sqlite:x", "status", "--server", "http://h:1"];
        assert!(access(&apart, &[TOKEN_SET]).unwrap_err().contains("cannot be used"));
        let none = access(&["soloist", "--server", "http://h:1", "status"], &[]).unwrap_err();
        assert!(none.contains("$SOLOIST_API_TOKEN") && none.contains("--token-file"), "{none}");
        let no_server = access(&["soloist", "--token-file", "t", "status"], &[]).unwrap_err();
        assert!(no_server.contains("--server URL"), "{no_server}");
    }
}
