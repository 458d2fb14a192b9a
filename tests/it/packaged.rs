//! What is installed beside the program: the configuration with every key, the unit, the package. Each is held to the program.

mod configuration;
mod debian;
mod unit;

use std::path::{Path, PathBuf};

/// A file of this repository.
fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

fn text(name: &str) -> String {
    std::fs::read_to_string(path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}
