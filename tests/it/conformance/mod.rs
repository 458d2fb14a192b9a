//! One conformance suite: every law is run against every store, by one macro.
//!
//! A law is an `async fn(fresh: Fresh)`. It speaks only the traits of `soloist::store`, so it cannot know which
//! backend it judges. A law that is not listed in [`laws!`] is dead code, and the build says so.
//! What only one backend can do (files, migrations, Lua, reconnecting) is tested beside that backend.
//!
//! The clock of the store in memory stands still until a law lets time pass ([`nap`], [`breathe`], [`pass`], [`jump`]): there an hour takes no
//! time. Elsewhere the same calls wait. Each process of a law on the store in memory is a connection of its own, with a memory of its own.
//! No law is left out on any store. A store with ZooKeeper beside it is asked only the laws in which ZooKeeper takes part (`coordinated`).

mod accounts;
mod alerts;
mod audit;
mod batches;
mod conditions;
mod credentials;
mod dispatch;
mod dispatch_claims;
mod dispatch_limits;
mod dispatch_results;
mod dispatch_tasks;
mod dispatch_turns;
mod dispatch_waiters;
mod ear;
mod endings;
mod events;
mod folding;
mod forgotten;
mod held;
mod hidden;
mod history;
mod jobs;
mod journal;
mod leases;
mod line;
mod log;
mod many_runs;
mod nodes;
mod removal;
mod renewals;
mod rotation;
mod rotation_history;
mod rotation_order;
mod rotation_turns;
mod rotation_waiters;
mod spent;
mod throughput;
mod timeline;
mod unused;

pub(crate) use dispatch_waiters::whoever_is_woken_by_a_last_act_is_told;

use std::any::Any;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use soloist::domain::job::{Exit, JobRecord, RunEnd};
use soloist::domain::lease::Token;
use soloist::domain::name::{JobName, NodeName, Owner, RunId, UserName};
use soloist::domain::spent::Outcome;
use soloist::domain::time::{Began, Boot, Stamp};
use soloist::store::jobs::Jobs;
use soloist::store::journal::{Ended, LogBounds, Started, Then};
use soloist::store::leases::{Acquire, Acquired, Condition, Leases};
use soloist::store::{Options, Store};
use soloist_store_memory::World;

