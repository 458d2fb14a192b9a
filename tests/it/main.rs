//! Every integration test; one binary, so that it links once.
mod across;
mod alerts;
mod arrows;
mod browser;
mod cli;
mod clients;
mod collect;
mod config;
mod conformance;
#[expect(dead_code, reason = "the timetables and the model use the rest of it")]
#[path = "../../src/domain/dispatch/tests/in_memory.rs"]
mod dispatch_in_memory;
mod docs;
mod doctor;
mod doors;
mod drift;
mod drill;
mod entrusted;
mod external;
mod fence;
mod fencing;
mod guard;
mod histories;
mod image;
#[path = "../../src/domain/rotation/tests/in_memory.rs"]
mod in_memory;
mod kubernetes;
mod leases;
mod lifecycle;
mod limits;
mod live_examples;
mod load;
mod looking;
mod members;
mod messages;
mod metrics;
mod monitoring;
mod mysql;
mod nodes;
mod nursery;
mod outbound;
mod packaged;
mod pages;
mod postgres;
mod printed;
mod redis;
mod reload;
mod resting;
mod restore;
mod retold;
mod rolling;
mod run;
mod server;
mod service;
mod sql;
mod sqlite;
mod startup;
mod store_copy;
mod support;
mod takeover;
mod terminal;
mod turn;
mod web;
mod zookeeper;

// What `in_memory` uses from inside the crate.
use soloist::domain;
