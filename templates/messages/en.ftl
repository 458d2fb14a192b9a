# English. One message, one sentence; the Chinese file has the same ids with the same variables.

# Around the page
nav-label = Main
nav-jobs = Jobs
nav-nodes = Nodes
nav-dispatch = Dispatch
nav-rotations = Rotations
nav-alerts = Alerts
nav-audit = Audit
skip-to-content = Skip to the content
other-language = 中文
other-language-label = 中文：改用中文
theme-system = Theme: as the system. Press to change.
theme-dark = Theme: dark. Press to change.
theme-light = Theme: light. Press to change.
account-of = Account of { $user }
sign-out = Sign out
role-viewer = viewer: may look
role-operator = operator: may switch
role-admin = admin: may do everything
role-collector = collector
mark-live = live
mark-connected = connected
mark-page-title = From this page to its node
mark-store = store
mark-store-away = store away
mark-store-title = From that node to its store
mark-reconnecting = reconnecting
mark-old = data is # old
mark-still = as of { $time } ({ $zone })
mark-signed-out = signed out
list-separator = { ", " }
description = Soloist runs a script exactly once in a cluster, for as long as somebody wants it.
keys-title = Keys
keys-search = search
keys-next = next job
keys-before = job before
keys-switch = press the switch of the job in focus
keys-these = these keys
keys-close = Close
sentence-gap = { " " }
sentence-end = .
clause-gap = { ", " }

# The truth bar
truth-label = What is wrong
truth-store = Store out of reach for { $ago }: what you see is old.
truth-store-away = Store out of reach for { $ago }.
truth-lost = { $node } lost at { $at }.
truth-lost-taken = { $node } lost at { $at }; { $by } took { $n ->
    [one] 1 job
   *[other] { $n } jobs
} in { $took }.
truth-drift = { $node } has another configuration: { $jobs }.
truth-drift-more = { $node } has another configuration: { $jobs } and { $n } more.
drift-of = { $job } ({ $keys })
drift-missing = missing there
drift-zone-table = other times by its zone table
truth-page = No word from this page’s node for { $ago }: what you see is old. Trying again.
truth-page-alone = No word from this page’s node for { $ago }: what you see is old. No node with another address is known, so the page waits for this one. Trying again.
truth-open-at = Open it at { $node } →
truth-now = now
truth-signed-out = You are signed out: what you see is old.

# Times
time-yesterday = yesterday { $time }
time-milliseconds = { $a } ms
time-seconds = { $a } s
time-minutes = { $a } min
time-hours = { $a } h { $b } min
time-days = { $a } d { $b } h

# States
state-off = Off
state-waiting = Waiting
state-resting = Resting
state-scheduled = Scheduled
state-late = Late
state-starting = Starting
state-running = Running
state-silent = Silent
state-stuck = Stuck
state-backing-off = Backing off
state-crash-looping = Crash-looping
state-given-up = Given up
state-stopping = Stopping
state-failing-over = Failing over
state-held = Held
state-unknown = Unknown

# The line of counters
count-label = How many jobs are in which state
count-off = { $n } off
count-waiting = { $n } waiting
count-resting = { $n } resting
count-scheduled = { $n } scheduled
count-late = { $n } late
count-starting = { $n } starting
count-running = { $n } running
count-backing-off = { $n } backing off
count-crash-looping = { $n } crash-looping
count-given-up = { $n } given up
count-stopping = { $n } stopping
count-failing-over = { $n } failing over
count-held = { $n } held
count-unknown = { $n } unknown
count-nodes = { $n } { $count ->
    [one] node
   *[other] nodes
}

# A row's sentence
node-since = { $node } since { $since }
on-node = on { $node }
in-program = in { $node }
runs-in-your-program = Runs in your own program, which asks for the lease; Soloist starts nothing for it.
token = token { $token }
lease-left = lease: { $left } of { $ttl } s left
lease-label = Time left of the lease
process = pid { $pid }
counts-in = counts as running in { $left }
being-started = being started
program-begins = granted, no report of its run yet
waits-for-turn = waits for its turn in { $rotation }
turn-unread = reading whose turn it is
turn-undefined = the rotation is not defined: soloist rotation set { $rotation }, or PUT /api/v1/rotations/{ $rotation }
turn-no-type = it has no type { $type }: add it with soloist rotation set { $rotation }, or PUT /api/v1/rotations/{ $rotation }
turn-too-short = its turns last { $lease }, too short to kill a script in time: 1s or more, with soloist rotation set { $rotation }, or PUT /api/v1/rotations/{ $rotation }
turn-held = { $type } has it since { $since }
turn-own = it has just got the turn
turn-gap = the gap ends in { $left }
turn-quota = its quota is used up for { $left }
turn-recovery = the store restarted or was emptied and may have forgotten a turn: no turn starts for { $left }
turn-not-before = the last holder asked for a pause: no turn starts for { $left }
turn-first = { $type } is next
turn-absent = { $type } is next, but no worker is asking for it
turn-next = it is next
output-ago = last output { $ago } ago
output-none = no output yet
stopping-held = { $user } holds it
stopping-unwanted = nobody wants it any more
stopping-moved = being moved
stopping-handed-over = being handed over
stopping-replaced = a newer tick replaces it
kill-in = KILL in { $left }
program-has-until = told to stop, has { $left }
silent-for = { $node } silent for { $ago }
next-program-in = the next program is granted in { $left }
may-start-in = { $node } may start in { $left }
nobody-to-take-over = no other node may run it
another-node = another node
crashed-on = { $n ->
    [one] { $exit } on { $node }
   *[other] { $exit } on { $node }, { $n } crashes in a row
}
failed-in = { $n ->
    [one] { $exit } in { $node }
   *[other] { $exit } in { $node }, { $n } crashes in a row
}
next-try-in = next try in { $left }
next-try-now = next try now
tick-tried = attempt { $n }: { $why }
switch-off-and-on = switch it off and on to try again
next-run-in = next run in { $left }
next-run-now = next run now
no-tick-comes = no tick comes any more
tick-is-late = late by { $ago }
clock-set-back = store’s clock set back: nothing starts by itself for { $left }
store-forgot = store emptied or restarted, known in { $left }
no-node-alive = no node is alive
no-node-offers = no living node may run it
no-node-fit = cannot be started on { $nodes }
all-draining = every node that may run it is being drained
only-node-suspect = { $node } may be dead, and no other node may run it
moving-to = moving to { $node }
moving-away = moving to another node
moving-to-a-program = moving to another program
no-program-asked = no program has asked for it
starts-soon = a node is about to take it
store-may-have-restarted = no node has taken it yet
held-by = { $user } since { $since }: “{ $reason }”
switched-off = { $user } switched it off ({ $at })
switched-off-because = { $user } switched it off ({ $at }): “{ $reason }”
finished = the last run ended well ({ $at })
nobody-wants-it = nobody wants it
never-reported = the store has not been reached since this node started
stopped-here = the script was stopped here at { $at }
ended-here = the script ended here at { $at }
store-untold = the store does not know yet
no-report-for = no fresh report for { $ago }
last-known-on = last known on { $node }
last-known = last known: { $state }
exit-code = exit { $n }
exit-signal = killed by signal { $n }
exit-died = its process died
exit-none = could not be started
exit-timed-out = timed out
exit-runtime = timed out after { $limit }: max_runtime
exit-silence = timed out after { $limit } without output: max_silence
over-runtime = stopped after { $limit }: max_runtime
over-silence = stopped after { $limit } without output: max_silence
stops-when-quiet = stopped in { $left } unless it prints something
stands-still = no output and no progress for { $ago }: read its output; if it hangs, move it, or hold and resume it
program-stands-still = no output and no progress for { $ago }: check the program; if it hangs, hold and resume the job
ends-at-latest = ends at the latest { $at }

