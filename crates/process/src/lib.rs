//! What a process asks of its machine and says to it: the clock, the log and its own output, metrics; and what it was built with.
//!
//! Nothing here knows a store or a script. Whoever holds a lease may call all of it: nothing waits for who reads.

pub mod clock;
pub mod outlet;
pub mod parts;
pub mod sabotage;
pub mod telemetry;
