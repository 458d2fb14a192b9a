//! Access to the machine: the clock, the log and this process's output, metrics, and the parts of the build.
//!
//! Nothing here knows a store or a script. A holder of a lease may call all of it: nothing waits for a reader.

pub mod clock;
pub mod outlet;
pub mod parts;
pub mod sabotage;
pub mod telemetry;
