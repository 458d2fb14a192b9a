//! Why a call to a node did not do what was asked.

use super::CA;

/// A variant for each thing that a caller does otherwise.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RemoteError {
    /// What was said about server, token or certificates is wrong.
    #[error("{0}")]
    Setup(String),
    /// No address answered; it may have been done all the same.
    #[error(
        "no node could be reached ({0}): is one running there, and is --server (or $SOLOIST_SERVER) right?"
    )]
    Unreachable(String),
    /// The token is not accepted.
    #[error("{0}")]
    Token(String),
    /// A node answered that it does not do it.
    #[error("{detail}")]
    #[expect(missing_docs, reason = "the HTTP status, and the `detail` of problem+json")]
    Refused { status: u16, detail: String },
    /// Something answered that is no node, or one of another version.
    #[error("{server}: {why}")]
    #[expect(missing_docs, reason = "the sentence says it")]
    Strange { server: String, why: String },
}

impl RemoteError {
    /// Whether it may be otherwise in a moment, so that asking again makes sense.
    #[must_use]
    pub fn may_pass(&self) -> bool {
        match self {
            Self::Unreachable(_) => true,
            Self::Refused { status, .. } => matches!(status, 408 | 429 | 500 | 503),
            Self::Setup(_) | Self::Token(_) | Self::Strange { .. } => false,
        }
    }

    /// The status that a node answered with.
    #[must_use]
    pub fn status(&self) -> Option<u16> {
        match self {
            Self::Refused { status, .. } => Some(*status),
            _ => None,
        }
    }
}

/// An error with what is behind it; none of them has a header in it.
pub(super) fn said(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut behind = error.source();
    while let Some(error) = behind {
        let more = error.to_string();
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        behind = error.source();
    }
    text
}

/// What is wrong with the certificate of a node, and what to do; `None`: `why` is about something else.
pub(super) fn certificate(why: &str) -> Option<String> {
    let (_, wrong) = why.split_once("invalid peer certificate: ")?;
    let wrong = wrong.split(':').next().unwrap_or(wrong).trim();
    let remedy = if wrong.starts_with("UnknownIssuer") {
        format!(
            "no authority that is trusted here made it: write the certificate of yours into a PEM file and name that in ${CA}"
        )
    } else if wrong.contains("CaUsedAsEndEntity") {
        "it is that of an authority itself: have the authority sign one for the node (basicConstraints CA:FALSE)".to_owned()
    } else {
        "the node needs one that is valid now and for this host".to_owned()
    };
    Some(format!("its certificate is not accepted ({wrong}): {remedy}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_with_a_certificate_is_said_with_its_remedy() {
        let of = |wrong: &str| {
            certificate(&format!("client error (Connect): invalid peer certificate: {wrong}"))
        };
        for (wrong, remedy) in [
            ("UnknownIssuer", "$SOLOIST_SERVER_CA"),
            ("Other(OtherError(CaUsedAsEndEntity))", "CA:FALSE"),
            ("Expired", "valid now"),
        ] {
            let said = of(wrong).expect("it is about the certificate");
            assert!(said.contains(wrong) && said.contains(remedy), "{said}");
        }
        assert_eq!(certificate("connection refused"), None);
    }
}
