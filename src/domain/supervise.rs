//! One job on one node: what to do next.
