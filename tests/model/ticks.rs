//! A job with a schedule in every interleaving of two nodes that look, ask, start, renew, report and die; of answers that are lost, a store
//! that is away over a tick, people who switch it off and on or run a tick by its name; of nodes with two zone tables; and of a store that is
//! put back as it was.
//!
//! Everything that is decided is decided by the transitions of `domain::transition`, as in the stores. What they are judged by is counted
//! beside them. A node asks whenever it likes: so it does with a clock that has jumped.

use std::hash::{Hash, Hasher};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use soloist::domain::grant::{Acquire, Acquired, Condition, Renewal, Renewed};
use soloist::domain::job::{Exit, LeaseRecord, RunEnd};
use soloist::domain::journal::{Ended, Then};
use soloist::domain::lease::Token;
use soloist::domain::name::{JobName, NodeName, Owner, RunId, UserName};
use soloist::domain::tick::{
    Asked, Clock, Entry, Fill, Missed, OnLoss, Outcome, Overlap, Params, Phase, Rules, Schedule,
    Sight, Tick, TickName, Ticks,
};
use soloist::domain::time::{Began, Boot, StoreTime};
use soloist::domain::transition::history::Past;
use soloist::domain::transition::{Job, Now, Write, lease, participation, run, tick as law};

use super::search::{self, is_found, keeps_every_promise};

const UNIT: Duration = Duration::from_secs(1);
/// Units from one tick to the next, of which there are so many.
const STEP: u8 = 3;
const TICKS: u8 = 3;
/// A lease lasts so long; its script is killed one unit before.
const LEASE: u8 = 3;
/// It is looked at up to here, and then for so long whether all ends well.
const END: u8 = 10;
const PATIENCE: u8 = 16;
/// Of these so many happen.
const FAULTS: u8 = 2;

const TWICE: &str = "a tick is granted twice under one attempt";
const EARLY: &str = "a tick is granted before it starts";
const OVERLAP: &str = "two scripts of the job live";
const SPENT: &str = "a tick that was spent is granted again";
const TAKEN: &str = "the newest tick that was granted is not noted, or goes back";
const UNWANTED: &str = "a tick that nobody wanted is granted";
const ENTRIES: &str = "a tick has two entries";
const UNTOLD: &str = "a tick was due, and has no entry, is not open and does not wait";
const ENDS: &str = "a tick never gets an entry that says what became of it";

/// What is wrong on purpose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Plant {
    Nothing,
    TakenIsNotWritten,
    AttemptsBeginAnew,
    SpentIsForgotten,
    LeasesNeverEnd,
    LeasesAreNotLookedAt,
    OffsetsAreCompared,
    ClocksOfNodesDecide,
    TimeGoesBack,
    TimeRunsAhead,
    OffIsNotNoted,
    SightsAreNotTold,
    GapsAreGranted,
}

/// What is explored together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Scope {
    /// A tick whose holder is lost is run again; people switch, and run ticks by name.
    Again,
    /// It is never run again by itself.
    Spent,
    /// The second node has another zone table.
    Zones,
    /// The store is put back as it was.
    Restored,
}

/// When ticks are due by one zone table.
#[derive(Debug, Clone, Copy)]
struct Table {
    /// By this one all are a unit later.
    later: bool,
    /// The names say no zone: offsets are compared.
    bare: bool,
}

impl Table {
    fn tick(self, nth: u8) -> Tick {
        let at = at(nth * STEP - 1 + u8::from(self.later));
        let (offset, zone) = (1 + u8::from(!self.later), if self.bare { "" } else { "[Zone]" });
        let name = TickName(format!("job@2026-10-25T{nth:02}:00+0{offset}:00{zone}"));
        Tick { name, due: at, starts: at, note: None }
    }

    fn all(self) -> impl DoubleEndedIterator<Item = Tick> {
        (1..=TICKS).map(move |nth| self.tick(nth))
    }
}

impl Ticks for Table {
    fn after(&self, instant: StoreTime) -> Option<Tick> {
        self.all().find(|tick| tick.starts > instant)
    }

    fn until(&self, instant: StoreTime) -> Option<Tick> {
        self.all().rfind(|tick| tick.starts <= instant)
    }

    fn former(&self, _: &str) -> Option<Arc<dyn Ticks>> {
        None
    }
}

impl Fill for Table {
    fn fill(&self, _: &Tick, given: &Params) -> Params {
        given.clone()
    }
}

/// The instant after so many units.
fn at(units: u8) -> StoreTime {
    StoreTime(i64::from(units) * 1_000)
}

