//! Every integration test; one binary, so that it links once.
mod arrows;
mod browser;
mod cli;
mod config;
mod conformance;
mod fence;
mod fencing;
mod guard;
mod lifecycle;
mod redis;
mod startup;
mod support;
mod takeover;
mod web;
