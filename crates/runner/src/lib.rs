//! The runner: carries out what the domain decides.
//!
//! It learns of people's wishes only through the feed; it never uses the web. From below:
//!
//! | file | what it does |
//! | --- | --- |
//! | `hold` | something held by renewal: the laws of trust, retries and loss |
//! | `keeper`, `renewals` | renews all leases of a node in batches; which of them are due |
//! | `program`, `spec` | what runs and where; the message to its guard |
//! | `event`, `output`, `passthrough`, `readers` | the output of a script: lines read, or passed on unchanged |
//! | `nursery`, `guard_process`, `guard_socket`, `child` | the node's end of a guard: ready in advance, its process, its socket, the whole |
//! | `watcher` | starts the watcher of programs |
//! | `sweep`, `leftovers` | kills the rest when a guard is lost, or guard and node |
//! | `attend` | the one loop that attends to a running script |
//! | `job_run`, `report`, `job_turn` | a run of a job, its reports, its turn in a rotation |
//! | `node_context`, `local_job`, `ending`, `asking` | a job on this node: shared state, per-job state, the end of a run, lease requests |
//! | `candidates`, `cluster_view`, `supervisor` | who else may take a job, facts for the step, the loop that carries out the step's effects |
//! | `beat` | reports that this node lives |
//! | `ticks` | has the store write what time alone decides of ticks |
//! | `fitness` | which jobs this machine cannot start now, and why |
//! | `command`, `signals` | shared by the commands; the signals that stop them |
//! | `entrusted`, `redact` | the user and the secrets of a script; removes secrets from its output |
//! | `run_command`, `run_at_node` | `soloist run`, at the store and at nodes |
//! | `trouble` | why something was not granted, by the store or by a node |
//! | `work_source`, `collector`, `task_run`, `slot`, `collect_command` | `soloist collect`: the source of work (the store or a node), what its slots share, one task, one slot, the whole |
//! | `turn_ask`, `turn_place`, `turn_at_node`, `turn_run`, `turn_command` | `soloist turn`: its arguments, where its turn is kept (the store or a node), requests at a node, the held turn, the whole |

mod asking;
mod attend;
pub mod beat;
mod candidates;
pub mod child;
mod cluster_view;
pub mod collect_command;
mod collector;
mod command;
mod ending;
pub mod entrusted;
mod event;
pub mod fitness;
mod guard_process;
mod guard_socket;
mod hold;
mod job_run;
mod job_turn;
pub mod keeper;
pub mod leftovers;
mod local_job;
pub mod node_context;
pub mod nursery;
pub mod once;
mod output;
mod passthrough;
pub mod program;
mod readers;
mod redact;
mod renewals;
mod report;
pub mod run_at_node;
pub mod run_command;
pub mod signals;
mod slot;
mod spec;
pub mod supervisor;
mod sweep;
mod task_run;
pub mod ticks;
mod trouble;
mod turn_ask;
mod turn_at_node;
pub mod turn_command;
mod turn_place;
mod turn_run;
mod vitals;
pub mod watcher;
mod work_source;
