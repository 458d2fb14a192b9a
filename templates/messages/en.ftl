# English. One message, one sentence; the Chinese file has the same ids with the same variables.

# Around the page
nav-label = Main
nav-jobs = Jobs
nav-nodes = Nodes
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
mark-reconnecting = reconnecting
mark-old = picture is # old
mark-still = picture of { $time }
mark-signed-out = signed out: reload
list-separator = { ", " }
sentence-gap = { " " }
sentence-end = .

# Times
time-yesterday = yesterday { $time }
time-seconds = { $a } s
time-minutes = { $a } min
time-hours = { $a } h { $b } min
time-days = { $a } d { $b } h

# States
state-off = Off
state-waiting = Waiting
state-starting = Starting
state-running = Running
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
token = token { $token }
lease-left = lease good for { $left } s when last seen
process = pid { $pid }
counts-in = counts as running in { $left }
being-started = being started
output-ago = last output { $ago } ago
output-none = no output yet
stopping-held = { $user } holds it
stopping-unwanted = nobody wants it any more
stopping-moved = being moved
stopping-handed-over = being handed over
kill-in = KILL in { $left }
silent-for = { $node } silent for { $ago }
may-start-in = { $node } may start in { $left }
nobody-to-take-over = no other node may take it
another-node = another node
crashed-on = { $n ->
    [one] { $exit } on { $node }
   *[other] { $exit } on { $node }, { $n } crashes in a row
}
next-try-in = next try in { $left }
next-try-now = next try now
switch-off-and-on = switch it off and on to try again
next-run-in = next run in { $left }
store-forgot = store emptied or restarted, known in { $left }
no-node-alive = no node is alive
no-node-offers = no living node may run it
all-draining = every node that may run it is being drained
moving-to = moving to { $node }
moving-away = moving to another node
starts-soon = a node is about to take it
store-may-have-restarted = no node has taken it yet
held-by = { $user } since { $since }: “{ $reason }”
switched-off = { $user } switched it off { $at }
switched-off-because = { $user } switched it off { $at }: “{ $reason }”
finished = finished { $at }
nobody-wants-it = nobody wants it
never-reported = the store has not been reached since this node started
no-report-for = no fresh report for { $ago }
last-known-on = last known on { $node }
last-known = last known: { $state }
exit-code = exit { $n }
exit-signal = killed by signal { $n }
exit-none = could not be started

# Why
why-running = Running on { $node } since { $since }; wanted by { $users }.
why-starting = Starting on { $node } since { $since }; wanted by { $users }. It counts as running after { $uptime }.
why-stopping = Stopping on { $node }: { $cause }. It is off as soon as its last process is gone.
why-stopping-kill = Stopping on { $node }: { $cause }. TERM was sent; whatever is left is killed in { $left }.
cause-held = { $user } holds it
cause-unwanted = nobody wants it any more
cause-moved = it is being moved to another node
cause-handed-over = its node hands it over
why-failing-over = { $node } has been silent for { $ago }. Its lease runs out in { $left }; then { $next } may start it. The script on { $node } is killed before that.
why-failing-over-nobody = { $node } has been silent for { $ago }. Its lease runs out in { $left }, and no other node may run it: start one, or bring { $node } back.
why-backing-off = { $n ->
    [one] Crashed on { $node } at { $at } ({ $exit }). Next try in { $left }; wanted by { $users }. Switching it off and on tries at once.
   *[other] Crashed { $n } times in a row, last on { $node } at { $at } ({ $exit }). Next try in { $left }; wanted by { $users }. Switching it off and on tries at once.
}
why-retry-due = { $n ->
    [one] Crashed on { $node } at { $at } ({ $exit }). The next try is due and starts as soon as a node takes it; wanted by { $users }.
   *[other] Crashed { $n } times in a row, last on { $node } at { $at } ({ $exit }). The next try is due and starts as soon as a node takes it; wanted by { $users }.
}
why-given-up = { $n ->
    [one] Given up after a crash on { $node } at { $at } ({ $exit }), though wanted by { $users }. Read the output, then switch it off and on, or run: soloist resume { $job }
   *[other] Given up after { $n } crashes in a row, last on { $node } at { $at } ({ $exit }), though wanted by { $users }. Read the output, then switch it off and on, or run: soloist resume { $job }
}
why-waiting-due = The last run ended well. Next run in { $left }; wanted by { $users }.
why-waiting-doubted = Wanted by { $users }. The store was restarted, replaced or emptied, or its clock jumped: nothing is started for { $left }, because a run that it forgot may still be living. Then it starts by itself.
why-waiting-no-node = Wanted by { $users }, but no node is alive. Start one with: soloist serve
why-waiting-not-offered = Wanted by { $users }, but no living node may run { $job }: its nodes are { $nodes }. Start one of them, or change the list in soloist.toml.
why-waiting-draining = Wanted by { $users }, but every node that may run it is being drained. End the drain of one, or start another.
why-waiting-moving-to = Wanted by { $users } and being moved to { $node }, which should take it now. In { $left } any node may.
why-waiting-moving = Wanted by { $users } and being moved to another node. In { $left } any node may take it, also the one it came from.
why-waiting-soon = Wanted by { $users }; a node is about to take it.
why-waiting-long = Wanted by { $users }, and nothing forbids it, but no node has taken it yet. A store that was restarted or emptied grants nothing for one lease ({ $lease }), so that nobody runs it twice.
why-held = Held by { $user } since { $since }: “{ $reason }”. It starts for nobody until an operator resumes it, on its page or with: soloist resume { $job }
why-off = Off: nobody wants it.
why-unknown-on = Unknown: the store has not confirmed the last picture for { $ago }. It was on { $node } then, and may be running or not. Look at this node’s connection to the store.
why-unknown-free = Unknown: the store has not confirmed the last picture for { $ago }. Nobody was running it then. Look at this node’s connection to the store.
why-unknown-doubted = Unknown: the store was restarted, replaced or emptied, or its clock jumped, and for { $left } a run that it forgot may still be living. If it was emptied, whoever wants the job must switch it on again.
why-never-reported = Unknown: this node has not reached the store since it started. Look at its connection to the store.