/// Which tick that is, whatever its offset.
fn nth(name: &TickName) -> u8 {
    let (_, hour) = name.0.split_once('T').expect("a civil time");
    hour[..2].parse().expect("a number")
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Doing {
    Idle,
    /// It has the lease, and nothing is started.
    Granted(u64),
    Runs(u64),
    /// The script is gone, and its end is not reported.
    Over(u64, RunEnd),
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Node {
    up: bool,
    doing: Doing,
    /// Tells the owners of its leases apart.
    attempt: u8,
    /// Units in which it may trust its lease, from the request that was answered last.
    trust: u8,
    /// What it saw last of the record, in the scope that needs it; it hears nothing more if it is deaf.
    seen: Option<Sight>,
    deaf: bool,
    /// The store changed, and it has not told what it saw before.
    tells: bool,
}

/// A script that lives.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Tree {
    token: u64,
    /// Units until its guard kills it.
    left: u8,
    /// Its node is dead.
    orphan: bool,
}

/// What a store keeps.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Stored {
    job: Job,
    list: Vec<Entry>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct World {
    now: u8,
    store: Stored,
    away: bool,
    backup: Option<Stored>,
    restored: bool,
    /// Units in which nothing is granted.
    doubt: u8,
    nodes: [Node; 2],
    trees: Vec<Tree>,
    faults: u8,
    // What transitions are judged by.
    granted: Vec<(u8, u32)>,
    lost: Vec<u8>,
    unwanted: Vec<u8>,
    newest: StoreTime,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Act {
    Tick,
    Look(usize),
    Ask {
        node: usize,
        heard: bool,
    },
    Start(usize),
    Renew(usize),
    Ends {
        node: usize,
        crashed: bool,
    },
    Report(usize),
    /// The guard of a dead node has killed its script, and says so.
    Guard(usize),
    /// With its machine, or alone.
    Dies {
        node: usize,
        machine: bool,
    },
    Restarts(usize),
    Away,
    Switch,
    ByName(u8),
    Deaf(usize),
    Backup,
    Restore,
}

static JOB: LazyLock<JobName> = LazyLock::new(|| "job".parse().expect("a name"));
static USER: LazyLock<UserName> = LazyLock::new(|| "li".parse().expect("a name"));
static NAMES: LazyLock<[NodeName; 2]> =
    LazyLock::new(|| ["node-a", "node-b"].map(|name| name.parse().expect("a name")));

impl Hash for World {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let stored = |stored: &Stored, state: &mut H| {
            let record = &stored.job.record;
            (&record.clock, record.token.0, record.version, record.participants.len()).hash(state);
            for lease in [&record.lease, &stored.job.lapsed] {
                let lease = lease.as_ref();
                lease.map(|one| (&one.owner.0, one.token.0, one.expires_in)).hash(state);
            }
            (stored.job.released.0, &stored.list).hash(state);
        };
        stored(&self.store, state);
        self.backup.is_some().hash(state);
        self.backup.iter().for_each(|backup| stored(backup, state));
        for node in &self.nodes {
            (node.up, &node.doing, node.attempt, node.trust).hash(state);
            (node.deaf, node.tells).hash(state);
            let seen = node.seen.as_ref();
            seen.map(|seen| (&seen.clock, seen.version, seen.at, seen.changed)).hash(state);
        }
        (self.now, self.away, self.restored, self.doubt, &self.trees, self.faults).hash(state);
        (&self.granted, &self.lost, &self.unwanted, self.newest).hash(state);
    }
}

#[derive(Clone, Copy)]
struct Game {
    scope: Scope,
    plant: Plant,
}

impl search::Game for Game {
    type World = World;
    type Act = Act;
    const LOOKED_AT: usize = 97;

    fn begin(&self) -> World {
        let node = Node {
            up: true,
            doing: Doing::Idle,
            attempt: 0,
            trust: 0,
            seen: None,
            deaf: false,
            tells: false,
        };
        let mut world = World {
            now: 1,
            store: Stored { job: Job::untouched(JOB.clone()), list: Vec::new() },
            away: false,
            backup: None,
            restored: false,
            doubt: 0,
            nodes: [node.clone(), node],
            trees: Vec::new(),
            faults: FAULTS,
            granted: Vec::new(),
            lost: Vec::new(),
            unwanted: Vec::new(),
            newest: StoreTime(0),
        };
        let now = world.instant();
        participation::switch(&mut world.store.job, &USER, true, None, now);
        self.look(&mut world, 0);
        self.conclude(&mut world);
        world
    }

    fn acts(&self, world: &World) -> Vec<Act> {
        let mut acts = Vec::new();
        if world.now < END {
            acts.push(Act::Tick);
        }
        for (n, node) in world.nodes.iter().enumerate() {
            if !node.up {
                acts.push(Act::Restarts(n));
                continue;
            }
            match node.doing {
                Doing::Idle if !world.away => {
                    acts.extend([Act::Look(n), Act::Ask { node: n, heard: true }]);
                }
                Doing::Granted(_) => acts.push(Act::Start(n)),
                Doing::Runs(_) => acts.push(Act::Ends { node: n, crashed: false }),
                Doing::Over(..) if !world.away => acts.push(Act::Report(n)),
                Doing::Idle | Doing::Over(..) => {}
            }
            let holds = matches!(node.doing, Doing::Granted(_) | Doing::Runs(_));
            if holds && !world.away {
                acts.push(Act::Renew(n));
            }
            if world.faults == 0 {
                continue;
            }
            acts.extend([false, true].map(|machine| Act::Dies { node: n, machine }));
            if matches!(node.doing, Doing::Runs(_)) {
                acts.push(Act::Ends { node: n, crashed: true });
            }
            if node.doing == Doing::Idle && !world.away && self.scope != Scope::Restored {
                acts.push(Act::Ask { node: n, heard: false });
            }
            if self.scope == Scope::Restored && !node.deaf {
                acts.push(Act::Deaf(n));
            }
        }
        for (i, tree) in world.trees.iter().enumerate() {
            if tree.orphan {
                acts.push(Act::Guard(i));
            }
        }
        if world.away || world.faults > 0 {
            acts.push(Act::Away);
        }
        if self.scope == Scope::Restored && !world.away {
            match (&world.backup, world.restored) {
                (None, _) => acts.push(Act::Backup),
                (Some(_), false) => acts.push(Act::Restore),
                (Some(_), true) => {}
            }
        }
        let people = matches!(self.scope, Scope::Again | Scope::Spent);
        if people && world.faults > 0 && !world.away {
            acts.extend([Act::Switch, Act::ByName(1)]);
        }
        acts
    }

    fn after(&self, before: &World, act: Act) -> Result<World, &'static str> {
        let mut world = before.clone();
        self.perform(&mut world, act)?;
        self.conclude(&mut world);
        self.check(&world)?;
        Ok(world)
    }

    /// When nothing fails any more, every tick has its entry in the end.
    fn ends_well(&self, world: &World) -> Result<(), &'static str> {
        let mut world = World { faults: 0, away: false, ..world.clone() };
        for n in 0..2 {
            world.nodes[n].up = true;
        }
        let told = |world: &World, tick: &Tick| {
            let own = world.store.list.iter().find(|one| one.is_of(&tick.name, tick.starts));
            own.is_some_and(|entry| entry.outcome != Outcome::Running)
        };
        while world.now < END + PATIENCE {
            if self.table(0).all().all(|tick| told(&world, &tick)) {
                return Ok(());
            }
            for n in 0..2 {
                for act in [
                    Act::Look(n),
                    Act::Report(n),
                    Act::Ask { node: n, heard: true },
                    Act::Start(n),
                    Act::Ends { node: n, crashed: false },
                    Act::Report(n),
                ] {
                    let idle = world.nodes[n].doing == Doing::Idle;
                    if !idle && matches!(act, Act::Look(_) | Act::Ask { .. }) {
                        continue;
                    }
                    world = self.after(&world, act)?;
                }
            }
            while let Some(i) = world.trees.iter().position(|tree| tree.orphan) {
                world = self.after(&world, Act::Guard(i))?;
            }
            world = self.after(&world, Act::Tick)?;
        }
        Err(ENDS)
    }
}

