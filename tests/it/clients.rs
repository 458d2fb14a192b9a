//! The client libraries against real nodes: each library's driver does a little work under a lease and writes every act down.
//!
//! | file | what it holds the libraries to |
//! | --- | --- |
//! | `driver.rs` | starts and ends the drivers, in three languages |
//! | `proxy.rs` | the way between a client and a node, which can be cut |
//! | `witness.rs` | no act under an older token after one under a newer, by the boot clock |
//! | `leases.rs` | what other locks got wrong, one test each |
//! | `laws.rs` | logs that hang, answers of no node or without end, forked children, halves of surrogate pairs |
//! | `lifeline.rs` | the life line, which each library uses by itself |
//! | `reports.rs` | what public reports about other lock clients found, as a table of laws and languages |
//! | `ends.rs` | the end of a program: what it holds is given back when its work has ended |
//! | `jobs.rs` | jobs that a program runs: switched on and off, their output and history |
//! | `scheduled.rs` | ticks of jobs with a schedule: each once, in time, and what follows a failure, a death and off |
//! | `dispatch.rs` | tasks and turns |
//! | `live.rs` | what is followed, also when a node dies |
//! | `faults.rs` | random faults over all libraries, from a seed |
//! | `embedding.rs` | what `docs/embedding.md` prints, and the example of the warehouse |
//! | `spring.rs` | the starter on Spring Boot 3.5 and 4.0, and the example of the warehouse with it |
//! | `packages.rs` | versions and contents of the packages |

mod dispatch;
mod driver;
mod embedding;
mod ends;
mod faults;
mod jobs;
mod laws;
mod leases;
mod lifeline;
mod light;
mod live;
mod packages;
mod proxy;
mod reports;
mod scheduled;
mod spring;
mod witness;
