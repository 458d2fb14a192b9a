//! `[oidc]`: the provider of single sign-on, and what its groups mean here.
//!
//! It checks text and files and uses no network. `ops::external` decides which account a person gets; `web::oidc` talks to the
//! provider.

use std::fmt;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use toml::de::DeValue;
use url::{Host, Url};

use super::document::{Field, Section};
use super::problem::Place;
use super::{Environment, Title, address, closed};
use soloist_process::parts;

const KEYS: [&str; 11] = [
    "issuer",
    "client_id",
    "client_secret_file",
    "scopes",
    "groups_claim",
    "name_claim",
    "roles",
    "default_role",
    "create_accounts",
    "ca_file",
    "button",
];
const TABLE: &str = r#"write [oidc] with issuer = "https://login.example.org/realms/main" and client_id = "soloist""#;
const ISSUER: &str = r#"write issuer = "https://login.example.org/realms/main", exactly as the provider names itself in its discovery document"#;
const CLIENT: &str = r#"write client_id = "soloist", as it is registered at the provider"#;
const FILE: &str = r#"write the path of a file that holds nothing else"#;
const SCOPES: &str = r#"write scopes = ["openid", "profile", "email"]"#;
const CLAIM: &str =
    r#"name one claim, with a dot before each inner one: "groups" or "realm_access.roles""#;
const ROLES: &str = r#"write roles = { admin = ["soloist-admins"], operator = ["shift-leads"] }"#;
const BUTTON: &str =
    r#"write button = "Company login" or button = { en = "Company login", zh = "公司登录" }"#;
/// The environment's way to give the secret of the client.
const SECRET: &str = "SOLOIST_OIDC_CLIENT_SECRET";
/// A secret or a list of roots that is longer is another file by mistake.
const LONGEST_FILE: u64 = 1024 * 1024;
const LONGEST_BUTTON: usize = 64;

/// A secret; it is not printed.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Wraps `text`.
    #[must_use]
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text, for the one place that sends it.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

/// What a person may do who is in none of the groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub enum DefaultRole {
    Viewer,
    Operator,
}

/// Which groups of the provider have which role. The highest that matches counts.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[expect(missing_docs, reason = "the names say it")]
pub struct RolesOfGroups {
    pub admin: Vec<String>,
    pub operator: Vec<String>,
    pub viewer: Vec<String>,
    /// For all other people; `None` refuses them.
    pub otherwise: Option<DefaultRole>,
}

/// `[oidc]`, checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Oidc {
    /// The provider, as it names itself.
    pub issuer: String,
    /// This program at the provider.
    pub client_id: String,
    /// `None`: a public client, which has PKCE only.
    pub client_secret: Option<Secret>,
    /// What is asked for; `openid` is always among it.
    pub scopes: Vec<String>,
    /// Where the groups stand among the claims; a dot goes one level deeper.
    pub groups_claim: String,
    /// Where the name of a new account stands.
    pub name_claim: String,
    /// What the groups mean.
    pub roles: RolesOfGroups,
    /// Whether a person who signs in for the first time gets an account.
    pub create_accounts: bool,
    /// Roots in PEM that are trusted beside the usual ones.
    pub ca: Option<Vec<u8>>,
    /// The text of the button.
    pub button: Title,
}

/// Reads `[oidc]`, or `$SOLOIST_OIDC`, which outranks it and is an inline table. `Some(None)`: there is none. `None`: the
/// problems are in the report. The files that it names are left out by a command that only `looks`.
pub(super) fn read(
    root: &Section<'_>,
    env: Environment<'_>,
    base: &Path,
    looks: bool,
) -> Option<Option<Oidc>> {
    let variable = "SOLOIST_OIDC".to_owned();
    let from_env = env(&variable);
    let parsed = from_env.as_deref().map(DeValue::parse);
    let field = match &parsed {
        Some(Ok(value)) => Some(Field {
            report: root.report,
            key: "oidc".to_owned(),
            place: Place::Env(variable),
            value: value.get_ref(),
        }),
        Some(Err(error)) => {
            let why = format!("not valid TOML: {}: {TABLE}", error.message());
            root.report.wrong(Place::Env(variable), "oidc", why);
            return None;
        }
        None => root.get("oidc"),
    };
    let Some(field) = field else { return Some(None) };
    field.needs(parts::OIDC);
    let section = field.table(TABLE)?;
    section.only(&KEYS);
    let issuer = required(&section, "issuer", ISSUER, issuer);
    let client_id = required(&section, "client_id", CLIENT, plain);
    let client_secret = client_secret(&section, env, base, looks);
    let scopes = scopes(&section);
    let groups_claim = claim(&section, "groups_claim", "groups");
    let name_claim = claim(&section, "name_claim", "preferred_username");
    let roles = roles(&section);
    let create_accounts = match section.get("create_accounts") {
        Some(field) => field.flag("write create_accounts = true"),
        None => Some(false),
    };
    let ca = match section.get("ca_file") {
        Some(field) if !looks => roots(&field, base).map(Some),
        _ => Some(None),
    };
    let button = button(&section);
    Some(Some(Oidc {
        issuer: issuer?,
        client_id: client_id?,
        client_secret: client_secret?,
        scopes: scopes?,
        groups_claim: groups_claim?,
        name_claim: name_claim?,
        roles: roles?,
        create_accounts: create_accounts?,
        ca: ca?,
        button: button?,
    }))
}

