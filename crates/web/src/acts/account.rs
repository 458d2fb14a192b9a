//! What people do to their own account at this node: their password, and making a token.
//!
//! The old password is checked as at a sign-in: throttled, by all nodes together, and noted when it is wrong.

use actix_web::http::StatusCode;

use crate::Web;
use crate::auth::Caller;
use crate::error::WebError;
use crate::throttle::Attempt;
use soloist_domain::name::UserName;
use soloist_ops::credentials::Expiry;
use soloist_ops::{self as ops, Act, accounts, credentials};
use soloist_store::accounts::Accounts as _;
use soloist_store::credentials::ApiToken;

/// Changes the caller's password; all sessions end but the caller's.
///
/// # Errors
/// [`WebError::Forbidden`] for a token, 403 when the old one is wrong, 400 for a weak one, [`WebError::TooMany`].
pub async fn change_password(
    web: &Web,
    caller: &Caller,
    old: String,
    new: String,
) -> Result<(), WebError> {
    if !caller.by_session() {
        return Err(WebError::forbidden(
            "a token cannot change a password: sign in, and change it on /account",
        ));
    }
    let name = caller.user.as_str();
    let attempt = Attempt::new(&web.store, name, &caller.from);
    attempt.admit().await?;
    let user = web.store.user(&caller.user).await?.ok_or(WebError::Unauthorized)?;
    let right = match web.passwords.check(Some(user.password), old).await {
        Ok(right) => right,
        Err(busy) => {
            attempt.withdrawn().await?;
            return Err(busy.into());
        }
    };
    if !right {
        let by = caller.signature();
        ops::note(&web.store, &by, Act::UserPasswdFailed, name, None).await?;
        return Err(WebError::told(StatusCode::FORBIDDEN, "account-old-wrong", &[]));
    }
    attempt.succeeded().await?;
    let hash = hash(web, &caller.user, user.display_name, new).await?;
    let keep = caller.shown.hash();
    accounts::change_own_password(&web.store, &caller.actor(), hash, keep).await?;
    Ok(())
}

/// Hashes a new password for that account, if it is good.
///
/// # Errors
/// 400 with the reason.
pub async fn hash(
    web: &Web,
    user: &UserName,
    display_name: Option<String>,
    password: String,
) -> Result<String, WebError> {
    let about = [Some(user.to_string()), display_name].into_iter().flatten().collect();
    Ok(web.passwords.hash(password, about).await?)
}

/// Makes a token; the secret is in the answer.
///
/// # Errors
/// As [`credentials::new_token`].
pub async fn new_token(
    web: &Web,
    caller: &Caller,
    token: ApiToken,
    expiry: Expiry,
) -> Result<(ApiToken, String), WebError> {
    Ok(credentials::new_token(&web.store, &caller.actor(), token, expiry).await?)
}