# Why
wish-wanted = wanted by { $users }
wish-asked = asked for by { $users }
why-running = Running on { $node } since { $since }; { $wish }.
why-stops-when-quiet = It has been silent for more than half of its max_silence: it is stopped in { $left } unless it prints something.
why-stands-still = It is stuck: no output and no progress for { $ago }. Read its output. If it hangs, move it to another node, or hold it and resume it; either ends this run.
why-program-stands-still = It is stuck: no output and no progress for { $ago }. Check the program. If it hangs, hold the job and resume it: the program is told to stop, and the next one gets the lease.
why-starting = Starting on { $node } since { $since }; { $wish }. It counts as running after { $uptime }.
why-stopping = Stopping on { $node }: { $cause }. It is off as soon as its last process is gone.
why-stopping-kill = Stopping on { $node }: { $cause }. TERM was sent; whatever is left is killed in { $left }.
cause-held = { $user } holds it
cause-unwanted = nobody wants it any more
cause-moved = it is being moved to another node
cause-handed-over = its node hands it over
cause-replaced = a newer tick replaces it ({ $tick })
why-failing-over = { $node } has been silent for { $ago }. Its lease expires in { $left }; then { $next } may start it. The script on { $node } is killed before that.
why-failing-over-nobody = { $node } has been silent for { $ago }. Its lease expires in { $left }, and no other node may run it: start one, or bring { $node } back.
why-backing-off = { $n ->
    [one] Crashed on { $node } at { $at } ({ $exit }). Next try in { $left }; wanted by { $users }. Switching it off and on tries at once.
   *[other] Crashed { $n } times in a row, last on { $node } at { $at } ({ $exit }). Next try in { $left }; wanted by { $users }. Switching it off and on tries at once.
}
why-retry-due = { $n ->
    [one] Crashed on { $node } at { $at } ({ $exit }). The next try is due and starts as soon as a node takes it; wanted by { $users }.
   *[other] Crashed { $n } times in a row, last on { $node } at { $at } ({ $exit }). The next try is due and starts as soon as a node takes it; wanted by { $users }.
}
why-tick-tried = Attempt { $n } of { $run } ended: { $why }. The next attempt starts in { $left }; { $wish }. Off ends this tick: it is failed, and not tried again by itself.
why-hand-tried = Attempt { $n } of { $run } ended: { $why }. The next attempt starts in { $left }; { $wish }.
why-given-up = { $n ->
    [one] Given up after a crash on { $node } at { $at } ({ $exit }), though wanted by { $users }. Read the output, then switch it off and on, or run: soloist resume { $job }
   *[other] Given up after { $n } crashes in a row, last on { $node } at { $at } ({ $exit }), though wanted by { $users }. Read the output, then switch it off and on, or run: soloist resume { $job }
}
why-resting = Resting between two runs: the last one ended well, the next one starts in { $left }; wanted by { $users }.
why-resting-due = Resting between two runs: the last one ended well, the next one is about to start; wanted by { $users }.
why-scheduled = The next tick starts at { $when }, in { $left }; wanted by { $users }.
why-late = Its tick should have started at { $when }, { $ago } ago, and no node has taken it yet; wanted by { $users }. Check that a node that may run it is alive.
why-late-since = Its tick should have started at { $when }, { $ago } ago.
why-no-tick = Its schedule is over: no tick comes any more, and nothing runs by itself; wanted by { $users }.
why-waiting-clock-set = Wanted by { $users }. The store’s clock was set back: the ticks of the next { $left } are decided already, so none starts by itself until then. If the clock is right now, an admin ends this with DELETE /api/v1/jobs/{ $job }/taken.
why-waiting-doubted = Wanted by { $users }. The store was restarted, replaced or emptied, or its clock jumped: nothing starts for { $left }, because a run that it forgot may still be alive. Then it starts automatically.
why-waiting-no-node = Wanted by { $users }, but no node is alive. Start one with: soloist serve
why-waiting-unfit = Wanted by { $users }, but it cannot be started: { $whys }. It starts automatically once that is repaired.
why-unfit = It cannot be started now: { $whys }.
why-waiting-not-offered = Wanted by { $users }, but no living node may run { $job }: its nodes are { $nodes }. Start one of them, or change the list in soloist.toml.
why-waiting-draining = Wanted by { $users }, but every node that may run it is being drained. End the drain of one, or start another.
why-waiting-suspect = Wanted by { $users }, but only { $node } may run it, and that node has not reported since its run was lost { $ago } ago: it may be dead. Start it, or another node that may run the job.
why-waiting-moving-to = Wanted by { $users } and being moved to { $node }, which should take it now. In { $left } any node may.
why-waiting-moving = Wanted by { $users } and being moved to another node. In { $left } any node may take it, also the one it came from.
why-waiting-soon = Wanted by { $users }; a node is about to take it.
why-asked-soon = Asked for by { $users }; a node is about to take it.
why-waiting-long = Wanted by { $users }, and nothing forbids it, but no node has taken it yet. A store that was restarted or emptied grants nothing for one lease ({ $lease }), so that nobody runs it twice.
why-waiting-turn = Wanted by { $users }. On { $node } it waits for its turn in rotation { $rotation }:
why-program-running = Running in { $node } since { $since }; { $wish }.
why-program-starting = Starting in { $node } since { $since }; { $wish }. It counts as running after { $uptime }.
why-program-stopping = { $cause }; { $node } is told to stop when it renews its lease. It is off as soon as that program releases the lease, or the lease expires.
why-program-stopping-until = { $cause }; { $node } was told to stop and has { $left }. It is off as soon as that program releases the lease, or the lease expires.
program-off-by = Switched off by { $user }
program-off = Nobody wants it any more
program-held = Held by { $user }
program-moved = It is being moved to another program
program-over = Its time is over
program-replaced = A newer tick replaces it ({ $tick })
why-program-failing-over = { $node } has been silent for { $ago }; its lease ends in { $left }, then the next program is granted.
why-program-backing-off = { $n ->
    [one] Failed in { $node } at { $at } ({ $exit }). The next program is granted in { $left }; wanted by { $users }. Switching it off and on grants at once.
   *[other] Failed { $n } times in a row, last in { $node } at { $at } ({ $exit }). The next program is granted in { $left }; wanted by { $users }. Switching it off and on grants at once.
}
why-program-retry-due = { $n ->
    [one] Failed in { $node } at { $at } ({ $exit }). The next try is due, and no program has asked for it; wanted by { $users }.
   *[other] Failed { $n } times in a row, last in { $node } at { $at } ({ $exit }). The next try is due, and no program has asked for it; wanted by { $users }.
}
why-program-given-up = { $n ->
    [one] Given up after a failure in { $node } at { $at } ({ $exit }), though wanted by { $users }. Read the output, then switch it off and on, or run: soloist resume { $job }
   *[other] Given up after { $n } failures in a row, last in { $node } at { $at } ({ $exit }), though wanted by { $users }. Read the output, then switch it off and on, or run: soloist resume { $job }
}
why-program-resting = Resting between two runs: the last one ended well, the next program is granted in { $left }; wanted by { $users }.
why-program-resting-due = Resting between two runs: the last one ended well, the next program that asks is granted; wanted by { $users }.
why-program-scheduled = The next tick starts at { $when }, in { $left }, and is granted to the program that asks then; wanted by { $users }.
why-program-late = Its tick should have started at { $when }, { $ago } ago, and no program has asked for it yet; wanted by { $users }. Check that the program is running.
why-program-waiting = Waiting: wanted by { $users }, and no program has asked for it.
why-program-waiting-doubted = Wanted by { $users }. The store was restarted, replaced or emptied, or its clock jumped: no program gets the lease for { $left }, because a run that it forgot may still be alive. Then the next that asks gets it.
why-program-waiting-moving-to = Wanted by { $users } and being moved to { $node }, which has not asked for it yet. In { $left } any program may have it.
why-program-waiting-moving = Wanted by { $users } and being moved to another program, and none has asked for it yet. In { $left } any may have it, also the one it came from.
why-program-unknown-on = Unknown: the store has not answered for { $ago }. It was in { $node } then, and may or may not be running. Check this node’s connection to the store.
why-program-unknown-free = Unknown: the store has not answered for { $ago }. No program had it then. Check this node’s connection to the store.
why-held = Held by { $user } since { $since }: “{ $reason }”. It does not start until an operator resumes it, on its page or with: soloist resume { $job }
why-off = Off: nobody wants it.
why-unknown-on = Unknown: the store has not answered for { $ago }. It was on { $node } then, and may or may not be running. Check this node’s connection to the store.
why-unknown-free = Unknown: the store has not answered for { $ago }. It was not running then. Check this node’s connection to the store.
why-unknown-stopped-here = Unknown: the script was stopped here at { $at }, because its lease could not be renewed, and no process of it is left. The store does not know yet; as soon as the lease expires there, another node may run it. Check this node’s connection to the store.
why-unknown-ended-here = Unknown: the script ended here at { $at }, and no process of it is left. The store does not know yet; as soon as the lease expires there, another node may run it. Check this node’s connection to the store.
why-unknown-doubted = Unknown: the store was restarted, replaced or emptied, or its clock jumped, and for { $left } a run that it forgot may still be alive. If it was emptied, everybody who wants the job must switch it on again.
why-never-reported = Unknown: this node has not reached the store since it started. Check its connection to the store.

# The switch and people
switch-label = I want it on
switch-on-label = { $title }: I want it on. Now on; press to withdraw.
switch-off-label = { $title }: I want it on. Now off; press to join.
switch-not-yours = Only operators of this job may switch it.
nobody = nobody
switch-of = { $title }: I want it on
because-open = Off, with a reason
because-of = { $title }: off, with a reason
because-label = Why do you switch { $title } off?
because-fine = Others read it here while the job is off, and later in the audit.
user-since = { $user } since { $since }
last-since = { $user } since { $since }: you are the last
progress-label = Progress of { $title }
progress-of = { $done } / { $total }

# The dialog before the last one leaves
last-title = You are the last
last-text = Nobody else wants “{ $title }”: this stops it.
last-yes = Stop it
last-no = Leave it on

# Dashboard
no-jobs-title = No job yet
no-jobs-text = A job is a script that runs exactly once in the whole cluster, for as long as somebody wants it. Define the first one in soloist.toml on every node that may run it, then restart the node:
no-jobs-after = It appears here. The page can switch, hold and move it; what it runs is decided in the file alone.

# Which jobs the dashboard shows
count-trouble = { $n } { $count ->
    [one] needs you
   *[other] need you
}
row-alerts = Alert: { $names }
needs-you = Needs you
sift-search = Search jobs
sift-go = Show
sift-all = Show all jobs
sift-none = No job matches now.
sift-group = Group
sift-any-group = all
sift-sort = Order
sift-sort-need = by need
sift-sort-name = by name
sift-sort-state = by state

# Several jobs at once
bulk-tick = Select { $title }
bulk-label = With those that are ticked:
bulk-on = Switch on
bulk-off = Switch off
bulk-hold = Hold
bulk-title-on = Switch on { $n ->
    [one] 1 job
   *[other] { $n } jobs
}?
bulk-title-off = Switch off { $n ->
    [one] 1 job
   *[other] { $n } jobs
}?
bulk-title-hold = Hold { $n ->
    [one] 1 job
   *[other] { $n } jobs
}?
bulk-nothing = No job is ticked. Go back and tick the jobs that you mean.
bulk-reason = Reason, for the audit
bulk-joins = You want it on from now on.
bulk-already-on = You want it on already: nothing changes.
bulk-already-off = You do not want it on: nothing changes.
bulk-stops = Nobody else wants it: it stops.
bulk-goes-on = It continues for { $n ->
    [one] 1 other person
   *[other] { $n } other people
}.
bulk-held = It is held, and stays held.
bulk-forbids = It stops, whoever wants it, until it is resumed.
bulk-result = Result
bulk-done = Done.
bulk-back = Back to the jobs
not-read = Could not be read: the store is out of reach.
store-trouble = Trouble with the store: { $detail }. What is shown below may be old.

