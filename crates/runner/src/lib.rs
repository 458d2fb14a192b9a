//! The runner: carries out what the domain decides.
//!
//! It learns of people's wishes only through the feed; it never uses the web. From below:
//!
//! | file | what it does |
//! | --- | --- |
//! | `hold` | something held by renewing it: the laws of trust, retries and loss |
//! | `keeper`, `rounds` | renews all leases of a node in batches; which of them are due |
//! | `program`, `spec` | what is run and where; what its guard is told |
//! | `event`, `output`, `relay`, `readers` | what a script says: lines read, or passed on unchanged |
//! | `nursery`, `guard_process`, `line`, `child` | the node's end of a guard: ready in advance, its process, its socket, the whole |
//! | `watcher` | starts the watcher of programs |
//! | `sweep`, `leftovers` | what is killed when a guard is lost, and when its node was lost with it |
//! | `attend` | the one loop that attends to a running script |
//! | `job_run`, `report`, `job_turn` | a run of a job, its reports, its turn in a rotation |
//! | `surroundings`, `local_job`, `ending`, `asking` | a job on this node: what is remembered, what follows a run, requests for its lease |
//! | `expected`, `outlook`, `supervisor` | who else may take a job, facts for the step, the loop that carries out the step's effects |
//! | `beat` | reports that this node lives |
//! | `ticks` | has the store write what time alone decides of ticks |
//! | `fitness` | which jobs this machine cannot start now, and why |
//! | `command`, `signals` | what the commands have in common; what may stop them |
//! | `entrusted`, `hidden` | the user and the secrets of a script; what of them is kept out of its output |
//! | `run_command`, `run_at_node` | `soloist run`, at the store and at nodes |
//! | `trouble` | why something was not granted, by the store or by a node |
//! | `counter`, `crew`, `task_run`, `slot`, `collect_command` | `soloist collect`: who gives it work (the store or a node), what its slots share, one task, one slot, the whole |
//! | `turn_ask`, `turn_place`, `turn_at_node`, `turn_run`, `turn_command` | `soloist turn`: what is asked for, who keeps it (the store or a node), how a node gives it, the turn that is held, the whole |

mod asking;
mod attend;
pub mod beat;
pub mod child;
pub mod collect_command;
mod command;
mod counter;
mod crew;
mod ending;
pub mod entrusted;
mod event;
mod expected;
pub mod fitness;
mod guard_process;
mod hidden;
mod hold;
mod job_run;
mod job_turn;
pub mod keeper;
pub mod leftovers;
mod line;
mod local_job;
pub mod nursery;
pub mod once;
mod outlook;
mod output;
pub mod program;
mod readers;
mod relay;
mod report;
mod rounds;
pub mod run_at_node;
pub mod run_command;
pub mod signals;
mod slot;
mod spec;
pub mod supervisor;
pub mod surroundings;
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