impl Game {
    fn table(self, node: usize) -> Table {
        let later = self.scope == Scope::Zones && node == 1;
        Table { later, bare: self.plant == Plant::OffsetsAreCompared }
    }

    fn schedule(self, node: usize) -> Schedule {
        let rules = Rules {
            missed: Missed::Once,
            missed_window: Some(UNIT * 4),
            overlap: if self.scope == Scope::Spent { Overlap::Queue } else { Overlap::Skip },
            on_loss: if self.scope == Scope::Spent { OnLoss::Spent } else { OnLoss::Again },
            retries: 1,
            backoff: UNIT,
            grace: UNIT,
            ..Rules::default()
        };
        let table = Arc::new(self.table(node));
        let (text, lacks) = ("each".to_owned(), Default::default());
        Schedule { ticks: table.clone(), rules, text, params: table, lacks }
    }

    fn perform(self, world: &mut World, act: Act) -> Result<(), &'static str> {
        match act {
            Act::Tick => self.tick(world),
            Act::Look(n) => self.look(world, n),
            Act::Ask { node, heard } => {
                world.faults -= u8::from(!heard);
                self.ask(world, node, heard)?;
            }
            Act::Start(n) => {
                let Doing::Granted(token) = world.nodes[n].doing else { return Ok(()) };
                world.nodes[n].doing = Doing::Runs(token);
                let left = world.nodes[n].trust;
                world.trees.push(Tree { token, left, orphan: false });
            }
            Act::Renew(n) => self.renew(world, n),
            Act::Ends { node, crashed } => {
                world.faults -= u8::from(crashed);
                let Doing::Runs(token) = world.nodes[node].doing else { return Ok(()) };
                world.trees.retain(|tree| tree.token != token);
                let end = if crashed { RunEnd::Crashed } else { RunEnd::Exited };
                (world.nodes[node].doing, world.nodes[node].trust) = (Doing::Over(token, end), 0);
            }
            Act::Report(n) => {
                let Doing::Over(token, end) = world.nodes[n].doing else { return Ok(()) };
                self.ended(world, token, end);
                world.nodes[n].idle();
            }
            Act::Guard(i) => {
                let token = world.trees.remove(i).token;
                if !world.away {
                    self.ended(world, token, RunEnd::Lost);
                }
            }
            Act::Dies { node, machine } => {
                world.faults -= 1;
                let owner = owner(node, world.nodes[node].attempt);
                let job = &world.store.job;
                let leases = job.record.lease.iter().chain(&job.lapsed);
                let held = leases.into_iter().any(|lease| lease.owner == owner);
                let open = job.record.clock.as_ref().and_then(|clock| clock.open());
                let open =
                    open.filter(|_| held && !matches!(world.nodes[node].doing, Doing::Over(..)));
                world.lost.extend(open.map(|open| nth(&open.tick.name)));
                if let Doing::Runs(token) = world.nodes[node].doing {
                    let own = world.trees.iter_mut().filter(|tree| tree.token == token);
                    own.for_each(|tree| tree.orphan = true);
                    world.trees.retain(|tree| !(tree.token == token && machine));
                }
                let node = &mut world.nodes[node];
                node.idle();
                let told = std::mem::take(&mut node.tells);
                (node.up, node.seen, node.deaf) = (false, None, false);
                if told {
                    world.judge_by_what_is_known();
                }
            }
            Act::Restarts(n) => world.nodes[n].up = true,
            Act::Away => {
                world.faults -= u8::from(!world.away);
                world.away = !world.away;
            }
            Act::Switch => {
                world.faults -= 1;
                let (on, now) = (!world.is_on(), world.instant());
                let (_, writes) = participation::switch(&mut world.store.job, &USER, on, None, now);
                if on {
                    // At one instant the last word counts.
                    let table = self.table(0);
                    world.unwanted.retain(|nth| table.tick(*nth).starts < now.at);
                }
                if let Some(clock) = &mut world.store.job.record.clock
                    && self.plant == Plant::OffIsNotNoted
                    && clock.shifts.len() > 1
                {
                    clock.shifts.pop();
                }
                world.wrote(writes);
            }
            Act::ByName(nth) => {
                world.faults -= 1;
                self.ask_by_name(world, nth);
            }
            Act::Deaf(n) => {
                world.faults -= 1;
                world.nodes[n].deaf = true;
            }
            Act::Backup => world.backup = Some(world.store.clone()),
            Act::Restore => world.restore(),
        }
        Ok(())
    }

    /// A unit of time passes.
    fn tick(self, world: &mut World) {
        world.now += 1;
        for tree in &mut world.trees {
            tree.left -= 1;
        }
        let killed: Vec<u64> =
            world.trees.extract_if(.., |tree| tree.left == 0).map(|tree| tree.token).collect();
        for node in &mut world.nodes {
            if let Doing::Runs(token) = node.doing
                && killed.contains(&token)
            {
                (node.doing, node.trust) = (Doing::Over(token, RunEnd::Fenced), 0);
            }
        }
        let job = &mut world.store.job;
        if let Some(lease) = &mut job.record.lease
            && self.plant != Plant::LeasesNeverEnd
        {
            lease.expires_in -= UNIT;
            if lease.expires_in.is_zero() {
                job.lapsed = job.record.lease.take();
            }
        }
        for node in &mut world.nodes {
            node.trust = node.trust.saturating_sub(1);
            // What its lease no longer covers is not started.
            if matches!(node.doing, Doing::Granted(_)) && node.trust == 0 {
                node.idle();
            }
        }
        if !world.is_on() && self.scope != Scope::Zones {
            let due = self.table(0).all().filter(|tick| tick.starts == at(world.now));
            let due: Vec<u8> = due.map(|tick| nth(&tick.name)).collect();
            world.unwanted.extend(due);
        }
        if world.doubt == 1 {
            // Each living node has told what it saw.
            for n in 0..2 {
                if world.nodes[n].tells {
                    self.look(world, n);
                }
            }
        }
        world.doubt = world.doubt.saturating_sub(1);
    }

    fn sight(self, world: &World, n: usize) -> Option<Sight> {
        let told = self.plant != Plant::SightsAreNotTold;
        world.nodes[n].seen.clone().filter(|_| world.nodes[n].tells && told)
    }

    /// What a planted fault does to what the store shows.
    fn mislead(self, world: &mut World) {
        let job = &mut world.store.job;
        let Some(clock) = &mut job.record.clock else { return };
        match self.plant {
            Plant::AttemptsBeginAnew => {
                if let Some(open) = clock.open.as_mut()
                    && matches!(open.phase, Phase::Again { .. })
                {
                    open.attempt = 0;
                }
            }
            Plant::SpentIsForgotten => {
                clock.open.iter_mut().for_each(|open| open.rules.on_loss = OnLoss::Again);
            }
            Plant::LeasesAreNotLookedAt => (job.record.lease, job.lapsed) = (None, None),
            Plant::TimeGoesBack => (clock.accounted, clock.last) = (StoreTime(0), None),
            Plant::TimeRunsAhead => clock.accounted = clock.accounted.max(at(world.now)),
            Plant::GapsAreGranted => clock.forgot = None,
            _ => {}
        }
    }

    fn look(self, world: &mut World, n: usize) {
        self.mislead(world);
        let (seen, now) = (self.sight(world, n), world.instant());
        let quarantine = UNIT * u32::from(world.doubt);
        let (schedule, job) = (self.schedule(n), &mut world.store.job);
        let writes = law::settle(job, &Past::default(), &schedule, seen.as_ref(), quarantine, now);
        world.nodes[n].tells = false;
        world.wrote(writes);
    }

    fn ask(self, world: &mut World, n: usize, heard: bool) -> Result<(), &'static str> {
        self.mislead(world);
        let now = world.instant();
        let ahead = u8::from(self.plant == Plant::ClocksOfNodesDecide && n == 1) * STEP;
        let claimed = Now { at: at(world.now + ahead), ..now };
        let ask = Acquire {
            job: JOB.clone(),
            owner: owner(n, world.nodes[n].attempt),
            node: NAMES[n].clone(),
            ttl: UNIT * u32::from(LEASE),
            condition: Condition::Wanted,
            seen: Token(0),
        };
        let seen = self.sight(world, n);
        let quarantine = UNIT * u32::from(world.doubt);
        let before = world.store.job.record.clone();
        let (schedule, job) = (self.schedule(n), &mut world.store.job);
        let past = Past::default();
        let (answer, granted, writes) =
            law::acquire(job, &past, &ask, &schedule, seen.as_ref(), quarantine, claimed);
        if quarantine.is_zero() {
            world.nodes[n].tells = false;
        }
        world.wrote(writes);
        let Acquired::Granted { token, .. } = answer else { return Ok(()) };
        let granted = granted.expect("it is held for a tick");
        if before.token != token {
            let tick = nth(&granted.tick.name);
            if granted.tick.starts > now.at {
                return Err(EARLY);
            }
            if world.granted.contains(&(tick, granted.attempt)) {
                return Err(TWICE);
            }
            world.granted.push((tick, granted.attempt));
            let clock = world.store.job.record.clock.as_mut().expect("ticks are known");
            let by_clock = clock.open().is_some_and(|open| open.is_by_clock());
            if by_clock && self.scope == Scope::Spent && world.lost.contains(&tick) {
                return Err(SPENT);
            }
            if by_clock && granted.attempt == 1 && world.unwanted.contains(&tick) {
                return Err(UNWANTED);
            }
            if self.plant == Plant::TakenIsNotWritten {
                clock.taken = before.clock.and_then(|clock| clock.taken);
            }
            if by_clock {
                world.newest = world.newest.max(granted.tick.starts);
            }
        }
        if heard {
            (world.nodes[n].doing, world.nodes[n].trust) = (Doing::Granted(token.0), LEASE - 1);
            if self.scope == Scope::Restored && !world.nodes[n].tells {
                world.nodes[n].seen = Some(granted.sight);
            }
        }
        Ok(())
    }

    fn renew(self, world: &mut World, n: usize) {
        let (Doing::Granted(token) | Doing::Runs(token)) = world.nodes[n].doing else { return };
        let ask = Renewal {
            job: JOB.clone(),
            owner: owner(n, world.nodes[n].attempt),
            node: NAMES[n].clone(),
            token: Token(token),
            ttl: UNIT * u32::from(LEASE),
            since: Began::at_boot(Boot(0)),
            run: None,
        };
        let now = world.instant();
        match lease::renew_in(&mut world.store.job, &ask, now) {
            Renewed::Kept { .. } => {
                world.nodes[n].trust = LEASE - 1;
                let own = world.trees.iter_mut().filter(|tree| tree.token == token);
                own.for_each(|tree| tree.left = LEASE - 1);
            }
            Renewed::Lost => {
                world.trees.retain(|tree| tree.token != token);
                world.nodes[n].doing = Doing::Over(token, RunEnd::Fenced);
            }
        }
    }

    fn ended(self, world: &mut World, token: u64, end: RunEnd) {
        if self.plant == Plant::SpentIsForgotten {
            self.mislead(world);
        }
        let ended = Ended {
            job: JOB.clone(),
            owner: Owner(String::new()),
            token: Token(token),
            run: RunId(String::new()),
            exit: Exit { code: Some(i32::from(end != RunEnd::Exited)), signal: None },
            end,
            processes_killed: 0,
            then: Then::Nothing,
            began: None,
        };
        let now = world.instant();
        if let Ok(writes) = run::ended(&mut world.store.job, &Past::default(), &ended, now) {
            world.wrote(writes);
        }
    }

    fn ask_by_name(self, world: &mut World, number: u8) {
        let tick = self.table(0).tick(number);
        let now = world.instant();
        let known = world.store.list.iter().find(|entry| entry.is_of(&tick.name, tick.starts));
        let known = known.cloned();
        let asked = Asked {
            tick,
            by: USER.clone(),
            params: Params::new(),
            at: now.at,
            request: None,
            attempts: 0,
            known: None,
        };
        let schedule = self.schedule(0);
        let (_, writes) = law::ask(&mut world.store.job, &schedule, asked, known.as_ref(), now);
        world.wrote(writes);
    }

    /// Who hears what, and all that is remembered is made alike.
    fn conclude(self, world: &mut World) {
        if self.scope == Scope::Restored && !world.away {
            let record = &world.store.job.record;
            for node in &mut world.nodes {
                if node.up && !node.deaf && !node.tells {
                    node.seen = record.clock.clone().map(|clock| Sight {
                        clock,
                        version: record.version,
                        at: at(world.now),
                        changed: None,
                    });
                }
            }
        }
        world.normalise(self.scope);
    }

    fn check(self, world: &World) -> Result<(), &'static str> {
        if world.trees.len() > 1 {
            return Err(OVERLAP);
        }
        let clock = world.store.job.record.clock.as_ref().expect("ticks are known");
        let taken = clock.taken.as_ref().map_or(StoreTime(0), |taken| taken.starts);
        if world.doubt == 0 && !world.nodes.iter().any(|node| node.tells) && taken < world.newest {
            return Err(TAKEN);
        }
        for tick in 1..=TICKS {
            let (of, starts) = (self.table(0).tick(tick), self.table(0).tick(tick).starts);
            let told =
                world.store.list.iter().filter(|entry| entry.is_of(&of.name, starts)).count();
            if told > 1 {
                return Err(ENTRIES);
            }
            let due = (0..2).all(|n| self.table(n).tick(tick).starts <= clock.accounted);
            let waits = clock.pending.iter().any(|one| {
                let older = one.older.iter().any(|entry| entry.is_of(&of.name, starts));
                one.tick.name == of.name || older
            });
            let open = clock.open().is_some_and(|open| open.tick.name == of.name);
            if due && told == 0 && !waits && !open {
                return Err(UNTOLD);
            }
        }
        Ok(())
    }
}