# Job page
why-title = Why
output-title = Output
output-empty = No output yet.
output-follow = following
output-paused = paused
output-from-here = from here on { $node }
output-after = { $why }; from here on { $node }
after-lost = { $node } was lost
after-died = the program { $node } died
after-guard-died = the guard on { $node } died
after-fenced = { $node } lost its lease
after-timed-out = it timed out on { $node }
after-exited = it ended well after { $lasted } on { $node }
after-crashed = { $exit } after { $lasted } on { $node }
after-stopped = it was stopped on { $node }
after-off = { $user } switched it off
after-held = { $user } held it
after-drained = { $user } drained { $node }
after-moved = { $user } moved it
after-moved-to = { $user } moved it to { $node }
output-skipped = # lines skipped
output-next-run = another run
output-held = # new
output-wrap = wrap
output-save = Download
output-grep = Text
output-find = Search
output-newest = newest lines
output-older = Older lines
output-newer = Newer lines
output-run = only run { $run }
output-none-there = There are no such lines, or they are no longer kept.
output-none-such = No kept line has that.
output-none-yet = None of the searched lines has that; older lines may.
runs-title = Runs
runs-none = It has not run yet.
runs-began = began
runs-node = node
runs-program = program
runs-lasted = lasted
runs-ended = ended
end-running = running
end-exited = exit 0
end-crashed = crashed: { $exit }
end-stopped = stopped
end-lost = node lost
end-died = the program died
end-guard-died = its guard died
end-lost-program = program lost: its lease ended
end-fenced = fenced: lease lost
end-timed-out = timed out
runs-alike = { $n } runs alike, { $from } to { $to }
end-killed = { $n } more killed
act-title = Operate
act-open = Acts
act-hold = Hold
act-hold-open = Hold…
act-hold-title = Hold { $title }
act-hold-text = Forbid it, whatever the switches say. Others read your reason.
act-reason = Reason
act-reason-may = Reason (optional)
act-reason-example = stocktaking until noon
act-resume = Resume
act-resume-text = Allow it again: it starts at once if somebody wants it.
act-move = Move
act-move-open = Move…
act-move-title = Move { $title }
act-move-text = Hand it over now: it stops here, is proved gone, and starts there.
act-move-unwanted = Nobody wants it: there is nothing to move.
act-move-given-up = It has given up: there is nothing to move before it is switched on again.
act-move-never-ran = It has not run yet: there is nothing to move.
act-move-nowhere = It cannot be moved: no other living node may run it.
act-move-to = To
act-move-any = any other node
act-move-text-program = Hand it over now: its program is told to stop and releases the lease, and another program gets it.
act-move-any-program = any other program
act-drill = Drill
act-drill-open = Drill…
act-drill-title = Drill: crash the node of { $title }
act-drill-text = A drill: the node process { $node } is killed with kill -9, and the take-over is measured. All its jobs move; it comes back only if a service manager (systemd, Docker restart policy) starts it again.
act-drill-force = also when no node can take over
drill-title = Kill the node process { $node }?
drill-yes = Kill it
drilled = Drill of { $at } by { $user }: { $node } had started it again { $ms } ms after the order.

# Nodes
nodes-title = Nodes
nodes-none = No node has reported yet.
node-heard = heartbeat
node-version = version
node-containment = containment
node-holds = holds
node-alive = alive
node-silent = silent
node-draining = draining
node-here = this page comes from here
heard-ago = { $ago } ago
holds-nothing = no script; leases of programs are listed below
holds-unknown = not known
leases-title = All leases
leases-fine = One holder for each name, until it releases the lease or falls silent. A program acquires a lease over HTTP; a command with soloist run.
leases-more = And { $count } more: soloist lease list shows all.
leases-none = No lease is held now. A job is held while it runs; a program of your own can hold a lease, too: see docs/embedding.md.
lease-name = name
lease-program-watched = program, watched
lease-kind = kind
lease-holder = holder
lease-since = since
lease-time-left = time left
lease-job = job
lease-command = command
lease-program = program
drain-on = Drain
drain-off = End the drain
drain-title = Drain { $node }?
drain-text = Its jobs are handed over to other nodes now, and it takes no more until the drain ends.
drain-yes = Drain it
forget = Forget
forget-title = Forget { $node }?
forget-text = It leaves the list, and its drain mark is dropped. If it comes back, it is a new node. Its runs stay in the history.
forget-yes = Forget it
cancel = Cancel

# Dispatch
dispatch-title = Dispatch
count-tasks-label = How many tasks of all sources are in which state
count-sources = { $n } { $count ->
    [one] source
   *[other] sources
}
count-ready = { $n } ready
count-flight = { $n } in flight
count-due = { $n } due
count-dead = { $n } dead
count-done = { $n } done
sources-title = Sources
sources-more = { $n ->
    [one] One more source is not shown here
   *[other] { $n } more sources are not shown here
}.
show-all = Show all
show-fewer = Show fewer
no-sources-title = No source yet
no-sources-text = A source is where work comes from: pages to fetch, orders to book, files to convert. Its rules say how it may be treated, and every task of it goes to exactly one collector at a time. Make a token for yourself, define the first source, put two tasks, and let a collector work on them:
no-sources-after = They appear here at once: what is ready, who holds what, and why a source waits.
copy = Copy
copied = Copied

# Why a source is or is not served
source-open = Open
source-empty = Empty
source-pacing = Pacing
source-full = At its cap
source-paused = Paused
source-blocked = Blocked
source-why-open = { $readyCount ->
    [one] One is ready: the next collector that asks is served.
   *[other] { $ready } are ready: the next collector that asks is served.
}
source-why-empty = It has no work.
source-why-due = Nothing is ready; { $dueCount ->
    [one] the next is due in { $left }.
   *[other] the next of { $due } is due in { $left }.
}
source-why-due-later = Nothing is ready; { $dueCount ->
    [one] one is due later.
   *[other] { $due } are due later.
}
source-why-in-hands = Nothing is ready; { $heldCount ->
    [one] one is claimed.
   *[other] { $held } are claimed.
}
source-why-gap = One start every { $gap }: the next in { $left }.
source-why-gap-short = One start every { $gap }: the next follows within that.
source-why-window = { $countCount ->
    [one] The one start in { $span } is used up: the next in { $left }.
   *[other] { $count } starts in { $span } are used up: the next in { $left }.
}
source-why-pacing = Its gap or its window is not over: the next start in { $left }.
source-why-full = { $heldCount ->
    [one] One is claimed, as many as allowed. Its result makes room.
   *[other] { $held } are claimed, as many as allowed. A result makes room.
}
source-why-full-until = { $heldCount ->
    [one] One is claimed, as many as allowed. Its result makes room, or the end of its lease in { $left }.
   *[other] { $held } are claimed, as many as allowed. A result makes room, or the end of a lease in { $left }.
}
source-why-paused = No collector is served until somebody resumes it.
source-why-blocked = No collector is served for { $left }.
rule-gap = one start per { $time }
rule-window = { $n ->
    [one] 1 start in { $time }
   *[other] { $n } starts in { $time }
}
rule-cap = { $n } at once
rule-lease = lease { $time }
rule-attempts = { $n ->
    [0] tries without end
    [one] 1 attempt
   *[other] { $n } attempts
}
rule-backoff = backoff { $first } to { $most }
rule-paused = paused

# Figures of a source
figure-ready = ready
figure-flight = in flight
figure-of-cap = of { $cap }
figure-due = due
figure-dead = dead
figure-done = done
pace-now = { $rate } /s
pace-done = done
pace-wait = measuring…
pace-label = { $source }: { $rate } done a second now. In the last { $span } at most { $most } done and { $starts } started a second.
pace-wait-label = { $source }: the rate is known after two readings, in a few seconds.

# Acts on a source
source-pause = Pause
source-pause-label = Pause { $source }
source-pause-title = Pause { $source }?
source-pause-text = Collectors get no more of its tasks until somebody resumes it. They may finish the tasks that they have.
source-pause-yes = Pause it
source-resume = Resume
source-resume-label = Resume { $source }
source-block = Block
source-block-label = Block { $source } for a while
source-block-for = for
source-block-title = Block { $source } for { $time }?
source-block-text = Collectors get none of its tasks for { $time }; then it is served again automatically. They may finish the tasks that they have.
source-block-yes = Block it
source-unblock = Lift the block
source-unblock-label = Lift the block of { $source }

# Collectors
collectors-title = Collectors
collectors-none = No collector has asked for work within a day.
collectors-more = { $n ->
    [one] One more collector was seen within a day.
   *[other] { $n } more collectors were seen within a day.
}
collector-name = collector
collector-seen = last asked
collector-holds = holds
collector-end = first lease ends
collector-ends-in = in { $left }
collector-nothing = nothing
collector-more = and { $n } more

# Rotations
rotations-title = Rotations
count-turns-label = Number of rotations, of turns at work and of waiting workers
count-rotations = { $n } { $count ->
    [one] rotation
   *[other] rotations
}
count-taken = { $n } at work
count-waiters = { $n } waiting
rotations-more = { $n ->
    [one] One more rotation is not shown here
   *[other] { $n } more rotations are not shown here
}: GET /api/v1/rotations lists all.
no-rotations-title = No rotation yet
no-rotations-text = A rotation is types of work that take turns at something that bears only one at a time: a supplier’s API, a device, a night window. Turns never overlap, and never start sooner than the gap allows. Define the first one, then run commands in their turns:
no-rotations-http = Or over HTTP:
no-rotations-after = It appears here at once: whose turn it is, who waits and why, and how the last turns went.

