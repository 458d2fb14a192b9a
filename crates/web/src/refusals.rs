//! What each operation may answer besides success: the one table, from which the OpenAPI document takes it.
//!
//! `fuzz.rs` among the tests finds a status that is missing here. What a refusal says in detail is said where it is
//! decided; each names the remedy.

/// A status, and what it means.
pub type Refusal = (&'static str, &'static str);

const MALFORMED: Refusal =
    ("400", "The request is malformed; the detail names the place and the remedy.");
const NO_SUCH_WORD: Refusal = ("400", "Another word than `work` or `reading`.");
const NO_LOGIN: Refusal = ("401", "No login.");
const NO_LOGIN_NOR_HERE: Refusal = ("401", "Neither signed in nor on this machine.");
const FORBIDDEN: Refusal =
    ("403", "Not allowed to this role, or the token is bound to other names.");
const NO_JOB: Refusal = ("404", "No such job.");
const NO_NODE: Refusal = ("404", "No such node.");
const NO_ALERT: Refusal = ("404", "No such alert or channel in the configuration of this node.");
const NO_SUCH: Refusal =
    ("404", "No such source, task, claim, rotation, type or turn; the detail says which.");
const STAYS: Refusal =
    ("409", "The job is off or held, or the node cannot take it; the detail says which.");
const NO_SCHEDULE: Refusal = (
    "409",
    "The job has no schedule on this node, or there is nothing to reset; the detail says which.",
);
const NO_RUN: Refusal = (
    "409",
    "The job is held or has no schedule, or that tick is open, not decided yet or done; the detail says which.",
);
const NO_DRILL: Refusal = ("409", "Not running, held, or nobody could take over.");
const ALIVE: Refusal = ("409", "It is alive.");
const OVER: Refusal =
    ("409", "The turn has ended, or is another's: nothing was changed. The detail says more.");
const NO_LEASE: Refusal = ("404", "No name of a lease, or one that is not for the caller.");
const NOT_YOURS: Refusal =
    ("409", "A job with a command, which Soloist runs, or one that this node does not define.");
const LEASE_OVER: Refusal = ("409", "The lease is over, or another's: end the work.");
const NO_USER: Refusal = ("404", "No such account.");
const NO_SESSION: Refusal = ("404", "No such session.");
const NO_TOKEN: Refusal = ("404", "No such token, or it is another's.");
const TAKEN: Refusal = ("409", "There is an account of that name.");
const KEPT: Refusal = (
    "409",
    "The last admin stays, collectors have no links, and one's own password is changed elsewhere; the detail says which.",
);
const WRONG_PASSWORD: Refusal = ("403", "The old password is wrong, or a token asks.");
const TOO_OFTEN: Refusal = ("429", "Too many wrong passwords; try again after Retry-After.");
const CROWDED: Refusal = (
    "429",
    "The account or the address has as many live connections as are allowed, or more than 16 jobs are followed.",
);
const FULL: Refusal =
    ("409", "There are as many as are allowed; the detail says how many, and what to remove.");
const LOSES: Refusal =
    ("409", "Something would be lost, and `force` was not said; the detail says what.");
const TOO_LARGE: Refusal = ("413", "Larger than 64 KiB, or 1 MiB for tasks and results.");
const ENCODED: Refusal = ("415", "The body is compressed: send it as it is.");
const SLOW: Refusal = ("408", "The body did not come in time; the connection is closed.");
const MISNAMED: Refusal =
    ("421", "The request has no token and asks for a host name that is not this server's.");
const AWAY: Refusal = (
    "503",
    "The store is out of reach, or set up so that it may lose tasks and turns; try again after Retry-After.",
);
const NOT_READY: Refusal = ("503", "The store is not reachable, or this node is shutting down.");

/// Refusals of an operation that needs no store.
const LOGIN: &[Refusal] = &[NO_LOGIN, FORBIDDEN, MISNAMED];
/// Refusals of an operation that has no query and no body.
const PLAIN: &[Refusal] = &[NO_LOGIN, FORBIDDEN, MISNAMED, AWAY];
/// Refusals of an operation that has a query.
const QUERY: &[Refusal] = &[MALFORMED, NO_LOGIN, FORBIDDEN, MISNAMED, AWAY];
/// Refusals of an operation that has a body.
const BODY: &[Refusal] =
    &[MALFORMED, NO_LOGIN, FORBIDDEN, SLOW, TOO_LARGE, ENCODED, MISNAMED, AWAY];