/// Generates the module `$store`, with one test for every law, each on the fresh store that `$fresh` makes. `coordinated`: only the laws
/// that an ensemble beside a store takes part in; all others are asked of the store alone, by the same code (`store/lib.rs`).
macro_rules! laws {
    ($store:ident, $fresh:expr) => {
        mod $store {
            laws!(@coordinated $fresh);
            laws!(@plain $fresh);
        }
    };
    (coordinated $store:ident, $fresh:expr) => {
        mod $store {
            laws!(@coordinated $fresh);
        }
    };
    (@coordinated $fresh:expr) => {
        laws!(@room leases, $fresh;
            the_token_only_grows
            the_token_exceeds_the_highest_one_seen_even_in_a_store_that_forgot
            the_token_exceeds_the_one_before_whatever_the_clock_says
            the_same_owner_gets_the_same_token_again
            the_same_owner_gets_a_new_token_once_its_lease_ran_out
            another_owner_is_told_who_holds_it_and_for_how_long
            a_released_lease_is_taken_at_once
            a_release_by_another_owner_changes_nothing
            a_release_of_nothing_is_harmless
            a_release_under_a_token_says_whose_the_lease_is
            an_expired_lease_is_taken_and_its_run_closed_as_lost
            an_expired_lease_without_a_run_is_taken_without_ado
            of_twenty_concurrent_owners_one_is_granted
            leases_of_different_jobs_are_independent
            observing_tells_version_and_time_left_in_order
        );
        laws!(@room conditions, $fresh;
            only_a_wanted_job_is_granted_to_who_asks_for_a_wanted_one
            a_held_job_is_not_wanted
            a_job_that_has_given_up_is_not_wanted
            a_job_that_is_not_due_says_how_long
            a_move_reserves_the_job_for_its_goal
            a_move_without_a_goal_reserves_the_job_for_anyone_but_the_holder
            a_move_ends_when_another_node_has_the_job
            a_move_to_a_node_that_cannot_take_the_job_keeps_nobody_out
            a_move_of_a_job_that_rests_is_valid_from_when_its_next_run_is_due
            without_a_condition_only_the_lease_counts
            taking_the_lease_clears_the_next_run
            switched_off_while_twenty_ask_is_never_granted_afterwards
        );
        laws!(@room spent, $fresh;
            of_twenty_who_ask_for_one_tick_one_is_granted_and_the_others_are_told
            older_ticks_stay_spent_when_newer_ones_come
            what_failed_or_was_lost_is_done_again_when_that_is_asked_for
            a_tick_for_which_nothing_was_started_is_free_again
            ticks_are_compared_byte_by_byte
            a_tick_is_asked_for_at_once_where_nobody_stands_in_the_line
            a_tick_is_told_again_by_who_holds_the_lease_and_by_nobody_else
        );
        laws!(@room renewals, $fresh;
            a_renewal_extends_the_lease
            a_renewal_by_another_owner_is_lost_and_revives_nothing
            a_renewal_after_the_release_is_lost
            a_program_that_comes_after_the_end_of_its_lease_is_too_late
            a_renewal_under_an_older_token_is_lost
            a_lease_the_store_forgot_is_asserted_again_by_its_holder
            two_hundred_and_fifty_renewals_are_answered_in_order
            no_renewals_are_answered_by_nothing
            a_renewal_publishes_nothing
        );
        laws!(@room line, $fresh;
            a_line_is_in_order_of_arrival_and_a_place_is_kept
            a_lease_is_granted_at_once_where_nobody_stands_in_its_line
            who_steps_aside_keeps_the_place_and_waits_nowhere
            a_place_that_nobody_came_back_to_is_given_up
            a_call_is_heard_by_every_process
        );
        laws!(@room unused, $fresh;
            a_name_that_was_forgotten_is_as_one_that_was_never_used
            a_record_that_says_anything_is_not_forgotten
            what_was_just_used_is_kept_for_a_month
            a_lease_that_ran_out_keeps_no_record_and_its_holder_goes_on_all_the_same
            a_name_that_is_used_again_after_it_was_forgotten_is_heard_of
        );
        laws!(@room held, $fresh;
            what_is_held_is_listed_as_a_snapshot_has_it_whatever_its_name_stands_for
            what_was_given_back_or_ran_out_is_not_listed
            more_than_a_batch_is_listed_whole_and_in_order
        );
        laws!(@room jobs, $fresh;
            an_untouched_job_has_version_zero
            a_snapshot_keeps_the_order_and_the_epoch
            switching_tells_whether_anything_changed
            participants_come_oldest_first
            switching_on_again_forgives
            a_resume_forgives
            a_hold_is_kept_with_its_reason_until_the_resume
            a_move_names_the_present_holder_and_lapses
            a_drill_is_for_one_token_only
            a_drill_ends_with_the_next_run
            every_change_grows_the_version
            what_another_process_changed_meanwhile_is_kept
        );
        laws!(@room journal, $fresh;
            a_start_is_shown
            stopping_is_shown_with_the_instant_of_the_kill
            lines_are_numbered_across_runs
            the_log_is_read_from_either_end
            progress_and_the_newest_line_are_shown
            hostile_texts_come_back_as_they_went_in
            a_stale_run_can_write_nothing
            acts_are_numbered_and_paged_newest_first
            acts_can_be_read_by_target
            what_is_done_to_a_job_and_its_entry_are_one_step
        );
        laws!(@room log, $fresh;
            no_more_lines_are_kept_than_are_configured
            no_more_bytes_are_kept_than_are_configured
            older_lines_are_paged_without_a_gap
            lines_are_found_by_run_text_and_time
            a_search_looks_at_so_many_lines_and_says_where_to_go_on
        );
        laws!(@room endings, $fresh;
            an_end_releases_the_lease_and_is_shown
            what_follows_an_end_is_kept
            done_switches_everybody_off
            an_end_recorded_twice_is_harmless
            an_end_without_a_start_is_recorded
            an_end_after_the_lease_ran_out_unclaimed_is_recorded
            a_start_reported_after_its_end_revives_nothing
            runs_are_paged_newest_first_with_the_present_one
        );
        laws!(@room history, $fresh;
            runs_are_in_the_order_of_the_store_whatever_the_clocks_of_nodes_say
            the_runs_that_the_store_saw_first_are_forgotten_first
        );
        laws!(@room forgotten, $fresh;
            a_lease_that_is_asserted_again_shows_when_it_was_granted
            a_renewal_says_that_the_run_is_not_known
            a_run_that_is_reported_again_is_shown_as_before
            a_run_that_is_reported_again_is_not_a_second_one
            the_end_of_a_run_that_was_forgotten_says_when_it_started
            a_start_closes_an_older_run_whose_end_was_forgotten
            an_instant_of_another_clock_is_counted_back
        );
        laws!(@room folding, $fresh;
            idle_runs_in_a_row_share_one_entry_that_grows
            a_run_of_which_something_was_seen_has_an_entry_of_its_own
        );
        laws!(@room timeline, $fresh;
            ended_runs_are_told_before_they_are_folded_and_alike_afterwards
            two_who_fold_at_once_count_each_run_once
            what_is_older_than_it_is_kept_goes
            participations_and_holds_are_kept_when_they_are_over
            whoever_wanted_a_job_until_it_was_done_is_told
        );
        laws!(@room events, $fresh;
            the_first_thing_heard_is_the_confirmation
            every_change_is_published_with_its_version_and_kind
            a_lost_run_is_published_before_the_new_lease
            another_connection_hears_every_change
            every_subscriber_hears
            a_slow_reader_is_told_to_take_a_snapshot
            a_refused_write_publishes_nothing
        );
        laws!(@room rotation_waiters, $fresh;
            a_pass_wakes_exactly_one
            while_the_turn_is_promised_nobody_else_is_woken
            the_end_of_a_gap_wakes_one
            a_dead_holders_turn_goes_on_without_a_client
            a_promise_nobody_takes_up_goes_to_the_next
            a_silent_life_is_passed_over_until_it_is_heard_of
            a_life_that_pumps_is_not_silent
            whoever_comes_late_has_the_turn_if_nobody_asked_meanwhile
            whoever_stopped_waiting_is_not_woken
            whoever_has_an_answer_waits_no_more
            a_turn_that_goes_back_wakes_the_next
            new_rules_wake_whom_they_concern
            an_absent_type_that_comes_wakes_nobody_else
        );
    };
    (@plain $fresh:expr) => {
        laws!(@room batches, $fresh;
            of_a_batch_a_holder_extends_what_is_its_own_and_nothing_else
        );
        laws!(@room many_runs, $fresh;
            spans_outlive_the_runs_that_they_were_made_of
            more_spans_than_are_kept_are_merged_and_no_run_is_lost
            idle_runs_push_no_failure_out_of_the_history
        );
        laws!(@room alerts, $fresh;
            the_seat_of_the_sender_has_one_until_it_is_given_up_or_lapses
            only_who_has_the_seat_writes_what_is_told
            what_is_done_leaves_the_book_and_the_newest_are_remembered
            an_alert_is_mute_for_a_while_until_an_instant_or_not
        );
        laws!(@room hidden, $fresh;
            names_of_hidden_jobs_are_added_and_never_taken_out
        );
        laws!(@room throughput, $fresh;
            a_quarter_that_is_over_is_written_once_by_whoever_is_first
            a_day_of_quarters_is_kept
        );
        laws!(@room audit, $fresh;
            kinds_of_acts_are_kept_apart_and_read_as_one_list
            what_is_done_to_sources_tasks_and_rotations_and_its_entry_are_one_step
        );
        laws!(@room nodes, $fresh;
            how_a_machine_is_is_kept_and_is_no_news
            a_node_is_known_by_its_report
            a_second_process_of_the_same_name_is_told_so
            a_name_is_free_after_leaving_and_after_silence
            a_drained_node_hears_it_and_stays_drained
            an_unknown_node_cannot_be_drained
            only_news_about_nodes_are_published
            what_a_node_defines_is_asked_for_until_it_is_told_and_goes_with_the_node
            a_silent_node_is_forgotten_with_its_drain_mark_and_a_living_one_is_not
        );
        laws!(@room accounts, $fresh;
            an_account_is_kept_as_given
            a_name_is_taken_once
            of_many_first_accounts_one_is_made
            the_first_admin_may_come_after_other_accounts
            an_account_is_updated_and_keeps_its_birthday
            of_two_who_change_different_things_none_undoes_what_the_other_did
            another_role_or_password_ends_all_sessions_of_that_account
            whoever_changes_their_own_password_stays_and_a_reset_ends_tokens
            the_last_admin_stays_also_when_two_admins_go_at_once
            the_last_admin_with_a_password_stays
            an_act_and_its_entry_in_the_audit_are_one_step
            a_removed_account_takes_its_sessions_and_tokens_along
            an_unknown_account_is_not_found
        );
        laws!(@room credentials, $fresh;
            a_session_ends_at_its_absolute_end
            an_idle_session_ends_and_a_used_one_does_not
            a_look_at_a_session_does_not_keep_it
            sessions_are_listed_and_the_oldest_of_too_many_ends
            the_use_of_a_token_is_noted_once_in_a_while
            a_link_is_for_the_account_that_had_the_name_then
            of_links_that_set_a_password_the_newest_is_good_and_ends_with_another_password
            sessions_are_closed_one_by_one_or_all_of_a_user
            a_token_is_read_listed_and_revoked
            an_expired_token_is_gone
            a_link_is_taken_once
            an_expired_link_is_gone
            failures_are_counted_within_the_window
        );
        laws!(@room dispatch_tasks, $fresh;
            a_source_is_kept_with_its_rules_and_its_tasks
            the_same_key_is_the_same_task
            without_its_source_no_task_of_a_batch_is_put
            texts_come_back_as_they_went_in
            the_most_urgent_come_first_and_then_the_oldest
            a_task_is_not_handed_out_before_its_time
            done_tasks_are_forgotten_when_too_many_are_newer
        );
        laws!(@room dispatch_limits, $fresh;
            two_starts_are_never_closer_than_the_gap
            no_window_holds_more_starts_than_it_may
            gap_window_and_cap_hold_together
            no_more_are_in_flight_than_the_cap
            a_claim_at_the_said_instant_succeeds
            the_gap_outlasts_an_empty_queue
            a_blocked_source_serves_nobody_until_then
            a_paused_source_serves_nobody_and_loses_nothing
            changed_rules_count_at_once
            the_reason_is_of_the_source_that_opens_first
            the_next_claim_is_served_when_a_result_makes_room
        );
        laws!(@room dispatch_turns, $fresh;
            a_large_source_does_not_hold_up_small_ones
            backlogged_sources_are_served_in_turn
            one_claim_takes_from_every_source
            a_claim_is_divided_alike_among_backlogged_sources
            what_one_source_cannot_give_is_divided_among_the_others
            consecutive_claims_serve_every_source_alike
            a_claim_names_its_sources_and_gets_no_others
            a_source_that_was_named_has_had_its_turn
            a_source_that_was_emptied_comes_last_when_it_has_tasks_again
            counts_add_up_whatever_happens
        );
        laws!(@room dispatch_results, $fresh;
            a_result_counts_whatever_its_node_remembers_of_the_task
            a_result_is_accepted_once_and_its_repetition_changes_nothing
            a_task_to_be_tried_again_waits_for_its_backoff
            a_collector_may_say_when_to_try_again
            the_last_attempt_leads_to_death_and_a_revival_begins_anew
            a_recrawl_is_armed_again_with_its_attempts_from_zero
            a_lease_that_ran_out_counts_and_its_task_comes_first
            leases_that_ran_out_together_come_back_in_their_old_order
            an_error_is_remembered_of_the_attempt_that_reported_it
            a_claim_acts_on_leases_that_ran_out_by_itself
            the_newest_twenty_failures_are_kept
            nobody_can_report_what_is_in_the_claim_of_another
            results_make_room_for_the_claim_in_the_same_step
        );
        laws!(@room dispatch_claims, $fresh;
            a_claim_says_until_when_it_lasts
            the_same_request_gets_the_same_answer_and_no_second_lease
            of_twenty_askers_with_one_request_all_get_the_same
            a_final_answer_of_nothing_is_remembered
            a_request_is_new_when_the_lease_is_over
            a_request_is_new_in_the_step_that_finishes_its_claim
            a_repeated_answer_lasts_as_long_as_its_claim_was_extended
            extending_keeps_what_is_held_and_names_what_is_lost
            an_extended_lease_lasts_longer
            a_claim_is_extended_by_what_it_was_granted_whatever_the_rules_say_since
            only_its_owner_can_extend_or_give_back
            the_same_request_of_another_owner_is_another
            what_is_given_back_was_not_tried
            what_never_arrived_goes_back_unless_the_request_was_answered_again
            twenty_claimers_never_share_a_task
            collectors_are_seen_with_what_they_hold
            a_collector_that_calls_again_at_once_is_not_noted_again
            labels_of_any_printable_kind_are_kept_apart
        );
        laws!(@room dispatch_waiters, $fresh;
            new_tasks_wake_as_many_as_can_be_served_the_oldest_first
            every_subscriber_hears_who_is_woken
            only_those_are_woken_whose_sources_fit
            a_second_pump_wakes_nobody
            a_waiter_who_does_not_come_leaves_its_task_to_the_next
            whoever_stopped_waiting_is_not_woken
            whoever_is_served_waits_no_more
            a_result_that_makes_room_wakes_the_next
            whoever_reports_and_asks_in_one_step_comes_before_who_waits
            the_end_of_a_gap_wakes_one
            a_lost_lease_wakes_one
            operators_wake_too
        );
        laws!(@room removal, $fresh;
            a_source_with_tasks_goes_only_with_force_and_takes_them_along
            a_source_of_many_tasks_goes_as_a_whole
            who_waits_for_a_source_is_woken_when_it_goes
            a_task_goes_from_any_state_and_may_be_put_again
            a_task_that_goes_makes_room_for_the_next
            tasks_are_listed_by_their_last_change_page_by_page
            a_rotation_that_is_held_or_waited_for_goes_only_with_force
            of_collectors_the_last_thousand_are_remembered
        );
        laws!(@room rotation_turns, $fresh;
            a_free_turn_is_had_at_once
            the_same_request_has_the_same_turn
            a_request_whose_turn_was_lost_is_told_so
            one_has_the_turn_whoever_asks
            an_extended_turn_lasts_for_another_lease
            a_turn_keeps_the_lease_that_it_began_with
            a_stale_word_changes_nothing
            a_pass_counts_once
            a_pass_says_when_something_is_due_next
            a_turn_ends_with_its_lease_whoever_notices
            a_turn_that_nobody_received_goes_back
            ends_are_counted_and_the_newest_remembered
            rotations_do_not_touch_each_other
            what_is_unknown_leaves_nothing_behind
            a_reading_names_the_first_who_wait
        );
        laws!(@room rotation_order, $fresh;
            types_take_turns_among_those_with_somebody_waiting
            of_one_type_whoever_came_first_is_served_first
            nobody_overtakes_at_the_end_of_a_gap
            with_skip_never_everybody_waits_for_the_absent
            two_starts_are_never_closer_than_the_gap
            gap_and_quota_of_a_type_are_exact
            a_turn_is_had_at_the_said_instant
            whoever_passes_may_say_who_comes_next
            nobody_starts_before_the_instant_that_whoever_passed_named
            how_many_are_ahead_is_how_many_come_before
            new_rules_keep_the_holder_and_go_on_in_order
            gaps_outlast_new_rules
        );
        laws!(@room rotation_history, $fresh;
            every_history_leads_where_the_rules_say
        );
    };
    (@room $room:ident, $fresh:expr; $($law:ident)*) => {
        mod $room {
            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $law() {
                    let law = async || super::super::$room::$law($fresh).await;
                    crate::support::machine::judge(law).await;
                }
            )*
        }
    };
}