fn required(
    section: &Section<'_>,
    key: &str,
    remedy: &str,
    check: fn(&str) -> Result<(), String>,
) -> Option<String> {
    let Some(field) = section.get(key) else {
        section.missing(key, remedy);
        return None;
    };
    let text = field.text(remedy)?;
    match check(text) {
        Ok(()) => Some(text.to_owned()),
        Err(why) => {
            field.wrong(format!("{why}: {remedy}"));
            None
        }
    }
}

/// A URL as OpenID Connect Discovery 1.0 wants it (section 3), without TLS on this machine only.
fn issuer(text: &str) -> Result<(), String> {
    let url = Url::parse(text).map_err(|error| format!("{text:?} is no URL, {error}"))?;
    let loopback = match url.host() {
        Some(Host::Ipv4(address)) => IpAddr::V4(address).is_loopback(),
        Some(Host::Ipv6(address)) => IpAddr::V6(address).is_loopback(),
        Some(Host::Domain(name)) => name == "localhost",
        None => false,
    };
    match url.scheme() {
        "https" => {}
        "http" if loopback => {}
        "http" => return Err("must begin with https:// (http:// only on this machine)".to_owned()),
        _ => return Err(format!("{text:?} does not begin with https://")),
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err("must not have a query or fragment".to_owned());
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("must not have a user name".to_owned());
    }
    Ok(())
}

fn plain(text: &str) -> Result<(), String> {
    match text.is_empty() || text.chars().any(|c| c.is_control() || c.is_whitespace()) {
        true => Err("is empty or has spaces in it".to_owned()),
        false => Ok(()),
    }
}

/// From the environment, else from the file, else none.
fn client_secret(
    section: &Section<'_>,
    env: Environment<'_>,
    base: &Path,
    looks: bool,
) -> Option<Option<Secret>> {
    if let Some(secret) = env(SECRET) {
        return Some(Some(Secret(secret)));
    }
    let Some(field) = section.get("client_secret_file") else { return Some(None) };
    let path = path(&field, base)?;
    if looks {
        return Some(None);
    }
    let text = closed::read(&path, LONGEST_FILE, FILE).map(closed::text);
    match text {
        Ok(Some(text)) if !text.is_empty() && !text.chars().any(char::is_control) => {
            Some(Some(Secret(text)))
        }
        Ok(_) => {
            field.wrong(format!("{} holds no secret: it must be one line of text", path.display()));
            None
        }
        Err(why) => {
            field.wrong(why);
            None
        }
    }
}

fn path(field: &Field<'_>, base: &Path) -> Option<PathBuf> {
    let text = field.text(FILE)?;
    if text.is_empty() {
        field.wrong(format!("is empty: {FILE}"));
        return None;
    }
    Some(address::absolute(base, Path::new(text)))
}

fn contents(field: &Field<'_>, path: &Path) -> Option<Vec<u8>> {
    let length = std::fs::metadata(path).map_or(0, |found| found.len());
    if length > LONGEST_FILE {
        field.wrong(format!("{} is too large ({length} bytes): {FILE}", path.display()));
        return None;
    }
    match std::fs::read(path) {
        Ok(bytes) => Some(bytes),
        Err(error) => {
            let shown = path.display();
            field.wrong(format!(
                "{shown} cannot be read: {error}; correct the path, or give the file to the user that runs this"
            ));
            None
        }
    }
}

/// Roots that a client takes.
fn roots(field: &Field<'_>, base: &Path) -> Option<Vec<u8>> {
    let path = path(field, base)?;
    let bytes = contents(field, &path)?;
    let roots: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&bytes).collect();
    let mut store = RootCertStore::empty();
    let usable = roots.is_ok_and(|roots| {
        !roots.is_empty() && roots.into_iter().all(|root| store.add(root).is_ok())
    });
    if !usable {
        let why = "holds no certificate in PEM: it begins with -----BEGIN CERTIFICATE-----";
        field.wrong(format!("{} {why}", path.display()));
        return None;
    }
    Some(bytes)
}

