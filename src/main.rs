//! The program. All of it is the library's, so that the compiler makes its code once.

fn main() -> std::process::ExitCode {
    soloist::program::main()
}