fn owner(node: usize, attempt: u8) -> Owner {
    Owner(format!("{node}/{attempt}"))
}

impl Node {
    /// Nothing is held; the next lease has another owner.
    fn idle(&mut self) {
        (self.doing, self.attempt, self.trust) = (Doing::Idle, self.attempt + 1, 0);
    }
}

impl World {
    fn instant(&self) -> Now {
        Now { at: at(self.now), boot: Boot(0) }
    }

    fn is_on(&self) -> bool {
        !self.store.job.record.participants.is_empty()
    }

    fn wrote(&mut self, writes: Vec<Write>) {
        for write in writes {
            let Write::KeepTick { entry, instead } = write else { continue };
            let plain = |entry: &Entry| Entry {
                run: None,
                started: None,
                ended: None,
                late_ms: None,
                ..entry.clone()
            };
            if let Some(instead) = instead {
                let known = self.store.list.iter().position(|one| *one == plain(&instead));
                // A store that was put back may not have what a node saw.
                known.map(|known| self.store.list.remove(known));
            }
            self.store.list.push(plain(&entry));
        }
    }

    /// The store is as it was, and in doubt.
    fn restore(&mut self) {
        let Some(backup) = self.backup.clone() else { return };
        self.restored = true;
        self.doubt = LEASE;
        self.store = backup;
        // Leases end by the clock.
        (self.store.job.record.lease, self.store.job.lapsed) = (None, None);
        let changed = at(self.now);
        for node in self.nodes.iter_mut().filter(|node| node.up) {
            node.seen = node.seen.take().map(|seen| Sight { changed: Some(changed), ..seen });
            (node.tells, node.deaf) = (node.seen.is_some(), false);
        }
        self.lost.clear();
        self.judge_by_what_is_known();
    }

