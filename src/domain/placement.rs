//! Who tries first for a free lease.
