//! What is decided about rotations, held against what was said: the ring by random histories, transitions by timetables.

mod ring;
mod timetable;