laws!(memory, crate::conformance::fresh_memory());
laws!(sqlite, crate::conformance::fresh_sqlite());
laws!(redis, crate::conformance::fresh_redis());
laws!(cluster, crate::conformance::fresh_cluster());
laws!(postgres, crate::conformance::fresh_postgres());
laws!(mariadb, crate::conformance::fresh_mariadb());
laws!(coordinated zookeeper_postgres, crate::conformance::fresh_zookeeper(&crate::conformance::fresh_postgres));
laws!(coordinated zookeeper_mariadb, crate::conformance::fresh_zookeeper(&crate::conformance::fresh_mariadb));
laws!(coordinated zookeeper_redis, crate::conformance::fresh_zookeeper(&crate::conformance::fresh_redis));

/// A store of its own for one test, gone with it.
pub(crate) struct Fresh {
    place: Place,
    options: Options,
    _guard: Box<dyn Any + Send>,
}

/// Where it is.
enum Place {
    At(String),
    In(World),
}

impl Fresh {
    /// `guard` keeps whatever the store lives in (a directory, a server) until the test ends.
    pub(crate) fn new(guard: impl Any + Send, url: String, options: Options) -> Self {
        Self { place: Place::At(url), options, _guard: Box::new(guard) }
    }

    /// One more connection to the same store, which keeps so much output.
    async fn keeping(&self, log: LogBounds) -> Store {
        let options = Options { log, ..self.options.clone() };
        self.open(&options).await
    }

