//! What only SQLite can get wrong: events in a table, files that are replaced under running
//! nodes, a clock of its own. Boots and other processes are tested inside `crates/store-sql/src/sqlite`.

mod hints;
mod mended;
mod ordinary;
mod replaced;
