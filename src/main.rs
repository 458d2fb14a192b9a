//! The program.

fn main() {
    // First of all, before any thread or runtime exists: this process may be a guard.
    if let Some(code) = soloist::guard::entry() {
        std::process::exit(code);
    }
}