    /// One more connection to the same store.
    pub(crate) async fn connect(&self) -> Store {
        self.open(&self.options).await
    }

    async fn open(&self, options: &Options) -> Store {
        match &self.place {
            Place::At(url) => {
                soloist::stores::connect(url, options).await.expect("the fresh store opens")
            }
            Place::In(world) => world.connect(options),
        }
    }
}

/// A world of its own.
fn fresh_memory() -> Fresh {
    let options = patient();
    Fresh { place: Place::In(World::ticking(&options)), options, _guard: Box::new(()) }
}

/// A file in a directory of its own. The time-out is generous because laws are not about speed.
fn fresh_sqlite() -> Fresh {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let url = format!("sqlite:{}", dir.path().join("soloist.db").display());
    Fresh::new(dir, url, patient())
}

/// A server of its own, on which the store may do what `deploy/redis.acl` lists.
fn fresh_redis() -> Fresh {
    let server = crate::support::redis::RedisServer::start_narrow();
    let url = server.narrow_url();
    Fresh::new(server, url, patient())
}

/// Keys of its own in the cluster that all of them share.
fn fresh_cluster() -> Fresh {
    let cluster = crate::support::cluster::RedisCluster::shared();
    let options = Options { prefix: format!("{}:", unique("law")), ..patient() };
    Fresh::new((), cluster.url(), options)
}