    /// What no living node saw nobody can know, if one looked after the start of the tick and heard no more, or if none lives.
    fn judge_by_what_is_known(&mut self) {
        let record = self.store.job.record.clock.as_ref();
        let told = record.map(|clock| (clock, clock.forgot.map_or(StoreTime(0), |gap| gap.seen)));
        let tells = self.nodes.iter().filter(|node| node.tells);
        let seen = tells.filter_map(|node| node.seen.as_ref().map(|seen| (&seen.clock, seen.at)));
        let all: Vec<_> = told.into_iter().chain(seen).collect();
        let lives = all.len() > 1 || record.is_some_and(|clock| clock.forgot.is_some());
        let knows = |clock: &Clock, tick: u8, attempt: u32| {
            let open = clock.open.iter().map(|open| (&open.tick, open.attempt));
            let told = clock.recent.iter().map(|entry| (&entry.tick, entry.attempt));
            open.chain(told).any(|(of, most)| nth(&of.name) == tick && most >= attempt)
        };
        let start = |tick: u8| Table { later: false, bare: false }.tick(tick).starts;
        self.granted.retain(|(tick, attempt)| {
            all.iter().any(|(clock, _)| knows(clock, *tick, *attempt))
                || lives && all.iter().all(|(_, at)| *at < start(*tick))
        });
        let taken = all.iter().filter_map(|(clock, _)| clock.taken.as_ref());
        self.newest = taken.map(|taken| taken.starts).max().unwrap_or_default();
    }