# Whose turn it is
rotation-taken = Taken
rotation-pacing = Pacing
rotation-open = Open
rotation-absent = Held up
rotation-idle = Idle
rotation-why-taken = { $worker } has been running { $kind } for { $ago }; the lease ends in { $left } unless it is extended.
rotation-why-open = It is the turn of { $kind }: the worker that has waited longest is getting it.
rotation-why-absent = { $kind } is next, but no worker is asking for it; no type is skipped here.
rotation-why-soon = { $kind } is next: it may start within a second.
rotation-why-gap = { $kind } is next: it may start in { $left }, when the gap is over.
rotation-why-quota = { $kind } is next: it may start in { $left }, when its quota has room again.
rotation-why-recovery = The store restarted or was emptied and may have forgotten a turn. { $kind } may start in { $left }, when any such turn has expired.
rotation-why-not-before = { $kind } is next: it may start in { $left }, because the last holder asked for a pause.
rotation-why-idle = No worker is waiting: the next one that asks gets the turn.
rotation-why-idle-until = No worker is waiting; a turn may start in { $left }.
rotation-undefined = This rotation is not defined yet: soloist rotation set { $rotation }
rule-min-gap = { $time } between starts
rule-skip-absent = absent types are skipped
rule-skip-never = absent types are waited for
ring-label = The types of { $rotation }, in the order of their turns
ring-now = has the turn
ring-next = next
ring-waiting = { $n ->
    [one] one waits
   *[other] { $n } wait
}
ring-more = and { $n } more
wait-turn = it is its turn
wait-held = another has the turn
wait-behind = { $kind } is next
wait-absent = { $kind } is next, but no worker is asking for it
wait-gap = the gap: { $left }
wait-quota = its quota: { $left }
wait-recovery = the store may have forgotten a turn: { $left }
wait-not-before = told to wait: { $left }

# Figures of a rotation
type-name = type
type-waiting = waiting
type-why = for what
waiters-title = Who waits
waiters-none = No worker.
waiter-worker = worker
waiter-node = at node
waiter-since = since
waiters-more = and { $n } more
turns-title = The last turns
turns-none = No turn yet.
turns-span = from { $from } to { $to }
turns-picture = { $n ->
    [one] The last turn
   *[other] The last { $n } turns
} of { $rotation }, a lane for each type. The table says the same.
turns-table = As a table
turn-began = began
turn-after = after the one before
turn-lasted = lasted
turn-ended = ended
turn-had = under way
turn-done = done
turn-empty = empty
turn-failed = failed
turn-lost = lost
turn-bar = { $kind }: { $ended }, { $lasted }, by { $worker }
turn-silence = no turn for { $time }
turn-least-gap = the minimum gap after a start

# A task
remove-source = Remove a source
remove-rotation = Remove a rotation
remove-name = Name
remove-enter = Remove
remove-title = Remove { $name }?
remove-source-text = It is removed with its rules and all its tasks: { $tasks } that are not done, { $flight } of them claimed. This cannot be undone.
remove-rotation-held = { $worker } has the turn, and { $waiting } wait. The rules and the last turns are removed; the work under the turn continues until it asks again.
remove-rotation-free = No worker has the turn, and { $waiting } wait. The rules and the last turns are removed.
remove-yes = Remove it
find-title = Find a task
find-source = Source
find-key = Key
find-enter = Find
find-none = There is no task with this key in { $source }: it was never put, or it was done so long ago that it is forgotten.
task-title = Task
task-state-ready = Ready
task-state-due = Due
task-state-leased = In flight
task-state-done = Done
task-state-dead = Dead
task-why-ready = Ready since { $at }: the next collector that { $source } may serve gets it.
task-why-due = Ready in { $left }, at { $at }.
task-why-leased = { $collector } holds it; the lease ends in { $left } unless it is extended.
task-why-done = Done at { $at }.
task-why-dead = Given up at { $at }. It stays here until somebody revives it.
task-source = source
task-id = id
task-attempt = attempts
task-of-attempts = { $n } of { $most }
task-priority = priority
task-token = token
task-created = put
task-every = again every
task-error = last error
task-payload = Payload
task-payload-cut = The first { $shown } of { $all } characters: GET /api/v1/tasks/{ $id } gives all.
task-history = History
task-history-none = Nothing has gone wrong with it.
past-when = when
past-event = what
past-attempt = attempt
past-collector = collector
past-error = error
past-retried = another try was asked for
past-expired = its lease ran out
past-died = given up
past-revived = revived
revive = Revive
revive-label = Revive { $key }
revive-text = Makes it ready again; its attempts are counted from zero.

# Dead letters
dead-title = Dead letters
dead-title-of = Dead letters of { $source }
dead-none = No task is dead.
dead-none-of = No task of { $source } is dead.
dead-all = all sources
dead-back = Back to dispatch
dead-key = key
dead-source = source
dead-error = error
dead-attempts = attempts
dead-when = given up
dead-no-error = no error was reported
dead-older = older
dead-newest = newest
revive-all = Revive all of { $source }
revive-all-title = Revive all dead tasks of { $source }?
revive-all-text = All { $n } become ready again, their attempts counted from zero. At most { $most } are revived in one step.
revive-all-yes = Revive them
revived-some = { $n ->
    [one] One task was revived.
   *[other] { $n } tasks were revived.
}
revived-more = There are more: press again.

# Audit
audit-title = Audit
audit-none = No acts yet.
audit-when = when
audit-who = who
audit-from = from
audit-from-terminal = terminal
audit-act = act
audit-target = target
audit-older = older
audit-newer = newer
audit-newest = newest
audit-none-such = Nothing of that kind was found here.
audit-kind = kind
audit-kind-any = all
audit-kind-person = people
audit-kind-program = programs
audit-kind-refusal = refusals
audit-act-any = everything
audit-find = filter
audit-all = show everything
audit-save = Save as
audit-save-lines = JSON lines with a chain of hashes
audit-times = { $n } times
audit-times-last = , last at
did-participation-on = switched on
did-participation-off = switched off
did-job-hold = held the job
did-job-resume = resumed the job
did-job-move = moved the job
did-job-drill = crashed the holder for a drill
did-job-run = asked for a run
did-job-run-taken-back = withdrew a run
did-job-taken-reset = set the newest tick to now
did-node-drain = drained the node
did-node-undrain = allowed the node to take jobs again
did-node-forget = forgot the node
did-alert-mute = muted the alert
did-alert-unmute = unmuted the alert
did-channel-test = tested the channel
did-source-put = defined the source
did-source-pause = paused the source
did-source-resume = resumed the source
did-source-block = blocked the source
did-source-unblock = lifted the block of the source
did-source-revive = revived dead tasks of the source
did-task-revive = revived the task
did-source-remove = removed the source
did-task-remove = removed the task
did-rotation-remove = removed the rotation
did-rotation-put = defined the rotation
did-login = signed in
did-login-failed = failed to sign in
did-login-throttled = could not sign in: too many attempts
did-refused-right = was not allowed
did-refused-forgery = was refused: the request did not come from our own page
did-refused-token = was refused: a token that is not valid
did-refused-more = more was refused, too much to note one by one
did-logout = signed out
did-user-add = added the account
did-user-role = changed the role of the account
did-user-passwd = changed the password of the account
did-user-remove = removed the account
did-token-new = made an API token
did-token-revoke = revoked an API token
did-user-link = linked the account with single sign-on
did-link-new = made a sign-in link
did-user-passwd-own = changed their own password
did-user-passwd-failed = entered a wrong old password
did-user-reset = took the password away from the account
did-user-display = changed the display name of the account
did-user-invite = made a link to set the password of the account
did-session-end = ended a session of the account

# Signing in
login-title = Sign in
login-name = Name
login-password = Password
login-again = Password again
login-differs = The two passwords differ.
login-wrong = This name and password do not fit together.
login-enter = Sign in
login-nobody = No account exists yet. The terminal where soloist serve runs printed a link that makes the first one; this command prints another: soloist link
login-form-old = The form is out of date: try once more.
login-collector = { $user } is a collector: it uses a token and has no pages.
login-no-admin = { $user } is no admin any more: ask another admin.
login-differ = The two passwords differ: enter the same one twice.
login-link-used = This link is no longer valid: it works once, and for a limited time. Ask an admin for a new one; for an admin this command prints one: soloist link
login-link-late = This link makes the first admin, and there is one already: sign in with your own account, or ask that admin for one. A link for an admin is printed by: soloist link
login-lost = No account? An admin adds one with: soloist user add NAME --role operator
sso-off = Single sign-on is not set up here. Sign in with your name and password.
sso-away = The provider of single sign-on cannot be reached. Try again in a moment, or sign in with a password.
sso-old = This sign-in is no longer valid: it was begun in another browser or window, or more than 10 minutes ago. Begin again.
sso-said = The provider of single sign-on refused: { $text }
sso-unproved = The answer of the provider of single sign-on could not be verified. Begin again; if it happens again, tell an admin: the log of this node says why.
sso-no-role = { $user } is in no group that may use Soloist. Ask the person who manages the groups of single sign-on.
sso-no-account = There is no account for { $user } yet. Ask an admin to link yours: soloist user link NAME --subject { $subject }
sso-taken = There is an account { $user } already, and it is not linked with you. If it is yours, ask an admin: soloist user link { $user } --subject { $subject }
sso-first = No admin with a password exists yet, and one must come first. This command prints a link: soloist link
first-title = Make the first admin
first-text = This link works once. There is no admin yet; the account that you make here is the first.
first-enter = Make the account and sign in
link-title = Sign in as { $user }
link-text = This link works once.
password-rule = At least { $n } characters.