/// A database of its own on the server that all of them share.
fn fresh_postgres() -> Fresh {
    let server = crate::support::postgres::PostgresServer::shared();
    Fresh::new((), server.database(), patient())
}

/// The same on MariaDB.
fn fresh_mariadb() -> Fresh {
    let server = crate::support::mariadb::MariaServer::shared();
    Fresh::new((), server.database(), patient())
}

/// Any of them whose leases are in a ZooKeeper: a chroot of its own on the server that all of them share.
fn fresh_zookeeper(records: &dyn Fn() -> Fresh) -> Fresh {
    let chroot = crate::support::zookeeper::ZooKeeper::shared().chroot();
    let Fresh { place, options, _guard } = records();
    let Place::At(url) = place else { panic!("a store of a server has an address") };
    let place = Place::At(soloist::domain::ensemble::joined(&url, Some(&chroot)));
    Fresh { place, options, _guard }
}

/// Options for tests: a machine that is busy with other tests is not an unreachable store.
pub(crate) fn patient() -> Options {
    Options { timeout: Duration::from_secs(20), ..Options::default() }
}

/// How long a move stays valid.
const SOON: Duration = Duration::from_secs(20);
/// Longer than any test.
const LONG: Duration = Duration::from_secs(60);
/// Runs out during a test.
const SHORT: Duration = Duration::from_millis(120);

