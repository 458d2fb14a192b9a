//! What only SQLite can get wrong about jobs: a file that the version before wrote, and events in a table. Files, boots and other
//! processes are tested inside `src/store/sqlite`.

mod converted;
mod hints;
