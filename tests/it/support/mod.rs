//! What tests start and stop: real servers on free ports, real nodes, real browsers.

pub(crate) mod api;
pub(crate) mod browser;
pub(crate) mod certificate;
pub(crate) mod cluster;
pub(crate) mod guarded;
pub(crate) mod http;
pub(crate) mod machine;
pub(crate) mod mariadb;
pub(crate) mod nobody;
pub(crate) mod node;
pub(crate) mod postgres;
pub(crate) mod redis;
pub(crate) mod relay;
pub(crate) mod sentinel;
pub(crate) mod service;
pub(crate) mod small_disk;
pub(crate) mod wait;
pub(crate) mod witness;
pub(crate) mod worker;
pub(crate) mod zookeeper;
