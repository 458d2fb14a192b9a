//! The transitions by timetables of hours, played in milliseconds, and by random histories; the rules by themselves.

mod histories;
mod limits;
mod rules;
mod shop;
mod timetable;