# Accounts
both-names = { $shown } ({ $user })
invite-title = Set the password of { $user }
invite-text = This link works once, for 48 hours. With the password you sign in.
invite-enter = Set the password and sign in
save = Save
account-title = My account
account-me = Name
display-name = Display name
time-zone = Time zone
time-zone-browser = as the browser
time-zone-rule = All times on these pages use it. As the browser: each browser uses its own; without scripts it is that of the node ({ $zone }).
time-zone-wrong = Unknown time zone. Choose one from the list.
account-zone-set = The time zone is saved.
display-name-rule = How others see you beside your name, in any script. Up to 64 characters.
account-password = Password
account-old = Present password
account-new = New password
account-password-text = You stay signed in here and are signed out everywhere else. API tokens stay valid: they are listed below.
account-password-change = Change the password
account-old-wrong = The present password is not right: enter it once more.
account-password-changed = The password is changed. You are signed out everywhere else.
account-session-ended = That session has ended.
account-token-made = The token is made. Keep it now: it is not shown again.
account-token-revoked = The token is revoked.
account-tokens-revoked = All your tokens are revoked.
sessions-title = Where you are signed in
session-from = Address
session-browser = Browser
session-browser-unknown = unknown
session-created = Since
session-seen = Last seen
session-this = this one
session-end = Sign out there
tokens-title = API tokens
tokens-text = A program that has a token may do what you may do. Revoke tokens that you do not need any more.
tokens-revoke-all = Revoke all
tokens-revoke-all-title = Revoke all your tokens?
tokens-revoke-all-text = Every program that uses one of them is refused from then on.
token-name = What for
token-id = Id
token-created = Made
token-used = Last used
token-unused = never
token-expires = Ends
token-never = never
token-days = { $n ->
    [one] after { $n } day
   *[other] after { $n } days
}
token-lasts = Ends
token-revoke = Revoke
token-make = Make a token
people-title = People
people-role = Role
people-role-of = Role of { $user }
people-role-save = Save the role of { $user }
people-acts = What to do
people-you = you
people-invited = has not set a password yet
people-reset = Reset the password
people-invite-again = New link
people-remove = Remove
people-add = Add a person
people-add-text = You get a link to send to that person, who sets the password with it. Collectors are programs: they get no link, but a token.
people-add-yes = Add
people-name-rule = 1 to 64 of a-z, 0-9, '.', '_', '-', beginning with a letter or digit
people-added = The account { $user } is added.
people-link = Send this link to { $user }. It works once, for 48 hours, and is not shown again:
people-reset-title = Reset the password of { $user }?
people-reset-text = This ends all sessions and API tokens of the account and disables the current password at once. You get a link with which the person sets a new password.
people-reset-yes = Reset
people-remove-title = Remove the account { $user }?
people-remove-yes = Remove
password-short = The password is too short: use at least { $n } characters.
password-long = The password is too long: use at most { $n } bytes.
password-weak = This password is too easy to guess.
weak-about-you = It is mostly your own name, or that of this program.
weak-straight-rows = Rows of keys are guessed early.
weak-keyboard = Short patterns on the keyboard are guessed early.
weak-repeats = Repeats like “aaa” are guessed early.
weak-repeated-words = Repeats like “abcabcabc” are hardly harder to guess than “abc”.
weak-common = It is one of the most used passwords.
weak-similar = It resembles one of the most used passwords.
weak-sequences = Sequences like “abc” or “6543” are guessed early.
weak-years = Recent years are guessed early.
weak-one-word = A single word is guessed early.
weak-dates = Dates are guessed early.
weak-names = Names are guessed early.
better-few-words = Use several words that do not belong together.
better-no-signs = Signs, digits and capitals are not needed.
better-more-words = Add another word or two, the rarer the better.
better-not-capitals = Capitals hardly help.
better-not-reversed = Words written backwards hardly help.
better-not-substituted = Signs in place of letters, like “@” for “a”, hardly help.
better-longer-pattern = Use a longer pattern with more turns.
better-not-repeated = Avoid repeated words and characters.
better-no-sequences = Avoid sequences.
better-no-dates = Avoid dates and years, above all those of your own life.

# Errors
away-title = The store is out of reach
away-text = This node cannot reach its store, where sessions are kept, so it cannot tell who you are, and shows nothing of its jobs to strangers. Nothing can be started or switched until the store is back.
away-again = This page tries again by itself every 3 seconds.
error-no-address = There is nothing at this address.
error-unauthorized = Sign in first.
error-title-bad-request = Wrong request
error-title-unauthorized = Not signed in
error-title-forbidden = Not allowed
error-title-not-found = Nothing here
error-title-method = Wrong method
error-title-conflict = Changed meanwhile
error-title-too-large = Too large
error-title-timeout = Too slow
error-title-misdirected = Unknown host name
error-title-too-many = Too many requests
error-title-unavailable = Not available now
error-title-internal = Internal error
error-bad-request = Something in what was sent is wrong. Go back, correct it, and send it again:
error-forbidden = You may not do this:
error-not-found = What you asked for does not exist, or not any more:
error-method = This address does not accept that: go back, and use the page.
error-conflict = What it is about has changed meanwhile. Look again, then decide:
error-too-large = That was too much at once: send less at a time.
error-body-slow = What your program sends came too slowly: send all of it within { $total } s, and let no more than { $idle } s pass without a byte. On a crowded server both times are shorter: then try again.
error-encoded = What your program sends is encoded as { $coding }, which this server does not decode: send it as it is, without the header Content-Encoding.
error-socket-version = This server speaks version 13 of WebSocket (RFC 6455) and no other: use a newer client.
error-host = This server does not answer to the name { $host }: open { $url }, or have an admin add the name to allowed_hosts in the configuration.
error-too-many = That was too often. Wait a moment, then try again:
error-unavailable = This does not work at the moment. Try again soon:
error-internal = Something went wrong here. Tell the person who runs Soloist:
error-back = To the jobs

# What is refused, and what to do (crates/domain/src/detail.rs)
refused-no-job = There is no job { $job }, or it is not for you. It may have been renamed or removed: the list of jobs has all that you may see.
refused-no-node = There is no node { $node }. A node that was silent for a day is off the list: the page of nodes has those that are known.
refused-no-account = There is no account { $user }. It may have been removed: the page of people has all of them.
refused-no-source = There is no source { $source }: define it under Dispatch, New source.
refused-no-rotation = There is no rotation { $rotation }: define it under Rotations, New rotation.
refused-no-task = There is no such task: it was removed, or it was done so long ago that it is forgotten.
refused-no-token = There is no such token: it was revoked already, or has expired.
refused-no-session = There is no such session: it may have ended by itself.
refused-no-alert = The configuration of this node has no alert { $name }: the page of alerts lists all.
refused-no-channel = The configuration of this node has no channel { $name }: the page of alerts lists all.
refused-no-invitation = No link for { $user } is open.
refused-only-looks = { $user } may only read. An admin can change that on the page of people.
refused-only-admins = Only admins may do this, and { $user } is not one: ask an admin.
refused-collector = { $user } is an account for collectors: it works by the API alone.
refused-not-operator = { $user } is not among the operators of { $job } ({ $operators }): ask one of them, or an admin.
refused-refusals = Only admins see what was refused: ask one.
refused-drain = { $user } is not among the operators of { $jobs }, which { $node } holds or which no other node may run. Ask one of them, or an admin, to drain the node.
refused-forget-alive = { $node } is alive, and only a silent node can be taken off the list: end its process first, or drain it.
refused-hold-reason = Say why the job is held: others will read it.
refused-line-empty = The text is empty: write at least one letter.
refused-line-long = The text is too long: use at most { $most } characters.
refused-line-invisible = The text has the invisible character { $code } (a control, a direction mark, or one without a shape): remove it.
refused-param-needed = { $name } is needed: it has no default.
refused-param-unknown = The job has no parameter { $name }.
refused-param-date = { $name }: “{ $value }” is not a date. Write it as 2026-11-27.
refused-param-choice = { $name }: “{ $value }” is not one of its values. Choose one of: { $of }.
refused-param-int = { $name }: “{ $value }” is not a whole number.
refused-param-less = { $name }: { $value } is less than { $min }.
refused-param-more = { $name }: { $value } is more than { $max }.
refused-param-line = { $name }: a text is one line, without NUL characters.
refused-param-long = { $name }: the text has { $length } bytes, and at most { $most } are allowed.
refused-param-pattern = { $name }: “{ $value }” does not match { $pattern }.
refused-no-schedule = { $job } has no schedule, it runs continuously: switch it on. Only a job with a schedule can be run once.
refused-run-elsewhere = { $job } is defined on other nodes only, and its parameters are known there: open the page of one of them.
refused-run-held = The job is held by { $user }: { $reason }. Resume it first.
refused-run-open = { $tick } is still open: wait until it has ended.
refused-run-waits = { $tick } was asked for already, and waits.
refused-run-undecided = { $tick } is not decided yet: the schedule may still run it.
refused-run-done = { $tick } is done. To run the job once more, press Run now.
refused-runs-many = { $most } runs wait already: take one back, or wait.
refused-no-tick = { $tick } is no tick of this job. Its page has the ticks that can be run again.
refused-no-run-waits = That run does not wait any more: it has begun, is over, or was taken back.
refused-name = “{ $name }” is not a valid name: use 1 to 64 of a-z, 0-9, dot, underscore and hyphen, beginning with a letter or digit.
refused-move-held = { $job } is held by { $user }, so no node may run it and there is nothing to move: resume it first.
refused-move-unwanted = Nobody wants { $job }, so there is nothing to move: switch it on first.
refused-move-given-up = { $job } has given up after its crashes, so there is nothing to move: switch it off and on again.
refused-move-never-ran = { $job } has not run yet, so there is no node to move it from. Its page says what it waits for.
refused-move-there = { $job } is on { $node } already.
refused-move-silent = { $node } has not reported for { $s } s: check whether it runs, or choose another node.
refused-move-draining = { $node } is being drained: end the drain first, or choose another node.
refused-move-not-offered = { $job } may not run on { $node }: the configuration names the nodes that may.
refused-move-alone = No other living node may run { $job }, so it stays on { $node }: start another node first.
refused-drill-held = { $job } is held by { $user }, so no node would take over: resume it first.
refused-drill-not-running = { $job } is not running, so there is no holder to crash. Its page says why.
refused-drill-external = { $job } runs in a program of your own, which Soloist can tell to stop and cannot crash: kill that program yourself, or move the job.
refused-drill-alone = No other living node may take { $job }, so it would stay down. Start another node first, or confirm in the dialog that { $node } is to crash anyway.
refused-drill-left = { $job } has just left { $node }, so no node was crashed: try again.
refused-duration = This is not a duration: write for example 60s, 10m or 1h.
refused-block-long = A block may last a day at most: pause the source for longer, or block it again.
refused-source-loses = { $n } tasks of { $source } would be lost, { $flight } of them claimed. Confirm to remove them anyway.
refused-task-held = { $collector } is working on this task; its work would be lost. Confirm to remove it anyway.
refused-tasks-many = At most { $most } tasks at once: tick fewer.
refused-rotation-loses = { $worker } has the turn of { $rotation }, and { $n } wait for it. Its work would overlap with the next turn: stop it first, or confirm to remove it anyway.
refused-rotation-waited = { $n } workers are waiting in { $rotation }. Stop them first, or confirm that they may be dropped.
refused-full-sources = There are { $most } sources already, and no more are allowed: remove one first.
refused-full-rotations = There are { $most } rotations already, and no more are allowed: remove one first.
refused-full-tasks = This source has { $most } tasks already, and no more are allowed: wait until some are done, or remove dead ones.
refused-full-accounts = There are { $most } accounts already, and no more are allowed: remove one first.
refused-full-tokens = This account has { $most } tokens already, and no more are allowed: revoke one first.
refused-full-leases = This account has { $most } leases already, and no more are allowed: release those that are not needed.
refused-mute-time = An alert can be muted for 1 second to 366 days: choose a time between them.
refused-account-taken = There is an account { $user } already: change that one, or choose another name.
refused-last-admin = { $user } is the last admin with a password, so nothing was changed: make another admin first.
refused-link-collector = { $user } is an account for collectors, which uses tokens and no password: make a token for it.
refused-own-account = This is your own account: change your password under My account.
refused-other-site = This request comes from another site: open { $url } and try again there. If that is not your address of Soloist, an admin corrects public_url in the configuration.
refused-form-old = The form is out of date: reload the page and try again.
refused-form = The form was not sent as the page has it: reload the page and try again.
refused-address = This page does not exist. Go back and choose again.
refused-line = The address names no line of the output: use the number of a line.
refused-from-to = The beginning is later than the end: swap them.
refused-sign-ins = Too many failed attempts to sign in: wait { $s } s and try again.
refused-busy = Too many people sign in at this moment: try again in a few seconds.
refused-store-away = The store is out of reach: try again in a moment.