# The switch and people
switch-label = I want it on
switch-on-label = { $title }: I want it on. Now on; press to withdraw.
switch-off-label = { $title }: I want it on. Now off; press to join.
switch-not-yours = Only operators of this job may switch it.
nobody = nobody
you-are-last = { $user }: you are the last
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
store-trouble = Trouble with the store: { $detail }. What is shown below may be old.

# Job page
why-title = Why
output-title = Output
output-empty = It has not said anything yet.
output-follow = following
output-paused = paused
output-moved = moved from #1 to #2
output-skipped = # lines skipped
runs-title = Runs
runs-none = It has not run yet.
runs-began = began
runs-node = node
runs-lasted = lasted
runs-ended = ended
end-running = running
end-exited = exit 0
end-crashed = crashed: { $exit }
end-stopped = stopped
end-lost = node lost
end-fenced = fenced: lease lost
end-killed = { $n } killed besides
act-title = Operate
act-hold = Hold
act-hold-text = Forbid it, whatever the switches say. Others read your reason.
act-reason = Reason
act-reason-example = stocktaking until noon
act-resume = Resume
act-resume-text = Allow it again: it starts at once if somebody wants it.
act-move = Move
act-move-text = Hand it over now: it stops here, is proved gone, and starts there.
act-move-to = To
act-move-any = any other node
act-drill = Drill
act-drill-text = A drill: the node process { $node } is killed with kill -9, and the take-over is measured. All its jobs move; it comes back only if a service manager (systemd, Docker restart policy) starts it again.
act-drill-force = also when nobody can take over
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
holds-nothing = nothing
drain-on = Drain
drain-off = End the drain
drain-title = Drain { $node }?
drain-text = Its jobs are handed over to other nodes now, and it takes no more until the drain ends.
drain-yes = Drain it
cancel = Cancel

# Audit
audit-title = Audit
audit-none = Nobody has done anything yet.
audit-when = when
audit-who = who
audit-from = from
audit-act = act
audit-target = on
audit-why = why
audit-older = older
audit-newest = newest

# Signing in
login-title = Sign in
login-name = Name
login-password = Password
login-again = Password again
login-differs = The two passwords differ.
login-wrong = This name and password do not fit together.
login-enter = Sign in
login-lost = No account? An admin adds one with: soloist user add NAME --role operator
first-title = Make the first admin
first-text = This link works once. Nobody has an account yet; yours will be the admin’s.
first-enter = Make the account and sign in
link-title = Sign in as { $user }
link-text = This link works once.
password-rule = At least { $n } characters.

# Errors
error-back = To the jobs