fn job(name: &str) -> JobName {
    JobName::new(name).expect("a good name")
}

fn node(name: &str) -> NodeName {
    NodeName::new(name).expect("a good name")
}

fn user(name: &str) -> UserName {
    UserName::new(name).expect("a good name")
}

/// A different text each time; sorts by age, as run ids do.
pub(crate) fn unique(what: &str) -> String {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    format!("{what}-{:08}", NEXT.fetch_add(1, Ordering::Relaxed))
}

/// A request without condition for a long lease, by a new owner.
fn ask(name: &str, on: &str) -> Acquire {
    Acquire {
        job: job(name),
        owner: Owner(unique("owner")),
        node: node(on),
        ttl: LONG,
        condition: Condition::None,
        seen: Token(0),
    }
}

/// The same, on condition that the job is wanted.
fn ask_wanted(name: &str, on: &str) -> Acquire {
    Acquire { condition: Condition::Wanted, ..ask(name, on) }
}

async fn acquire(store: &Store, ask: &Acquire) -> Acquired {
    store.acquire(ask).await.expect("the store answers")
}

/// Acquires what must be free.
async fn granted(store: &Store, ask: &Acquire) -> Token {
    match acquire(store, ask).await {
        Acquired::Granted { token, .. } => token,
        other => panic!("{} was not granted: {other:?}", ask.job),
    }
}

