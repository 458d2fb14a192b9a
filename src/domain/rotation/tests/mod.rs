//! What is decided about rotations, held against what was said: the ring by random histories, transitions by timetables.

pub(super) mod kept;
mod ring;
mod timetable;