/// By `operationId`: what all operations of its kind may answer, and what only this one may.
const TABLE: &[(&str, &[Refusal], &[Refusal])] = &[
    ("get_status", PLAIN, &[]),
    ("list_jobs", PLAIN, &[]),
    ("get_job", PLAIN, &[NO_JOB]),
    ("switch_participation", BODY, &[NO_JOB]),
    ("hold_job", BODY, &[NO_JOB]),
    ("resume_job", PLAIN, &[NO_JOB]),
    ("move_job", BODY, &[NO_JOB, STAYS]),
    ("start_drill", BODY, &[NO_JOB, NO_DRILL]),
    ("get_drill", PLAIN, &[NO_JOB]),
    ("list_runs", QUERY, &[NO_JOB]),
    ("get_log", QUERY, &[NO_JOB]),
    ("download_log", QUERY, &[NO_JOB]),
    ("get_timeline", QUERY, &[NO_JOB]),
    ("next_ticks", QUERY, &[NO_JOB, NO_SCHEDULE]),
    ("list_ticks", QUERY, &[NO_JOB]),
    ("ask_run", BODY, &[NO_JOB, NO_RUN]),
    ("take_back_run", PLAIN, &[NO_JOB]),
    ("reset_taken", PLAIN, &[NO_JOB, NO_SCHEDULE]),
    ("list_nodes", PLAIN, &[]),
    ("drain_node", QUERY, &[NO_NODE]),
    ("undrain_node", PLAIN, &[NO_NODE]),
    ("forget_node", QUERY, &[NO_NODE, ALIVE]),
    ("list_leases", QUERY, &[]),
    ("take_lease", BODY, &[NO_LEASE, NOT_YOURS]),
    ("renew_lease", BODY, &[NO_LEASE, LEASE_OVER]),
    ("renew_leases", BODY, &[]),
    ("release_lease", BODY, &[NO_LEASE, LEASE_OVER]),
    ("list_alerts", PLAIN, &[]),
    ("mute_alert", BODY, &[NO_ALERT]),
    ("test_channel", PLAIN, &[NO_ALERT]),
    ("list_audit", QUERY, &[]),
    ("list_users", PLAIN, &[]),
    ("add_user", BODY, &[TAKEN]),
    ("get_user", PLAIN, &[NO_USER]),
    ("change_user", BODY, &[NO_USER, KEPT]),
    ("remove_user", PLAIN, &[NO_USER, KEPT]),
    ("get_me", PLAIN, &[]),
    ("change_my_password", BODY, &[WRONG_PASSWORD, TOO_OFTEN]),
    ("list_my_sessions", PLAIN, &[]),
    ("end_my_session", PLAIN, &[NO_SESSION]),
    ("list_sessions", QUERY, &[NO_USER]),
    ("end_session", PLAIN, &[NO_SESSION]),
    ("list_tokens", QUERY, &[]),
    ("make_token", BODY, &[NO_USER, FULL]),
    ("revoke_token", PLAIN, &[NO_TOKEN]),
    ("list_sources", PLAIN, &[]),
    ("get_source", PLAIN, &[NO_SUCH]),
    ("put_source", BODY, &[FULL]),
    ("remove_source", QUERY, &[NO_SUCH, LOSES]),
    ("pause_source", PLAIN, &[NO_SUCH]),
    ("resume_source", PLAIN, &[NO_SUCH]),
    ("block_source", BODY, &[NO_SUCH]),
    ("put_tasks", BODY, &[NO_SUCH, FULL]),
    ("list_tasks", QUERY, &[]),
    ("remove_task", QUERY, &[NO_SUCH, LOSES]),
    ("get_task", PLAIN, &[NO_SUCH]),
    ("claim_tasks", BODY, &[NO_SUCH]),
    ("extend_claim", QUERY, &[NO_SUCH]),
    ("give_back_claim", PLAIN, &[NO_SUCH]),
    ("report_results", BODY, &[NO_SUCH]),
    ("list_dead_tasks", QUERY, &[]),
    ("revive_task", PLAIN, &[NO_SUCH]),
    ("list_collectors", PLAIN, &[]),
    ("list_rotations", PLAIN, &[]),
    ("get_rotation", QUERY, &[NO_SUCH]),
    ("put_rotation", BODY, &[FULL]),
    ("remove_rotation", QUERY, &[NO_SUCH, LOSES]),
    ("take_turn", BODY, &[NO_SUCH, OVER]),
    ("extend_turn", BODY, &[NO_SUCH, OVER]),
    ("pass_turn", BODY, &[NO_SUCH, OVER]),
    ("stream_live", QUERY, &[NO_JOB, CROWDED]),
    ("describe", LOGIN, &[]),
    ("describe_live", LOGIN, &[]),
    ("healthz", &[], &[]),
    ("readyz", &[NO_SUCH_WORD, NOT_READY], &[]),
    ("metrics", &[NO_LOGIN_NOR_HERE, FORBIDDEN, MISNAMED], &[]),
];

/// What an operation may refuse with; `None` when it is not in the table.
pub fn of(operation: &str) -> Option<impl Iterator<Item = Refusal> + use<>> {
    let (_, usual, own) = TABLE.iter().find(|(name, ..)| *name == operation)?;
    Some(usual.iter().chain(*own).copied())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::openapi::describe;

    #[test]
    fn the_table_names_every_operation_of_the_document_and_no_other() {
        let document = describe();
        let paths = document["paths"].as_object().expect("paths");
        let operations = paths.values().flat_map(|path| path.as_object().expect("a path").values());
        let named = operations.filter_map(|operation| operation["operationId"].as_str());
        let table = TABLE.iter().map(|(name, ..)| *name);
        assert_eq!(named.collect::<BTreeSet<_>>(), table.clone().collect());
        assert_eq!(
            table.count(),
            TABLE.iter().map(|(name, ..)| name).collect::<BTreeSet<_>>().len()
        );
    }
}