fn scopes(section: &Section<'_>) -> Option<Vec<String>> {
    let Some(field) = section.get("scopes") else {
        return Some(["openid", "profile", "email"].map(str::to_owned).into());
    };
    let texts = field.texts(SCOPES)?;
    for (field, text) in &texts {
        if let Err(why) = plain(text) {
            field.wrong(format!("{why}: {SCOPES}"));
            return None;
        }
    }
    Some(texts.into_iter().map(|(_, text)| text.to_owned()).collect())
}

fn claim(section: &Section<'_>, key: &str, default: &str) -> Option<String> {
    let Some(field) = section.get(key) else { return Some(default.to_owned()) };
    let text = field.text(CLAIM)?;
    if plain(text).is_err() {
        field.wrong(format!("is no claim: {CLAIM}"));
        return None;
    }
    Some(text.to_owned())
}

fn roles(section: &Section<'_>) -> Option<RolesOfGroups> {
    let mut roles = RolesOfGroups::default();
    let mut whole = true;
    if let Some(field) = section.get("default_role") {
        match field.text(r#"write default_role = "viewer""#) {
            Some("viewer") => roles.otherwise = Some(DefaultRole::Viewer),
            Some("operator") => roles.otherwise = Some(DefaultRole::Operator),
            Some(other) => {
                let why = "is no role for everybody: use viewer or operator, and name the groups of admins in roles";
                field.wrong(format!("{other:?} {why}"));
                whole = false;
            }
            None => whole = false,
        }
    }
    if let Some(field) = section.get("roles") {
        let table = field.table(ROLES)?;
        table.only(&["admin", "operator", "viewer"]);
        let lists = [
            ("admin", &mut roles.admin),
            ("operator", &mut roles.operator),
            ("viewer", &mut roles.viewer),
        ];
        for (key, groups) in lists {
            let Some(field) = table.get(key) else { continue };
            let Some(texts) = field.texts(ROLES) else {
                whole = false;
                continue;
            };
            for (field, text) in texts {
                if text.trim().is_empty() {
                    field.wrong(format!("names no group: {ROLES}"));
                    whole = false;
                }
                groups.push(text.to_owned());
            }
        }
    }
    let nobody = roles.admin.is_empty() && roles.operator.is_empty() && roles.viewer.is_empty();
    if whole && nobody && roles.otherwise.is_none() {
        section.missing(
            "roles",
            &format!("nobody could sign in; {ROLES}, or default_role = \"viewer\""),
        );
        return None;
    }
    whole.then_some(roles)
}

fn button(section: &Section<'_>) -> Option<Title> {
    let Some(field) = section.get("button") else {
        let (en, zh) = ("Sign in with single sign-on".to_owned(), "单点登录".to_owned());
        return Some(Title { en, zh });
    };
    let checked = |field: &Field<'_>, text: &str| {
        let long = text.chars().count() > LONGEST_BUTTON;
        if text.trim().is_empty() || long || text.contains(char::is_control) {
            field.wrong(format!("must be 1 to {LONGEST_BUTTON} characters: {BUTTON}"));
            return None;
        }
        Some(text.to_owned())
    };
    if let Some(text) = field.value.as_str() {
        let text = checked(&field, text)?;
        return Some(Title { en: text.clone(), zh: text });
    }
    let table = field.table(BUTTON)?;
    table.only(&["en", "zh"]);
    let language = |key: &str| {
        let Some(field) = table.get(key) else {
            table.missing(key, &format!("a button needs both languages; {BUTTON}"));
            return None;
        };
        checked(&field, field.text(BUTTON)?)
    };
    let (en, zh) = (language("en"), language("zh"));
    Some(Title { en: en?, zh: zh? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_issuer_without_tls_is_on_this_machine() {
        for good in [
            "https://login.example.org/realms/main",
            "http://127.0.0.1:8081",
            "http://[::1]/x",
            "http://localhost:1/",
        ] {
            assert_eq!(issuer(good), Ok(()), "{good}");
        }
        for bad in [
            "http://login.example.org",
            "http://localhost.example.org",
            "http://127.0.0.1.example.org",
            "ftp://127.0.0.1",
            "https://a@b",
            "https://a/?x",
            "https://a/#x",
            "login.example.org",
            "",
        ] {
            assert!(issuer(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_secret_is_not_printed() {
        assert_eq!(format!("{:?}", Some(Secret::new("sesame"))), "Some(***)");
    }
}
