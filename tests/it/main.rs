//! Every integration test; one binary, so that it links once.
mod arrows;
mod browser;
mod cli;
mod config;
mod conformance;
mod doctor;
mod drill;
mod fence;
mod guard;
mod lifecycle;
mod metrics;
mod redis;
mod run;
mod startup;
mod support;
mod takeover;
mod web;