# Alerts
alert-begin-wanted-not-running = { $job } is wanted and has not been running since { $since }.
alert-begin-given-up = { $job } was given up.
alert-begin-crash-loop = { $job } crashes repeatedly.
alert-begin-node-lost = Node { $node } has not reported since { $since }: it is dead or cut off. Other nodes take its jobs, where they may.
alert-begin-store-lost = Node { $node } has not reached the store since { $since }. It starts nothing, and its data is old. Check whether the store runs and the network works.
alert-begin-stuck = { $job }: no output and no progress since { $since }. Read its output; if it hangs, move it, or hold it and resume it.
alert-begin-drift = { $job } is defined differently on { $node } than on most nodes: soloist status shows the difference. Give every node the same configuration and the same tzdata.
alert-begin-overdue-claims = Source { $source }: tasks that a collector lost have been waiting since { $since }, and no collector claims them. Check whether a collector runs.
alert-begin-not-started = { $job }: a tick should have started by { $since } and has not.
alert-begin-not-finished = { $job }: a tick should have ended by { $since } and has not.
alert-begin-missed-tick = { $job }: a tick was missed.
alert-begin-tick-lost = { $job }: the run of a tick was lost, and it is not repeated automatically.
alert-begin-too-quick = { $job }: a run ended well, but too quickly.
alert-begin-no-success-for = { $job } has had no success since { $since }.
alert-begin-channel-lost = Channel { $channel } has accepted no message since { $since }. Its messages are kept and sent again.
alert-end-wanted-not-running = Over: { $job } is not missing any more.
alert-end-given-up = Over: { $job } is not given up any more.
alert-end-crash-loop = Over: { $job } no longer crashes repeatedly.
alert-end-node-lost = Over: node { $node } reports again, or was forgotten.
alert-end-store-lost = Over: node { $node } reaches the store again.
alert-end-stuck = Over: { $job } has output or progress again, or its run has ended.
alert-end-drift = Over: { $job } is defined on { $node } as on most nodes.
alert-end-overdue-claims = Over: the tasks of source { $source } that a collector lost were claimed.
alert-end-not-started = Over: a tick of { $job } has started, or nobody wants it any more.
alert-end-not-finished = Over: no tick of { $job } is overdue any more.
alert-end-missed-tick = Over: a run of { $job } has ended well since, or nobody wants it any more.
alert-end-tick-lost = Over: a run of { $job } has ended well since, or nobody wants it any more.
alert-end-too-quick = Over: a run of { $job } has taken long enough since, or nobody wants it any more.
alert-end-no-success-for = Over: a run of { $job } has ended well, or nobody wants it any more.
alert-end-channel-lost = Over: channel { $channel } accepts messages again.
trouble-tick = It is the tick { $tick }.
trouble-held = The job is held by { $user }: { $reason }.
trouble-behind = Still open: { $run }.
trouble-turn = It waits for its turn in the rotation.
trouble-no-node = No node has taken it yet.
trouble-no-program = No program has asked for it yet.
trouble-missed = It was missed: { $why }.
trouble-why = Tick { $tick }: { $why }.
trouble-why-of-several = { $n } ticks, the first of them { $tick }: { $why }.
trouble-lost = Tick { $tick }: { $why }. Find out how far its run came. To repeat it: soloist trigger { $job } --tick '{ $name }'
trouble-quick = Tick { $tick }: its run took { $took }, and at_least is { $least }. Read its output.
alert-test = A test of channel { $channel }, sent by { $user }: nothing is wrong.

# Who held it
hold-title = Who held it
hold-hour = 1 h
hold-day = 24 h
hold-week = 7 d
hold-picture = Who held it and who wanted it in the last { $time }; the table below says the same.
hold-nothing = Nobody held it or wanted it in this time.
hold-program-picture = Which program held it and who wanted it in the last { $time }; the table below says the same.
hold-program-nothing = No program held it and nobody wanted it in this time.
hold-legend = Nobody held it:
hold-table = As a table
hold-what = what
hold-from = from
hold-to = to
hold-lasted = lasted
hold-note = how it went
hold-more = { $n ->
    [one] One older line is not shown here: GET /api/v1/jobs/{ $job }/timeline has it.
   *[other] { $n } older lines are not shown here: GET /api/v1/jobs/{ $job }/timeline has them.
}
hold-wanted = wanted by { $user }
hold-forbade = forbidden by { $user }
hold-by = held by { $node }
hold-nobody = nobody
hold-takeover = { $node } took over from { $before } in { $ms }
hold-took = took over from { $before } in { $ms }
hold-program-takeover = { $node } took over from { $before } in { $ms } after its lease ended
hold-program-took = took over from { $before } in { $ms } after its lease ended, up to { $lease } after its last renewal
hold-now = now
hold-runs = { $n ->
    [one] one run
   *[other] { $n } runs
}
hold-failed = { $n } failed
hold-crashed = crashed
hold-program-failed = failed
hold-minutes-ago = −{ $n } min
hold-hours-ago = −{ $n } h
hold-days-ago = −{ $n } d
hold-failing = ended badly
gap-off = off
gap-held = forbidden
gap-resting = rest between runs
gap-scheduled = time until the next tick
gap-backing-off = wait after a crash
gap-taking-over = take-over
gap-waiting = waiting for a node
gap-program-waiting = waiting for a program
gap-program-failed = wait after a failure
gap-unknown = not known who wanted it
strip-label = The last hour: { $nodes }
strip-node = { $node } { $time }
strip-nobody = The last hour: nobody held it
runs-share = { $n ->
    [one] { $percent } % of one run in { $time } went well
   *[other] { $percent } % of { $n } runs in { $time } went well
}
runs-picture = How these runs ended, oldest first; the higher, the longer
runs-older = older runs
runs-newer = newer runs
runs-no-older = There are no older runs.
alerts-title = Alerts
alerts-as-of = As of { $at }.
alerts-again = look again
alerts-sender = sent by { $name }
alerts-no-sender = no node sends them now
alerts-begin-title = No alert is set up yet
alerts-begin-text = Write the alerts and their channels into the configuration of every node:
alerts-begin-kinds = or webhook, wecom, dingtalk, feishu, mail
alerts-begin-secret = a webhook needs one
alerts-begin-then = Then run soloist check, send SIGHUP to the nodes (this one: kill -HUP { $pid }) or restart them, and test the channel here. docs/alerts.md lists everything that can be watched.
alerts-on = On now
alerts-on-none = No alert is on.
alerts-what = what
alerts-since = since
alerts-told-to = told
alerts-told = { $channel } at { $at }
alerts-told-as = told by { $alert }
alerts-not-told = { $channel } not yet
alerts-muted-until = Mute until { $until }
alerts-why = why?
alerts-rules = Rules
alerts-rules-none = The configuration has channels, but no [[alert]].
alerts-rule = { $what }, for { $for }.
alerts-rule-at-once = { $what }, at once.
alerts-rule-jobs = { $what }, for { $for }. Only { $jobs }.
alerts-to = Sends to { $name }
alert-when-wanted-not-running = A wanted job does not run
alert-when-given-up = A job was given up
alert-when-crash-loop = A job crashes repeatedly
alert-when-node-lost = A node is silent
alert-when-store-lost = A node cannot reach the store
alert-when-stuck = A run has no output and no progress
alert-when-drift = A node defines a job differently from most
alert-when-overdue-claims = Tasks that a collector lost are not claimed
alert-when-not-started = A tick has not started in time
alert-when-not-finished = A tick has not ended in time
alert-when-missed-tick = A tick was missed
alert-when-tick-lost = The run of a tick was lost and is not repeated
alert-when-too-quick = A run ended well, but too quickly
alert-when-no-success-for = A job has no success
alert-when-channel-lost = A channel accepts no message
alerts-mute = Mute…
alerts-mute-of = Mute… { $name }
alerts-mute-for = for
alerts-mute-hour = 1 hour
alerts-mute-shift = 8 hours
alerts-mute-morning = until tomorrow 08:00
alerts-mute-until = or until ({ $name })
alerts-mute-reason = reason
alerts-mute-yes = Mute
alerts-unmute = Unmute
alerts-unmute-of = Unmute: { $name }
alerts-until-wrong = Choose an instant that is still to come.
alerts-lasting-wrong = Choose how long the alert is to be muted.
alerts-channels = Channels
alerts-channels-none = The configuration has no channel.
alerts-channel-took = Accepted a message at { $at }.
alerts-channel-failed = Did not accept a message at { $at }. { $error }
alerts-channel-idle = No alert was sent by it yet.
alerts-test = Test…
alerts-test-of = Test… { $name }
alerts-test-title = Send a test by { $name }?
alerts-test-text = Everybody behind this channel ({ $kind }) gets one message, in both languages, which says that it is a test and who sent it. This node sends it.
alerts-test-yes = Send it
alerts-test-took = { $name } accepted the test. It answered: { $said }
alerts-test-failed = { $name } did not accept the test. { $said }
undelivered-refused = Its server refused the connection: nothing listens at that address and port.
undelivered-timed-out = Its server did not answer in time.
undelivered-unknown-name = The name of its server was not found: check the address of the channel, and DNS on the node.
undelivered-untrusted = No trusted TLS connection was possible: check the certificate of its server.
undelivered-broken-off = Its server broke the connection off.
undelivered-status = Its server answered with HTTP status { $code }.
undelivered-code = Its server answered with its own error code { $code }.
undelivered-other = It could not be sent.
undelivered-quoted = { $why } In full: “{ $said }”
alerts-past = Past alerts
alerts-past-none = No past alert is kept.
alerts-over = over
alerts-lasted = lasted
alerts-store-lost = The newest 50 are shown, 200 are kept. A node that cannot reach the store reports that by itself; it is not kept here.

