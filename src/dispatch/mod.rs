//! What must happen in dispatch without a client acting: leases that run out, gaps that end, and the waking of exactly
//! one waiter for each task that became ready.
//!
//! It keeps no state that the store does not have, but for who waits at this node.
