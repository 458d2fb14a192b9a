//! Every integration test; one binary, so that it links once.
#![expect(missing_docs, reason = "tests explain themselves by their names")]
mod cli;
mod config;
mod conformance;
mod fence;
mod guard;
mod redis;
mod support;