told-participation-on = { $who } switched { $target } on
told-participation-off = { $who } switched { $target } off
told-job-hold = { $who } held { $target }
told-job-resume = { $who } resumed { $target }
told-job-move = { $who } moved { $target }
told-job-drill = { $who } crashed the holder of { $target } for a drill
told-job-run = { $who } asked for a run of { $target }
told-job-run-taken-back = { $who } withdrew a run of { $target }
told-job-taken-reset = { $who } set the newest tick of { $target } to now
told-node-drain = { $who } drained { $target }
told-node-undrain = { $who } let { $target } take jobs again
told-node-forget = { $who } forgot { $target }
told-alert-mute = { $who } muted the alert { $target }
told-alert-unmute = { $who } unmuted the alert { $target }
told-channel-test = { $who } tested the channel { $target }
told-source-put = { $who } defined the source { $target }
told-source-pause = { $who } paused the source { $target }
told-source-resume = { $who } resumed the source { $target }
told-source-block = { $who } blocked the source { $target }
told-source-unblock = { $who } lifted the block of the source { $target }
told-source-revive = { $who } revived dead tasks of the source { $target }
told-source-remove = { $who } removed the source { $target }
told-task-revive = { $who } revived the task { $target }
told-task-remove = { $who } removed the task { $target }
told-rotation-remove = { $who } removed the rotation { $target }
told-rotation-put = { $who } defined the rotation { $target }
told-login = { $who } signed in
told-login-failed = { $who } failed to sign in
told-login-throttled = { $who } could not sign in: too many attempts
told-refused-right = { $who } was not allowed: { $target }
told-refused-forgery = A request in the name of { $who } did not come from our own page: { $target }
told-refused-token = { $who } sent a token that is not valid: { $target }
told-refused-more = More was refused, too much to note one by one
told-logout = { $who } signed out
told-user-add = { $who } added the account { $target }
told-user-role = { $who } changed the role of { $target }
told-user-passwd = { $who } changed the password of { $target }
told-user-passwd-own = { $who } changed their own password
told-user-passwd-failed = { $who } entered a wrong old password
told-user-reset = { $who } took the password away from { $target }
told-user-display = { $who } changed the display name of { $target }
told-user-remove = { $who } removed the account { $target }
told-session-end = { $who } ended a session of { $target }
told-token-new = { $who } made an API token for { $target }
told-token-revoke = { $who } revoked an API token of { $target }
told-user-link = { $who } linked { $target } with single sign-on
told-link-new = { $who } made a sign-in link for { $target }
told-user-invite = { $who } made a link to set the password of { $target }
told-unknown = { $who } did { $act } to { $target }
told-why = : “{ $reason }”
told-as-role = as { $role }
told-the-first-admin = the first admin
told-first-admin = as the first admin
told-to-node = to { $node }
told-drill-of = { $node }, under token { $token }
told-for-time = for { $time }
told-of-source = of source { $source }
told-tasks = { $n } tasks
told-tasks-lost = with { $n } tasks, { $flight } of them in flight
told-turn-lost = { $worker } had the turn, { $n } waited
told-turn-free = nobody had the turn, { $n } waited
told-by-link = by one-time link
told-nobody = with nobody any more
told-rules-now = now: { $rules }
told-rules-before = before: { $rules }
told-rules-same = nothing changed
told-rule-order = order: { $types }
audit-since = from ({ $zone })
audit-until = to ({ $zone })
audit-what = what
told-role-viewer = viewer
told-role-operator = operator
told-role-admin = admin
told-role-collector = collector

node-address = address
node-load = load
node-load-of = { $load } on { $n ->
    [one] 1 core
   *[other] { $n } cores
}
node-memory = memory
node-disk = disk
node-memory-of = { $free } of { $all } GiB free
node-lifeline = life line
node-watches = { $n ->
    [one] one program watched
   *[other] { $n } programs watched
}
node-clock = clock
node-clock-right = as the store’s
node-clock-ahead = { $by } ahead of the store
node-clock-behind = { $by } behind the store
node-drift = configuration differs
node-held-now = Held { $job } until { $until }; now on { $node }.
node-held-then = Held { $job } until { $until }; { $node } took it over.
drain-goes = { $n ->
    [one] 1 job is expected to go to { $node }: { $jobs }.
   *[other] { $n } jobs are expected to go to { $node }: { $jobs }.
}
drain-nowhere = { $jobs } has nowhere to go: no other living node may run it. It stops, and stays down until the drain ends or another node may run it.
drain-nothing = It holds nothing now.

