//! The Lua scripts, each with the fragments it begins with; loaded into the server when it does not know them.
//!
//! One file per transition. A file's header says its keys, arguments and answer.

use std::sync::OnceLock;

use ::redis::Script;

use soloist_process::sabotage;

/// A script, in the two wordings that differ in how they publish: on a cluster a channel belongs to a slot, as a key
/// does, and is heard by those who ask the master of that slot.
pub(super) struct Transition {
    text: &'static str,
    alone: OnceLock<Script>,
    sharded: OnceLock<Script>,
}

impl Transition {
    const fn new(text: &'static str) -> Self {
        Self { text, alone: OnceLock::new(), sharded: OnceLock::new() }
    }

    /// The wording for one server or for a cluster.
    pub(super) fn on(&self, a_cluster: bool) -> &Script {
        let wording = if a_cluster { &self.sharded } else { &self.alone };
        wording.get_or_init(|| Script::new(&self.text(a_cluster)))
    }

    /// The same as text.
    pub(super) fn text(&self, a_cluster: bool) -> String {
        let text = sabotage::lua(self.text);
        if a_cluster { text.replace("'PUBLISH'", "'SPUBLISH'") } else { text.to_string() }
    }
}

macro_rules! scripts {
    ($($name:ident = $($file:literal)+;)*) => {
        $(pub(super) static $name: Transition =
            Transition::new(concat!($(include_str!($file)),+));)*

        /// Every script, for the server to compile in a test.
        #[cfg(test)]
        static ALL: &[(&str, &Transition)] = &[$((stringify!($name), &$name)),*];
    };
}

/// A step of the schema is put into this one.
pub(super) const APPLY_STEP: &str = include_str!("apply_step.lua");

scripts! {
    OPEN_STORE = "trust_store.lua" "open_store.lua";
    COMMIT_PLAN = "believe_store.lua" "find_entry.lua" "append_log.lua" "commit_plan.lua";
    COMMIT_GRANT = "trust_store.lua" "find_entry.lua" "append_log.lua" "commit_plan.lua";
    KEEP_LEASES = "trust_store.lua" "keep_leases.lua";
    READ_RECORDS = "trust_store.lua" "read_records.lua";
    OBSERVE_RECORDS = "trust_store.lua" "observe_records.lua";
    READ_LEASES = "read_leases.lua";
    READ_RUNS = "read_runs.lua";
    READ_OLDEST = "read_oldest.lua";
    READ_LOG = "read_log.lua";
    LOOK_RECORDS = "find_entry.lua" "look_at.lua" "look_records.lua";
    CHANGE_RECORDS = "find_entry.lua" "look_at.lua" "append_log.lua" "change_records.lua";
    PUT_SOURCE = "find_entry.lua" "append_log.lua" "note_act.lua" "open_dispatch.lua" "judge_source.lua" "put_source.lua";
    PAUSE_SOURCE = "find_entry.lua" "append_log.lua" "note_act.lua" "open_dispatch.lua" "judge_source.lua" "pause_source.lua";
    BLOCK_SOURCE = "find_entry.lua" "append_log.lua" "note_act.lua" "open_dispatch.lua" "judge_source.lua" "block_source.lua";
    READ_SOURCES = "open_dispatch.lua" "read_sources.lua";
    READ_COLLECTORS = "open_dispatch.lua" "read_collectors.lua";
    PUT_TASKS = "open_dispatch.lua" "move_tasks.lua" "put_tasks.lua";
    EXCHANGE_TASKS = "open_dispatch.lua" "move_tasks.lua" "settle_results.lua" "exchange_tasks.lua";
    EXTEND_CLAIM = "open_dispatch.lua" "move_tasks.lua" "extend_claim.lua";
    RETURN_CLAIM = "open_dispatch.lua" "move_tasks.lua" "return_claim.lua";
    LEAVE_QUEUES = "open_dispatch.lua" "leave_queues.lua";
    PUMP_DISPATCH = "open_dispatch.lua" "move_tasks.lua" "pump_dispatch.lua";
    READ_TASK = "open_dispatch.lua" "read_task.lua";
    READ_DEAD = "open_dispatch.lua" "read_dead.lua";
    REVIVE_TASK = "find_entry.lua" "append_log.lua" "note_act.lua" "open_dispatch.lua" "move_tasks.lua" "revive_task.lua";
    REMOVE_TASK = "find_entry.lua" "append_log.lua" "note_act.lua" "open_dispatch.lua" "move_tasks.lua" "remove_task.lua";
    REMOVE_SOURCE = "open_dispatch.lua" "judge_source.lua" "remove_source.lua";
    READ_TASKS = "open_dispatch.lua" "read_tasks.lua";
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    #[test]
    fn every_lua_file_says_its_keys_arguments_and_answer_and_is_part_of_a_script() {
        let room = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
        let table = std::fs::read_to_string(room.join("scripts.rs")).expect("this file");
        let mut files = 0;
        for entry in std::fs::read_dir(&room).expect("the room") {
            let path = entry.expect("an entry").path();
            if path.extension().is_none_or(|extension| extension != "lua") {
                continue;
            }
            files += 1;
            let stem = path.file_stem().expect("a name").to_string_lossy().into_owned();
            let text = std::fs::read_to_string(&path).expect("readable");
            let header: Vec<&str> = text.lines().take_while(|l| l.starts_with("-- ")).collect();
            assert!(
                header.first().is_some_and(|l| l.starts_with(&format!("-- {stem}: "))),
                "{stem}: first line"
            );
            for word in ["-- KEYS", "-- ARGV", "-- Returns", "-- Why: "] {
                assert!(header.iter().any(|l| l.starts_with(word)), "{stem} lacks {word}");
            }
            assert!(stem.contains('_'), "{stem} is no verb_noun");
            assert!(table.contains(&format!("\"{stem}.lua\"")), "{stem} is in no script");
        }
        assert!(files >= super::ALL.len());
    }

    #[test]
    fn on_a_cluster_nothing_is_published_to_everybody() {
        for (name, transition) in super::ALL {
            let hash = |sharded| transition.on(sharded).get_hash().to_owned();
            assert_eq!(hash(true) != hash(false), transition.text.contains("PUBLISH"), "{name}");
            let every = transition.text.matches("PUBLISH").count();
            assert_eq!(every, transition.text.matches("call('PUBLISH'").count(), "{name}");
        }
    }

    #[test]
    fn every_script_is_another() {
        let mut hashes: Vec<_> =
            super::ALL.iter().map(|(_, s)| s.on(false).get_hash().to_owned()).collect();
        hashes.sort();
        hashes.dedup();
        assert_eq!(hashes.len(), super::ALL.len());
    }
}