/// Asks until it is granted; for leases that are about to run out.
async fn granted_in_time(store: &Store, ask: &Acquire) -> Token {
    eventually(store, "the lease is granted", async || match acquire(store, ask).await {
        Acquired::Granted { token, .. } => Some(token),
        _ => None,
    })
    .await
}

/// Polls until `probe` finds something, and lets the store's time pass meanwhile; fails with `what` after half a minute.
async fn eventually<T>(store: &Store, what: &str, probe: impl AsyncFn() -> Option<T>) -> T {
    let found = async {
        loop {
            if let Some(found) = probe().await {
                return found;
            }
            nap(store).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), found)
        .await
        .unwrap_or_else(|_| panic!("never happened: {what}"))
}

/// Lets a little of the store's time pass.
async fn nap(store: &Store) {
    const NAP: Duration = Duration::from_millis(5);
    match soloist_store_memory::world(store) {
        Some(world) => {
            world.pass(NAP);
            // So that others run, and patience has an end.
            tokio::task::yield_now().await;
        }
        None => tokio::time::sleep(NAP).await,
    }
}

/// Lets others run, without waiting. A clock that stands still is moved by a millisecond.
async fn breathe(store: &Store) {
    if let Some(world) = soloist_store_memory::world(store) {
        world.pass(Duration::from_millis(1));
    }
    tokio::task::yield_now().await;
}

/// Lets the store's clock show `at`, if that can be done without waiting for it.
fn jump(store: &Store, at: Stamp) -> bool {
    let Some(world) = soloist_store_memory::world(store) else { return false };
    world.pass(at.since(world.now()));
    true
}

/// Returns when the store's clock has moved on by `span`.
async fn pass(store: &Store, span: Duration) {
    if let Some(world) = soloist_store_memory::world(store) {
        return world.pass(span + Duration::from_millis(1));
    }
    let begun = store.snapshot(&[]).await.expect("a snapshot").at;
    eventually(store, "the store's clock moves on", async || {
        let now = store.snapshot(&[]).await.expect("a snapshot").at;
        (now.since(begun) > span).then_some(())
    })
    .await;
}

/// The clock of the machine that the processes of `store` run on.
fn boot(store: &Store) -> Boot {
    soloist_store_memory::world(store).map_or_else(soloist::clock::boot, |world| world.boot())
}

async fn record(store: &Store, name: &str) -> JobRecord {
    let mut jobs = store.snapshot(&[job(name)]).await.expect("a snapshot").jobs;
    assert_eq!(jobs.len(), 1);
    jobs.remove(0)
}

async fn version(store: &Store, name: &str) -> u64 {
    record(store, name).await.version
}

async fn switch(store: &Store, name: &str, who: &str, on: bool) -> bool {
    store.participate(&job(name), &user(who), on, None).await.expect("switched")
}

fn started(store: &Store, ask: &Acquire, token: Token) -> Started {
    Started {
        job: ask.job.clone(),
        token,
        run: RunId(unique("run")),
        node: ask.node.clone(),
        pid: 4711,
        began: Began::at_boot(boot(store)),
    }
}

/// A good end of the run `run`, followed by `then`.
fn ended(ask: &Acquire, token: Token, run: &RunId, then: Then) -> Ended {
    let (code, end) = match then {
        Then::Nothing | Then::OnceMore | Then::Unused => (None, RunEnd::Stopped),
        Then::Repeat(_) | Then::Done => (Some(0), RunEnd::Exited),
        Then::Retry { .. } | Then::GiveUp { .. } => (Some(1), RunEnd::Crashed),
    };
    let signal = if code.is_none() { Some(15) } else { None };
    Ended {
        job: ask.job.clone(),
        owner: ask.owner.clone(),
        token,
        run: run.clone(),
        exit: Exit { code, signal },
        end,
        processes_killed: 0,
        then,
        began: None,
    }
}