    fn normalise(&mut self, scope: Scope) {
        let stores = std::iter::once(&mut self.store).chain(&mut self.backup);
        for stored in stores {
            let record = &mut stored.job.record;
            (record.last_exit, record.run, record.next, record.crashes) = (None, None, None, 0);
            if scope != Scope::Restored {
                record.version = 0;
            }
            for clock in record.clock.iter_mut() {
                plain(clock);
            }
            stored.list.sort_by(|one, other| {
                (one.tick.starts, &one.tick.name.0).cmp(&(other.tick.starts, &other.tick.name.0))
            });
        }
        self.nodes.iter_mut().filter_map(|n| n.seen.as_mut()).for_each(|s| plain(&mut s.clock));
        self.granted.sort_unstable();
        for list in [&mut self.lost, &mut self.unwanted] {
            list.sort_unstable();
            list.dedup();
        }
        self.rank();
        self.trees.sort();
    }

    /// Of tokens, versions and attempts only the order matters.
    fn rank(&mut self) {
        let mut tokens: Vec<&mut u64> = Vec::new();
        let mut versions: Vec<&mut u64> = Vec::new();
        let mut owners: Vec<&mut Owner> = Vec::new();
        for stored in std::iter::once(&mut self.store).chain(&mut self.backup) {
            let job = &mut stored.job;
            tokens.extend([&mut job.record.token.0, &mut job.released.0]);
            versions.push(&mut job.record.version);
            for lease in job.record.lease.iter_mut().chain(&mut job.lapsed) {
                let LeaseRecord { owner, token, since, .. } = lease;
                *since = StoreTime(0);
                tokens.push(&mut token.0);
                owners.push(owner);
            }
            let clock = job.record.clock.as_mut();
            tokens.extend(clock.and_then(|c| c.open.as_mut()).map(|open| &mut open.token.0));
        }
        let mut attempts: Vec<(usize, &mut u8)> = Vec::new();
        for (n, node) in self.nodes.iter_mut().enumerate() {
            match &mut node.doing {
                Doing::Granted(token) | Doing::Runs(token) | Doing::Over(token, _) => {
                    tokens.push(token);
                }
                Doing::Idle => {}
            }
            if let Some(seen) = &mut node.seen {
                versions.push(&mut seen.version);
                tokens.extend(seen.clock.open.as_mut().map(|open| &mut open.token.0));
            }
            attempts.push((n, &mut node.attempt));
        }
        tokens.extend(self.trees.iter_mut().map(|tree| &mut tree.token));
        ranked(tokens);
        ranked(versions);
        for (n, attempt) in attempts {
            let prefix = format!("{n}/");
            let own = |owner: &&mut &mut Owner| owner.0.starts_with(&prefix);
            let mut known: Vec<u8> = owners
                .iter()
                .filter_map(|owner| owner.0.strip_prefix(&prefix)?.parse().ok())
                .chain([*attempt])
                .collect();
            known.sort_unstable();
            known.dedup();
            let rank = |of: u8| known.iter().position(|one| *one == of).unwrap_or(0);
            for one in owners.iter_mut().filter(own) {
                let of = one.0.strip_prefix(&prefix).and_then(|of| of.parse().ok()).unwrap_or(0);
                one.0 = format!("{prefix}{}", rank(of));
            }
            *attempt = u8::try_from(rank(*attempt)).expect("few");
        }
    }
}

