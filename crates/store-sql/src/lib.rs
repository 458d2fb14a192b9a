//! Stores that speak SQL: a SQLite file, and the servers PostgreSQL, MySQL and MariaDB.
//!
//! `sql` is what they have in common: dispatch on any of them, and jobs, records and leases on a server. A dialect is thin.

#[cfg(feature = "mysql")]
pub mod mysql;
pub mod postgres;
pub mod sql;
pub mod sqlite;