## What operators administer from the page
field-wrong = { $field } is wrong: { $means }
rules-back = Back
rules-name = Name
rules-pace = Pace
rules-tries = Leases and tries
rules-turns = Turns
rules-type = Type { $n }
rules-why = Why
rules-change = Change the rules
rules-saved = The rules are saved.
source-new = New source
source-new-yes = Make the source
source-exists = There is a source { $name } already: open it to change its rules, or choose another name.
source-rules-of = Rules of { $source }
source-rules-about = Tasks, starts and blocks stay when rules change. Times are written as 250ms, 5s, 1m 30s or 2h; an empty field gets its default.
rotation-new = New rotation
rotation-new-yes = Make the rotation
rotation-exists = There is a rotation { $name } already: open it to change its rules, or choose another name.
rotation-rules-of = Rules of { $rotation }
rotation-rules-about = The types take turns in this order; a row without a name is ignored. The holder of the turn keeps it. Times are written as 250ms, 5s, 1m 30s or 2h.
field-name = Name
means-name = 1 to 64 of a-z, 0-9, '.', '_', '-', beginning with a letter or digit.
field-gap = Gap
means-gap = Least time between two starts, at most a year. Empty: none.
field-window-count = Starts in a window
means-window-count = At most so many starts within the time beside it, 1 to 100,000. Both empty: any number.
field-window-span = Length of the window
means-window-span = The time within which those starts are counted, at most a year. Both empty: any number.
field-cap = In flight
means-cap = At most so many tasks claimed at once, at least 1. Empty: any number.
field-lease = Lease
means-lease = How long a collector may keep a task without extending it, 100ms to 1d; then another gets it. Empty: 1m.
field-attempts = Attempts
means-attempts = After so many a task is dead; 0: never. Empty: 5.
field-backoff-first = First pause
means-backoff-first = How long a failed task waits for its second try; the pause doubles each time. Not more than the longest. Empty: 1s.
field-backoff-max = Longest pause
means-backoff-max = The pause grows no longer than this, at most a year. Empty: 5m.
field-reason = Reason
means-reason = For the audit, at most 500 characters. Empty: it says what has changed.
field-min-gap = Gap between turns
means-min-gap = Least time between the starts of two turns, whatever their types, at most a year. Empty: none.
field-turn-lease = Lease
means-turn-lease = How long a turn lasts that is neither extended nor passed, 100ms to 1d. Empty: 30s.
field-skip = Absent types
means-skip = What happens to a type without a waiting worker when its turn comes.
skip-absent = is skipped
skip-never = all wait for it
field-type = Type
means-type = A name that no other row has: 1 to 64 of a-z, 0-9, '.', '_', '-'. At least one type, at most 50. Empty: no such type.
field-type-gap = Gap of its own
means-type-gap = Least time between two starts of this type, at most a year. Empty: none.
field-quota-count = Quota: starts
means-quota-count = At most so many starts of this type within the time beside it, 1 to 1,000. Both empty: any number.
field-quota-span = Quota: time
means-quota-span = The time within which those starts are counted, at most a year. Both empty: any number.
field-key = Key
means-key = Unique within the source: the same key is the same task. 1 to 2,048 bytes.
field-payload = Payload
means-payload = JSON of at most 20,000 characters (the API takes 64 KiB), for example an object or a text in quotation marks. Empty: null.
field-priority = Priority
means-priority = 0 to 9; 9 is the most urgent. Empty: 0.
field-at = Not before
means-at = A date and a time such as 2026-12-01T08:00 ({ $zone }), or with its zone 2026-12-01T08:00:00Z. Empty: now.
field-every = Again every
means-every = It becomes due again this long after each time it was done, at most a year. Empty: once.
task-put-title = Put a task
task-put-yes = Put it
task-put = The task was put.
task-there = There is a task with this key already: it was left as it is.
tasks-title = Tasks
tasks-all = All
tasks-state = state
tasks-changed = changed
tasks-chosen = chosen
tasks-choose = Choose { $key }
tasks-none = No task is in this state.
tasks-begin = It has no task yet. Put some and let a collector take them:
tasks-revive = Revive the chosen
tasks-remove = Remove the chosen
tasks-revive-title = { $n ->
    [one] Revive one task?
   *[other] Revive { $n } tasks?
}
tasks-remove-title = { $n ->
    [one] Remove one task?
   *[other] Remove { $n } tasks?
}
tasks-done-title = Result
tasks-nothing = No task is chosen: go back and tick some.
tasks-back = Back to the source
tasks-comes-back = becomes ready again, its attempts counted from zero
tasks-not-dead = is not dead and stays as it is
tasks-goes = is removed with its history; this cannot be undone
tasks-in-hands = is claimed by { $collector }: the work on it is lost
tasks-came-back = is ready again
tasks-gone = was removed
day-title = The last day
day-none = This node has just started: it reads the last day within a few seconds.
day-said = { $done } done and { $failed } tries failed since { $since }.
day-step = { $at }: { $n } done, { $m } tries failed
source-held = Claimed
source-block-long = Block for, such as 60s, 10m or 1h; at most a day
source-remove-label = Remove { $source }
rotation-remove-label = Remove { $rotation }
rotations-back = Back to rotations
ring-begin = No turn yet. A worker asks for one with:
job-tabs = About this job
job-tab-now = Now
job-tab-configuration = Configuration
job-tab-audit = Audit
job-audit-none = No acts on this job yet.
config-nodes = Nodes
config-node = node
config-says = what it defines
config-containment = containment
config-agrees = the same as most
config-differs = differs from most: { $keys }
config-missing = does not define it
config-untold = has not reported yet
config-keys = As this node defines it
config-about = Only shown here; it is changed in the file of each node, and read again at SIGHUP. Values of env and secrets are never shown.
config-elsewhere = Only other nodes define it. They report these keys; for the others they report only whether they differ.
config-key = key
config-value = value
config-others = other nodes
config-otherwise = different on
config-none = none
config-all = all
config-never = never
config-hidden = hidden
config-operators = shown to operators of the job
person-account = Account
person-seen = Last seen
person-unseen = not lately
person-groups = groups
person-withdraw = Withdraw the link
person-link-withdrawn = The link is withdrawn: it does not work any more.
person-wants = Switched on
person-wants-none = They have switched nothing on.
person-alone = nobody else wants it
person-sessions = Signed in
person-sessions-none = They are signed in nowhere.
person-sign-out = Sign out everywhere
person-sign-out-title = Sign { $user } out everywhere?
person-sign-out-text = { $n ->
    [one] One session ends; they must sign in again.
   *[other] { $n } sessions end; they must sign in again.
} API tokens stay valid.
person-signed-out = All sessions have ended.
person-name-saved = The display name is saved.
person-tokens = API tokens
person-tokens-none = They have no API token.
person-loses = Sessions that end: { $sessions }. API tokens that end: { $tokens }.
person-stops = Stops, because nobody else wants it: { $jobs }.
person-leaves = Continues, because others want it too: { $jobs }.
did-session-end-all = signed the account out everywhere
told-session-end-all = { $who } signed { $target } out everywhere
did-store-copy = copied a store into this one
told-store-copy = { $who } copied the store { $target } into this one
did-user-uninvite = withdrew the link to set the password of the account
told-user-uninvite = { $who } withdrew the link to set the password of { $target }
alerts-rule-jobs-at-once = { $what }, at once. Only { $jobs }.
source-held-none = No task of it is claimed.
task-remove = Remove the task
# Wall, API, notices, first run
wall-title = Wall
api-title = API
api-document = As a document for programs (OpenAPI)
notices-title = Notices of this browser
notices-text = When a job begins to need somebody and a page with the list of jobs is open in the background, this browser shows a notice. It asks for permission first; the choice is kept in this browser, for this account.
notices-switch = Tell me
notices-needs-you = needs you
begin-link = The terminal where soloist serve runs printed a link. It works once, for 30 minutes. Open it in this browser.
begin-again = It is gone or too old? On the machine of a node, with the same soloist.toml, this prints another:
begin-name = The link asks for a name (a-z, 0-9, '.', '_', '-', beginning with a letter or digit) and a password of at least ten characters. There is no default password.
begin-switch = Then you are here as an admin. Switch the first job on, and watch it run.
failover-title = See a fail-over
failover-text = The holder of a job is killed on purpose, and another node takes over. This page shows the lost node and where the job runs now.
failover-second = Start a second node, in another terminal of this machine.
failover-elsewhere = Give it a file soloist.toml with the same store and the same jobs, and a name of its own.
failover-several = More than one node lives here already.
failover-on = Switch a job on and wait until it runs.
failover-kill = Kill the node that holds it, as kill -9 would. It returns only where a service manager starts it.
failover-watch = Watch: the line at the top says who took over and within how many milliseconds. If the node that was killed is the one that shows this page, open the page at the other.
failover-program-text = The jobs here run in programs of your own, which Soloist cannot kill. Kill the one that holds a job, and another copy of it takes over.
failover-program-second = Start two copies of the program, and switch its job on.
failover-program-kill = On its machine: kill -9 and the process id of the program that holds the job. Above, the table of leases names it.
failover-program-watch = Watch the table: it names the other copy as soon as the lease of the first has ended; within milliseconds if the machine has a life line.

# Schedules
tick-by-hand = by hand
run-of-tick = the run of { $tick }
run-of-hand = the run by hand
tick-running = running
tick-done = done
tick-failed = failed
tick-lost = lost
tick-missed = missed
tick-skipped = skipped
tick-unwanted = not wanted
tick-covered = covered
tick-dropped = dropped
tick-gap = the clocks skip { $time } on this day: it runs right after
tick-fold = { $time } comes twice on this day: it runs the first time
tick-why-off-by = nobody wanted it: { $user } switched it off
tick-why-off = nobody wanted it
tick-why-held = held by { $user }: { $reason }
tick-why-no-node = nobody took it in time
tick-why-unfit = it could not be started: { $whys }
tick-why-open = { $run } was still open
tick-why-replaced = replaced by { $run }
tick-why-covered-by = { $tick } was run for it, too
tick-why-too-many = more than { $n } were missed, and only the newest are run
tick-why-changed = the schedule was changed
tick-why-code = exit code { $n }
tick-why-signal = ended by signal { $n }
tick-why-not-started = it could not be started
tick-why-timed-out = it took too long, or was silent for too long
tick-why-stopped = stopped on { $node }
tick-why-gone = { $node } was lost
tick-why-fenced = { $node } lost the lease
tick-why-taken-back = { $user } took it back
tick-why-forgot = the store forgot whether it ran
weekday = { $n ->
    [1] Mon
    [2] Tue
    [3] Wed
    [4] Thu
    [5] Fri
    [6] Sat
   *[7] Sun
}
next-tick-in = next { $at }, in { $left }
count-due-soon = due in the next hour: { $n }
ticks-title = Schedule
ticks-next = Next
ticks-last = Last
ticks-last-picture = The last ticks, the oldest first; the table below says the same
ticks-own = In its zone
ticks-utc = In UTC
ticks-yours = Your time, { $zone }
ticks-became = Outcome
ticks-none-next = No tick comes any more.
ticks-none-yet = No tick was due yet.
ticks-older = Older ones
ticks-starts = starts at { $at }
ticks-more = and { $n } more, up to { $tick }
ticks-attempt = attempt { $n }
ticks-by = asked for by { $user }
ticks-late = started { $late } late
ticks-again = Run again
ticks-again-of = Run the tick { $tick } again
ticks-asked = Runs that wait
ticks-asked-line = { $tick }, asked for by { $user } at { $at }
ticks-take-back = Withdraw
ticks-take-back-of = Withdraw the run that { $user } asked for at { $at }
ticks-said = Asked for: { $tick }. It starts as soon as a node takes it.
ticks-said-waits = Asked for: { $tick }. It waits until { $run } has ended.
ticks-said-open = Asked for: { $tick }. It runs.
ticks-said-over = Asked for: { $tick }. It is over: { $outcome }.
run-now = Run now
run-now-title = Run { $title } now
run-again-title = Run the tick { $tick } of { $title } again
run-about = Once, also while the job is off. Its switches stay as they are.
run-waits = Another run is open: { $run }. This one waits until it has ended.
run-params = Parameters
run-param-date = a day
run-param-choice = one of these
run-param-int = a whole number
run-param-int-from = a whole number, { $min } or more
run-param-int-to = a whole number, { $max } or less
run-param-int-within = a whole number from { $min } to { $max }
run-param-text = one line, at most { $most } bytes
run-param-pattern = one line, at most { $most } bytes, that matches { $pattern }
run-param-needed = { $means }; needed
run-back = Back to the job
nav-schedule = Schedule
schedule-title = Schedule
schedule-about = What is due from { $from } to { $to }. Jobs that are off are shown, too; their ticks pass.
schedule-earlier = the day before
schedule-later = the day after
schedule-now = from now
schedule-picture = Runs an hour: at most { $most }, in the hour of { $at }.
schedule-hour = { $n ->
    [one] { $n } run
   *[other] { $n } runs
}
schedule-hour-title = { $at }: { $n }
schedule-often = Often
schedule-often-runs = { $n } times on this day
schedule-often-many = more than { $n } times on this day; not counted above
schedule-often-about = Jobs that run more than { $n } times on this day, in one line each.
schedule-nothing = Nothing is due in this time.
schedule-none = No job has a schedule
schedule-begin = A job with “schedule”, “every” or “at” in the configuration runs at its ticks instead of continuously. Read docs/schedules.md, and write for example:
schedule-more = { $n ->
    [one] One more is left out.
   *[other] { $n } more are left out.
}
schedule-job = Job
schedule-passes = its ticks pass: { $state }
