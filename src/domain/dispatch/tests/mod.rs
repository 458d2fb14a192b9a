//! The transitions by timetables of hours, played in milliseconds; the rules against random histories.

pub(crate) mod in_memory;
mod rules;
mod timetable;
