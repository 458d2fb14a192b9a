//! What is decided about rotations, held against what was said: the ring by random histories, transitions by timetables.

pub(crate) mod in_memory;
mod ring;
mod timetable;
