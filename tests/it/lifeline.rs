//! Programs on a life line (contract 15): real processes, killed, paused, forked; real nodes and watchers, killed, too; and strangers at the
//! socket.
//!
//! | file | what |
//! | --- | --- |
//! | `program` | a process that says what it is told (`program.py`), and a node with a life line |
//! | `deaths` | what the kernel says ends a lease at once, and nothing else does |
//! | `kills` | work is over in time, whatever became of the program |
//! | `strangers` | what harms nobody else, and what the answer says |
//! | `nodes` | the watcher outlives nodes, and nodes outlive it |

mod deaths;
mod kills;
mod nodes;
mod program;
mod strangers;
