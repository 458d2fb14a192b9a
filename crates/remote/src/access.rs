//! Where the nodes are, and by which token: as it was said on the command line and in the environment.

use std::fmt;
use std::path::{Path, PathBuf};

use reqwest::header::HeaderValue;
use serde::{Deserialize, Serialize};
use url::Url;

use super::RemoteError;

/// The variable that names the nodes.
pub const SERVER: &str = "SOLOIST_SERVER";
/// The variable with the token.
pub const TOKEN: &str = "SOLOIST_API_TOKEN";
/// The variable that names a file of own certificate authorities.
pub const CA: &str = "SOLOIST_SERVER_CA";

/// Addresses and token. Travels to a guard over its socket; its debug form has no token.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Access {
    servers: Vec<String>,
    token: String,
    /// Where the token was taken from, for errors.
    token_from: String,
    ca: Option<PathBuf>,
}

impl fmt::Debug for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Access").field("servers", &self.servers).finish_non_exhaustive()
    }
}

impl Access {
    /// Of `servers`, separated by commas, and a `token` that was taken `from` somewhere.
    ///
    /// # Errors
    /// [`RemoteError::Setup`] that says which is wrong, and what to write.
    pub fn new(
        servers: &str,
        (token, from): (&str, &str),
        ca: Option<&Path>,
    ) -> Result<Self, RemoteError> {
        let setup = |text: String| RemoteError::Setup(text);
        let servers = servers.split(',').map(str::trim).filter(|one| !one.is_empty());
        let servers =
            servers.map(server).collect::<Result<Vec<String>, String>>().map_err(setup)?;
        if servers.is_empty() {
            return Err(setup("--server names no address: use https://HOST:PORT".to_owned()));
        }
        let token = token.trim();
        if token.is_empty() {
            return Err(setup(format!("the token from {from} is empty")));
        }
        let (token, token_from) = (token.to_owned(), from.to_owned());
        if !token.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(setup(format!(
                "what {from} has is no token: a token is one line, as soloist token new prints it"
            )));
        }
        Ok(Self { servers, token, token_from, ca: ca.map(Path::to_owned) })
    }

    /// The origins of the nodes, without a slash at the end; at least one.
    #[must_use]
    pub fn servers(&self) -> &[String] {
        &self.servers
    }

    /// Each address on its own, with the same token.
    #[must_use]
    pub fn each(&self) -> Vec<Self> {
        let one = |server: &String| Self { servers: vec![server.clone()], ..self.clone() };
        self.servers.iter().map(one).collect()
    }

    /// A file of certificate authorities beside the platform's own.
    #[must_use]
    pub(super) fn ca(&self) -> Option<&Path> {
        self.ca.as_deref()
    }

    /// Where the token was taken from.
    #[must_use]
    pub fn token_from(&self) -> &str {
        &self.token_from
    }

    /// The value of the header `Authorization`; code that prints headers leaves it out.
    pub(super) fn bearer(&self) -> HeaderValue {
        #[expect(clippy::expect_used, reason = "the token was checked to be printable ASCII")]
        let mut value = HeaderValue::from_str(&format!("Bearer {}", self.token)).expect("a header");
        value.set_sensitive(true);
        value
    }
}

/// The origin of a node.
fn server(text: &str) -> Result<String, String> {
    let bad = |what: &str| Err(format!("--server: {what}: use https://HOST:PORT"));
    let Ok(url) = Url::parse(text) else {
        // Not the text itself: a user may have written a password into it.
        return bad("that is no address");
    };
    if !matches!(url.scheme(), "http" | "https") {
        return bad("an address begins with https:// or http://");
    }
    if !url.username().is_empty() || url.password().is_some() {
        return bad("a name or password in the address is not used, the token is");
    }
    if url.host_str().is_none_or(str::is_empty) {
        return bad("there is no host in the address");
    }
    if url.path() != "/" || url.query().is_some() || url.fragment().is_some() {
        return bad("the address of a node has no path");
    }
    Ok(url.as_str().trim_end_matches('/').to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn access(servers: &str, token: &str) -> Result<Access, String> {
        Access::new(servers, (token, "$X"), None).map_err(|error| error.to_string())
    }

    #[test]
    fn several_addresses_are_separated_by_commas() {
        let two = access("http://127.0.0.1:8080/, https://b.example", "sol_1").unwrap();
        assert_eq!(two.servers(), ["http://127.0.0.1:8080", "https://b.example"]);
    }

    #[test]
    fn a_wrong_address_is_refused_without_being_repeated() {
        for wrong in ["", "redis://h", "127.0.0.1:8080", "http://u:s3cret@h", "http://h/api", "h:1"]
        {
            let said = access(wrong, "sol_1").unwrap_err();
            assert!(said.contains("https://HOST:PORT") && !said.contains("s3cret"), "{said}");
        }
    }

    #[test]
    fn the_token_is_in_no_text_but_the_header() {
        let access = access("http://h", "sol_s3cret\n").unwrap();
        assert!(!format!("{access:?}").contains("s3cret"));
        assert!(!format!("{:?}", access.bearer()).contains("s3cret"));
        let said = RemoteError::Token(access.token_from().to_owned()).to_string();
        assert_eq!(said, "$X");
        for wrong in ["", "two words", "sol_\u{7}"] {
            assert!(Access::new("http://h", (wrong, "$X"), None).is_err(), "{wrong:?}");
        }
    }
}