/// Replaces numbers by their rank; zero stays zero.
fn ranked(mut numbers: Vec<&mut u64>) {
    let mut sorted: Vec<u64> = numbers.iter().map(|number| **number).chain([0]).collect();
    sorted.sort_unstable();
    sorted.dedup();
    for number in &mut numbers {
        **number = sorted.binary_search(*number).unwrap_or(0) as u64;
    }
}

/// What decides nothing is left out.
fn plain(clock: &mut Clock) {
    for entry in &mut clock.recent {
        (entry.run, entry.started, entry.ended, entry.late_ms) = (None, None, None, None);
    }
    for open in clock.open.iter_mut() {
        (open.run, open.started, open.late_ms) = (None, None, 0);
    }
    clock.answered.clear();
}

#[test]
fn no_interleaving_breaks_a_promise_of_ticks() {
    for scope in [Scope::Again, Scope::Spent, Scope::Zones, Scope::Restored] {
        let game = Game { scope, plant: Plant::Nothing };
        keeps_every_promise(&format!("ticks, {scope:?}"), &game, crate::states() / 3);
    }
}

#[test]
fn every_fault_planted_in_ticks_is_found() {
    for (scope, plant, promises) in [
        (Scope::Again, Plant::TakenIsNotWritten, &[TAKEN][..]),
        (Scope::Again, Plant::AttemptsBeginAnew, &[TWICE]),
        (Scope::Spent, Plant::SpentIsForgotten, &[SPENT]),
        (Scope::Again, Plant::LeasesNeverEnd, &[ENDS]),
        (Scope::Again, Plant::LeasesAreNotLookedAt, &[OVERLAP]),
        (Scope::Zones, Plant::OffsetsAreCompared, &[TWICE, ENTRIES]),
        (Scope::Again, Plant::ClocksOfNodesDecide, &[EARLY]),
        (Scope::Again, Plant::TimeGoesBack, &[TWICE, ENTRIES]),
        (Scope::Again, Plant::TimeRunsAhead, &[UNTOLD]),
        (Scope::Again, Plant::OffIsNotNoted, &[UNWANTED]),
        (Scope::Restored, Plant::SightsAreNotTold, &[TWICE, TAKEN]),
        (Scope::Restored, Plant::GapsAreGranted, &[TWICE]),
    ] {
        let game = Game { scope, plant };
        is_found(&format!("{plant:?}"), &game, crate::STATES_FOR_A_FAULT, promises);
    }
}
