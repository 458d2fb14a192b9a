# 简体中文。一条消息就是一句话；编号与变量同英文文件一致。

# 页面四周
nav-label = 主导航
nav-jobs = 任务
nav-nodes = 节点
nav-dispatch = 派发
nav-rotations = 轮转
nav-alerts = 告警
nav-audit = 审计
skip-to-content = 跳到正文
other-language = EN
other-language-label = EN: switch to English
theme-system = 外观：跟随系统。按下更改。
theme-dark = 外观：深色。按下更改。
theme-light = 外观：浅色。按下更改。
account-of = { $user } 的账号
sign-out = 退出登录
role-viewer = 访客：只能查看
role-operator = 操作员：可以开关
role-admin = 管理员：可做一切
role-collector = 采集器
mark-live = 实时
mark-connected = 已连接
mark-page-title = 本页到节点
mark-store = 存储
mark-store-away = 存储失联
mark-store-title = 该节点到存储
mark-reconnecting = 正在重连
mark-old = 画面已过去 #
mark-still = { $time } 的画面
mark-signed-out = 已退出登录
list-separator = 、
description = Soloist：只要有人要它运行，脚本就在整个集群中恰好运行一份。
keys-title = 快捷键
keys-search = 搜索
keys-next = 下一个任务
keys-before = 上一个任务
keys-switch = 按下焦点所在任务的开关
keys-these = 显示快捷键
keys-close = 关闭
sentence-gap = { "" }
sentence-end = 。

# 实情栏
truth-label = 异常情况
truth-store = 存储已失联 { $ago }，下面看到的是旧画面。
truth-store-away = 存储已失联 { $ago }。
truth-lost = 节点 { $node } 于 { $at } 失联。
truth-lost-taken = 节点 { $node } 于 { $at } 失联；{ $by } 在 { $took }内接管了 { $n } 个任务。
truth-drift = 节点 { $node } 的配置不同：{ $jobs }。
truth-drift-more = 节点 { $node } 的配置不同：{ $jobs } 等，另有 { $n } 个任务。
drift-of = { $job }（{ $keys }）
drift-missing = 该节点没有定义
truth-page = 本页的节点已 { $ago }没有消息，下面看到的是旧画面。{ $left }后重试。
truth-page-now = 本页的节点已 { $ago }没有消息，下面看到的是旧画面。正在重试。
truth-now = 立即重试
truth-signed-out = 您已退出登录，下面看到的是旧画面。

# 时间
time-yesterday = 昨天 { $time }
time-milliseconds = { $a } 毫秒
time-seconds = { $a } 秒
time-minutes = { $a } 分钟
time-hours = { $a } 小时 { $b } 分
time-days = { $a } 天 { $b } 小时

# 状态
state-off = 已停止
state-waiting = 等待中
state-resting = 待下一轮
state-starting = 启动中
state-running = 运行中
state-backing-off = 等待重试
state-crash-looping = 反复崩溃
state-given-up = 已放弃
state-stopping = 停止中
state-failing-over = 切换中
state-held = 已禁止
state-unknown = 状态未知

# 计数
count-label = 各状态的任务数
count-off = { $n } 已停止
count-waiting = { $n } 等待中
count-resting = { $n } 待下一轮
count-starting = { $n } 启动中
count-running = { $n } 运行中
count-backing-off = { $n } 等待重试
count-crash-looping = { $n } 反复崩溃
count-given-up = { $n } 已放弃
count-stopping = { $n } 停止中
count-failing-over = { $n } 切换中
count-held = { $n } 已禁止
count-unknown = { $n } 状态未知
count-nodes = { $n } { $count ->
   *[other] 节点
}

# 每行的一句话
node-since = { $node } 自 { $since } 起
on-node = 在 { $node } 上
in-program = 在 { $node } 中
runs-in-your-program = 由您自己的程序运行：程序自行申请租约，Soloist 不为它启动任何进程。
token = 令牌 { $token }
lease-left = 最近一次查看时租约还有 { $left } 秒
process = 进程 { $pid }
counts-in = { $left }后算作运行中
being-started = 正在启动
program-begins = 已获得租约，尚未报告运行
waits-for-turn = 在 { $rotation } 中等待回合
turn-unread = 正在读取现在轮到谁
turn-undefined = 该轮转尚未定义：请执行 soloist rotation set { $rotation }，或 PUT /api/v1/rotations/{ $rotation }
turn-no-type = 其中没有类型 { $type }：请用 soloist rotation set { $rotation } 或 PUT /api/v1/rotations/{ $rotation } 添加
turn-too-short = 它的回合只有 { $lease }，来不及终止脚本：请用 soloist rotation set { $rotation } 或 PUT /api/v1/rotations/{ $rotation } 设为 1s 以上
turn-held = { $type } 自 { $since } 起持有回合
turn-own = 刚刚轮到它
turn-gap = 间隔在 { $left }后结束
turn-quota = 它的配额已用完，{ $left }后恢复
turn-recovery = 存储重启或被清空，可能忘记了谁持有当前回合：{ $left }内任何人不得开始
turn-not-before = 上一回合的持有者要求 { $left }内不得开始
turn-first = 先轮到 { $type }
turn-absent = 先轮到 { $type }，但没有人在等它
turn-next = 下一个就是它
output-ago = { $ago }前有输出
output-none = 还没有输出
stopping-held = 被 { $user } 禁止
stopping-unwanted = 已没有人要它运行
stopping-moved = 正在转移
stopping-handed-over = 正在交接
kill-in = { $left }后强制终止
program-has-until = 已通知停止，还有 { $left }
silent-for = { $node } 已 { $ago }无响应
next-program-in = { $left }后交给下一个程序
may-start-in = { $node } 可在 { $left }后接管
nobody-to-take-over = 没有其他节点可以接管
another-node = 另一个节点
crashed-on = { $n ->
   *[other] 在 { $node } 上连续崩溃 { $n } 次（{ $exit }）
}
failed-in = { $n ->
   *[other] 在 { $node } 中连续失败 { $n } 次（{ $exit }）
}
next-try-in = { $left }后重试
next-try-now = 马上重试
switch-off-and-on = 关闭再打开即可重试
next-run-in = { $left }后再次运行
next-run-now = 马上再次运行
store-forgot = 存储重启或被清空，{ $left }后可知
no-node-alive = 没有存活的节点
no-node-offers = 存活的节点都不允许运行它
all-draining = 可运行它的节点都在腾空
only-node-suspect = { $node } 可能已失效，没有其他节点可以运行它
moving-to = 正在转移到 { $node }
moving-away = 正在转移到其他节点
moving-to-a-program = 正在转移到其他程序
no-program-asked = 还没有程序申请
starts-soon = 马上有节点接手
store-may-have-restarted = 还没有节点接手
held-by = { $user } 自 { $since } 起禁止：“{ $reason }”
switched-off = { $user } 于 { $at } 关闭
switched-off-because = { $user } 于 { $at } 关闭：“{ $reason }”
finished = 已于 { $at } 完成
nobody-wants-it = 没有人要它运行
never-reported = 本节点启动后还没有连上存储
no-report-for = 已 { $ago }没有新的报告
last-known-on = 最后所知在 { $node } 上
last-known = 最后所知：{ $state }
exit-code = 退出码 { $n }
exit-signal = 被信号 { $n } 终止
exit-none = 无法启动
exit-timed-out = 超时
exit-runtime = 运行超过 { $limit }（max_runtime），超时
exit-silence = 超过 { $limit }没有输出（max_silence），超时
over-runtime = 运行超过 { $limit }，被停止：max_runtime
over-silence = 超过 { $limit }没有输出，被停止：max_silence
ends-at-latest = 最迟在 { $at } 结束

# 为什么
why-running = 自 { $since } 起在 { $node } 上运行；{ $users } 要它运行。
why-starting = 自 { $since } 起在 { $node } 上启动；{ $users } 要它运行。满 { $uptime }后算作运行中。
why-stopping = 正在 { $node } 上停止：{ $cause }。最后一个进程消失后即为已停止。
why-stopping-kill = 正在 { $node } 上停止：{ $cause }。已发出 TERM，{ $left }后强制终止剩下的进程。
cause-held = 被 { $user } 禁止
cause-unwanted = 已没有人要它运行
cause-moved = 正在转移到其他节点
cause-handed-over = 所在节点正在交接
why-failing-over = { $node } 已 { $ago }无响应。它的租约将在 { $left }后到期，随后 { $next } 可以启动它；在那之前，{ $node } 上的脚本会被终止。
why-failing-over-nobody = { $node } 已 { $ago }无响应。它的租约将在 { $left }后到期，而没有其他节点可以运行它：请启动一个节点，或恢复 { $node }。
why-backing-off = { $n ->
   *[other] 连续崩溃 { $n } 次，最近一次于 { $at } 在 { $node } 上（{ $exit }）。{ $left }后重试；{ $users } 要它运行。关闭再打开可立即重试。
}
why-retry-due = { $n ->
   *[other] 连续崩溃 { $n } 次，最近一次于 { $at } 在 { $node } 上（{ $exit }）。已到重试时间，有节点接手即启动；{ $users } 要它运行。
}
why-given-up = { $n ->
   *[other] 连续崩溃 { $n } 次后已放弃，最近一次于 { $at } 在 { $node } 上（{ $exit }），尽管 { $users } 要它运行。请先看输出，再关闭并重新打开，或执行：soloist resume { $job }
}
why-resting = 两次运行之间的间歇：上次正常结束，{ $left }后开始下一次；{ $users } 要它运行。
why-resting-due = 两次运行之间的间歇：上次正常结束，下一次马上开始；{ $users } 要它运行。
why-waiting-doubted = { $users } 要它运行。存储被重启、更换或清空，或其时钟跳变：{ $left }内不启动任何脚本，因为它忘记的运行可能仍在进行。之后自动启动。
why-waiting-no-node = { $users } 要它运行，但没有存活的节点。启动一个节点：soloist serve
why-waiting-not-offered = { $users } 要它运行，但存活的节点都不允许运行 { $job }：允许的节点是 { $nodes }。请启动其中之一，或修改 soloist.toml 中的列表。
why-waiting-draining = { $users } 要它运行，但可运行它的节点都在腾空。请结束其中一个的腾空，或启动另一个节点。
why-waiting-suspect = { $users } 要它运行，但只有 { $node } 可以运行它，而该节点自 { $ago }前丢失运行后再无消息，可能已失效。请启动它，或启动另一个可以运行该任务的节点。
why-waiting-moving-to = { $users } 要它运行，正在转移到 { $node }，该节点应马上接手。{ $left }后任何节点都可以接手。
why-waiting-moving = { $users } 要它运行，正在转移到其他节点。{ $left }后任何节点都可以接手，包括原来的节点。
why-waiting-soon = { $users } 要它运行，马上有节点接手。
why-waiting-long = { $users } 要它运行，也没有任何限制，但还没有节点接手。存储重启或被清空后，在一个租约（{ $lease }）之内不会放行，以免同时运行两份。
why-waiting-turn = { $users } 要它运行。它在 { $node } 上等待轮转 { $rotation } 的回合：
why-program-running = 自 { $since } 起在 { $node } 中运行；{ $users } 要它运行。
why-program-starting = 自 { $since } 起在 { $node } 中启动；{ $users } 要它运行。满 { $uptime }后算作运行中。
why-program-stopping = { $cause }；{ $node } 在续租时会收到停止通知。该程序交还租约或租约到期后即为已停止。
why-program-stopping-until = { $cause }；{ $node } 已收到停止通知，还有 { $left }。该程序交还租约或租约到期后即为已停止。
program-off-by = 已由 { $user } 关闭
program-off = 已没有人要它运行
program-held = 被 { $user } 禁止
program-moved = 正在转移到其他程序
program-over = 它的时间已到
why-program-failing-over = { $node } 已 { $ago }无响应；它的租约将在 { $left }后到期，随后交给下一个程序。
why-program-backing-off = { $n ->
   *[other] 连续失败 { $n } 次，最近一次于 { $at } 在 { $node } 中（{ $exit }）。{ $left }后交给下一个程序；{ $users } 要它运行。关闭再打开可立即放行。
}
why-program-retry-due = { $n ->
   *[other] 连续失败 { $n } 次，最近一次于 { $at } 在 { $node } 中（{ $exit }）。已到重试时间，但还没有程序申请；{ $users } 要它运行。
}
why-program-given-up = { $n ->
   *[other] 连续失败 { $n } 次后已放弃，最近一次于 { $at } 在 { $node } 中（{ $exit }），尽管 { $users } 要它运行。请先看输出，再关闭并重新打开，或执行：soloist resume { $job }
}
why-program-resting = 两次运行之间的间歇：上次正常结束，{ $left }后交给下一个程序；{ $users } 要它运行。
why-program-resting-due = 两次运行之间的间歇：上次正常结束，下一个申请的程序即可获得；{ $users } 要它运行。
why-program-waiting = 等待中：{ $users } 要它运行，但还没有程序申请。
why-program-waiting-doubted = { $users } 要它运行。存储被重启、更换或清空，或其时钟跳变：{ $left }内不交给任何程序，因为它忘记的运行可能仍在进行。之后下一个申请的程序即可获得。
why-program-waiting-moving-to = { $users } 要它运行，正在转移到 { $node }，但该程序还没有申请。{ $left }后任何程序都可以获得。
why-program-waiting-moving = { $users } 要它运行，正在转移到其他程序，但还没有程序申请。{ $left }后任何程序都可以获得，包括原来的程序。
why-program-unknown-on = 状态未知：存储已 { $ago }没有确认最近的画面。当时它在 { $node } 中，现在可能在运行，也可能没有。请检查本节点与存储的连接。
why-program-unknown-free = 状态未知：存储已 { $ago }没有确认最近的画面。当时没有程序持有它。请检查本节点与存储的连接。
why-held = 自 { $since } 起被 { $user } 禁止：“{ $reason }”。在操作员恢复之前不会启动；可在任务页面恢复，或执行：soloist resume { $job }
why-off = 已停止：没有人要它运行。
why-unknown-on = 状态未知：存储已 { $ago }没有确认最近的画面。当时它在 { $node } 上，现在可能在运行，也可能没有。请检查本节点与存储的连接。
why-unknown-free = 状态未知：存储已 { $ago }没有确认最近的画面。当时没有节点在运行它。请检查本节点与存储的连接。
why-unknown-doubted = 状态未知：存储被重启、更换或清空，或其时钟跳变，{ $left }内它忘记的运行可能仍在进行。如果存储被清空，请需要该作业的人重新打开。
why-never-reported = 状态未知：本节点启动后还没有连上存储。请检查它与存储的连接。

# 开关与人
switch-label = 我要它运行
switch-on-label = { $title }：我要它运行。现在开着，按下即退出。
switch-off-label = { $title }：我要它运行。现在关着，按下即加入。
switch-not-yours = 只有此任务的操作员可以开关。
nobody = 无人
switch-of = { $title }：我要它运行
user-since = { $user } 自 { $since }
last-since = { $user } 自 { $since }：您是最后一人
progress-label = { $title } 的进度
progress-of = { $done } / { $total }

# 最后一人退出前
last-title = 您是最后一人
last-text = 没有其他人要“{ $title }”运行：这会使它停止。
last-yes = 停止它
last-no = 让它继续

# 任务列表
no-jobs-title = 还没有任务
no-jobs-text = 任务是一个脚本：只要有人要它运行，它就在整个集群中恰好运行一份。在每个可以运行它的节点上，把第一个任务写进 soloist.toml，然后重启节点：
no-jobs-after = 它会出现在这里。网页可以开关、禁止和转移它；它运行什么，只由文件决定。

# 首页显示哪些任务
count-trouble = { $n } { $count ->
   *[other] 需要处理
}
needs-you = 需要处理
sift-search = 搜索任务
sift-go = 显示
sift-all = 显示全部任务
sift-none = 现在没有这样的任务。
sift-group = 分组
sift-any-group = 全部
sift-sort = 排序
sift-sort-need = 按紧要程度和分组
sift-sort-name = 按名称
sift-sort-state = 按状态

# 同时操作多个任务
bulk-tick = 选择 { $title }
bulk-label = 对勾选的任务：
bulk-on = 打开
bulk-off = 关闭
bulk-hold = 禁止
bulk-title-on = 打开 { $n } 个任务？
bulk-title-off = 关闭 { $n } 个任务？
bulk-title-hold = 禁止 { $n } 个任务？
bulk-nothing = 没有勾选任务。请返回，勾选要操作的任务。
bulk-reason = 原因（记入审计）
bulk-joins = 从现在起您要它运行。
bulk-already-on = 您已经要它运行，不会有变化。
bulk-already-off = 您并没有要它运行，不会有变化。
bulk-stops = 没有其他人要它运行，它会停止。
bulk-goes-on = 另有 { $n } 人要它运行，它会继续。
bulk-held = 它已被禁止，保持不变。
bulk-forbids = 不论谁要它运行，它都会停止，直到恢复。
bulk-result = 操作结果
bulk-done = 已完成。
bulk-back = 返回任务列表
not-read = 读取失败：存储失联。
store-trouble = 存储出现问题：{ $detail }。下面显示的内容可能已经过时。

# 任务页面
why-title = 为什么
output-title = 输出
output-empty = 它还没有任何输出。
output-follow = 跟随中
output-paused = 已暂停
output-from-here = 此后在 { $node } 上运行
output-after = { $why }，此后在 { $node } 上运行
after-lost = { $node } 失联
after-fenced = { $node } 失去租约
after-timed-out = 在 { $node } 上超时
after-exited = 在 { $node } 上运行 { $lasted }后正常结束
after-crashed = 在 { $node } 上运行 { $lasted }后崩溃（{ $exit }）
after-stopped = 在 { $node } 上被停止
after-off = { $user } 关闭了它
after-held = { $user } 禁止了它
after-drained = { $user } 腾空了 { $node }
after-moved = { $user } 移走了它
after-moved-to = { $user } 把它移到了 { $node }
output-skipped = 略过 # 行
output-next-run = 另一次运行
output-held = # 行新输出
output-wrap = 自动换行
output-save = 下载
output-grep = 文字
output-find = 搜索
output-newest = 最新的行
output-older = 更早的行
output-newer = 更新的行
output-run = 只看运行 { $run }
output-none-there = 没有这些行，或者已不再保留。
output-none-such = 保留的输出里没有这样的行。
output-none-yet = 查过的行里没有；更早的行里可能有。
runs-title = 运行记录
runs-none = 它还没有运行过。
runs-began = 开始
runs-node = 节点
runs-program = 程序
runs-lasted = 时长
runs-ended = 结束
end-running = 运行中
end-exited = 正常结束
end-crashed = 崩溃：{ $exit }
end-stopped = 被停止
end-lost = 节点失联
end-lost-program = 程序无响应，租约到期
end-fenced = 租约丢失
end-timed-out = 超时
runs-alike = 相同的运行共 { $n } 次，{ $from } 至 { $to }
end-killed = 另外终止 { $n } 个进程
act-title = 操作
act-hold = 禁止
act-hold-text = 无论开关如何都禁止运行。其他人会看到您写的原因。
act-reason = 原因
act-reason-example = 盘点到中午
act-resume = 恢复
act-resume-text = 重新允许：只要有人要它运行，就立即启动。
act-move = 转移
act-move-text = 立即交接：在这里停止，确认全部消失，再在那里启动。
act-move-unwanted = 没有人要它运行，无需转移。
act-move-given-up = 它已放弃，重新打开之前无从转移。
act-move-never-ran = 它还没有运行过，无从转移。
act-move-nowhere = 无法转移：没有其他存活的节点可以运行它。
act-move-to = 转移到
act-move-any = 任意其他节点
act-move-text-program = 立即交接：通知它的程序停止并交还租约，再交给另一个程序。
act-move-any-program = 任何其他程序
act-drill = 演练
act-drill-text = 演练：用 kill -9 结束节点进程 { $node }，并测量接管时间。它的全部任务都会转移；只有服务管理器（systemd、Docker 重启策略）重新启动它，它才会回来。
act-drill-force = 即使没有节点可以接管
drill-title = 结束节点进程 { $node }？
drill-yes = 结束它
drilled = { $at } 由 { $user } 演练：下令后 { $ms } 毫秒，{ $node } 已重新启动任务。

# 节点
nodes-title = 节点
nodes-none = 还没有节点报告。
node-heard = 心跳
node-version = 版本
node-containment = 隔离方式
node-holds = 持有
node-alive = 存活
node-silent = 无响应
node-draining = 腾空中
node-here = 本页来自此节点
heard-ago = { $ago }前
holds-nothing = 无
leases-title = 当前所有持有者
leases-fine = 每个名称同一时刻只有一个持有者，直到它交还，或失去响应。程序通过 HTTP 获取，命令通过 soloist run 获取。
leases-none = 目前没有任何持有者。任务运行时会被持有；您自己的程序也可以持有，见 docs/embedding.zh.md。
lease-name = 名称
lease-kind = 类型
lease-holder = 持有者
lease-since = 自
lease-time-left = 剩余时间
lease-job = 任务
lease-command = 命令
lease-program = 程序
drain-on = 腾空
drain-off = 结束腾空
drain-title = 腾空 { $node }？
drain-text = 它的任务会立即交给其他节点；在结束腾空之前，它不再接手任务。
drain-yes = 腾空
forget = 移除
forget-title = 从列表中移除 { $node }？
forget-text = 它将不再显示，腾空标记也一并清除；运行历史会保留。它若再次启动，则视为新节点。
forget-yes = 移除
cancel = 取消

# 派发
dispatch-title = 派发
count-tasks-label = 所有来源中各状态的工作项数
count-sources = { $n } { $count ->
   *[other] 个来源
}
count-ready = { $n } 就绪
count-flight = { $n } 处理中
count-due = { $n } 待到期
count-dead = { $n } 死信
count-done = { $n } 已完成
sources-title = 来源
sources-more = { $n ->
   *[other] 另有 { $n } 个来源未在此显示
}。
show-all = 全部显示
show-fewer = 显示较少
no-sources-title = 还没有来源
no-sources-text = 来源是工作的出处：要抓取的网页、要登记的订单、要转换的文件。它的规则决定如何对待它，其中每个工作项同一时刻只交给一个采集器。先为自己创建一个令牌，再定义第一个来源，放入两个工作项，让一个采集器处理它们：
no-sources-after = 它们会立即出现在这里：哪些就绪、谁持有什么、来源为什么在等待。
copy = 复制
copied = 已复制

# 来源为什么被派发或不被派发
source-open = 开放
source-empty = 空闲
source-pacing = 间隔中
source-full = 已达上限
source-paused = 已暂停
source-blocked = 已阻止
source-why-open = { $readyCount ->
   *[other] { $ready } 项就绪：下一个请求即可领取。
}
source-why-empty = 没有工作项。
source-why-due = 没有就绪的工作项；{ $dueCount ->
    [one] 下一项在 { $left }后到期。
   *[other] { $due } 项中的下一项在 { $left }后到期。
}
source-why-due-later = 没有就绪的工作项；{ $dueCount ->
   *[other] { $due } 项稍后到期。
}
source-why-in-hands = 没有就绪的工作项；{ $heldCount ->
   *[other] { $held } 项在采集器手中。
}
source-why-gap = 每 { $gap }开始一项：下一项在 { $left }后。
source-why-gap-short = 每 { $gap }开始一项：下一项随即开始。
source-why-window = { $countCount ->
   *[other] { $span }内的 { $count } 次开始已用完：下一项在 { $left }后。
}
source-why-pacing = 间隔或窗口尚未结束：下一项在 { $left }后。
source-why-full = { $heldCount ->
   *[other] { $held } 项在采集器手中，已达上限。有结果即可继续。
}
source-why-full-until = { $heldCount ->
   *[other] { $held } 项在采集器手中，已达上限。有结果即可继续，或在 { $left }后有租约到期。
}
source-why-paused = 在恢复之前不向任何人派发。
source-why-blocked = { $left }内不向任何人派发。
rule-gap = 每 { $time }开始一项
rule-window = { $n ->
   *[other] { $time }内最多开始 { $n } 项
}
rule-cap = 同时最多 { $n } 项
rule-lease = 租约 { $time }
rule-attempts = { $n ->
   *[other] 尝试 { $n } 次
}
rule-no-end = 不限尝试次数

# 来源的数字
figure-ready = 就绪
figure-flight = 处理中
figure-of-cap = / { $cap }
figure-due = 待到期
figure-dead = 死信
figure-done = 已完成
pace-now = { $rate } 项/秒
pace-done = 完成
pace-wait = 测量中…
pace-label = { $source }：现在每秒完成 { $rate } 项。最近 { $span }内每秒最多完成 { $most } 项、开始 { $starts } 项。
pace-wait-label = { $source }：读取两次后才知道速率，还需几秒。

# 对来源的操作
source-pause = 暂停
source-pause-label = 暂停 { $source }
source-pause-title = 暂停 { $source }？
source-pause-text = 在恢复之前，采集器不再得到它的工作项；已持有的可以做完。
source-pause-yes = 暂停
source-resume = 恢复
source-resume-label = 恢复 { $source }
source-block = 阻止
source-block-label = 暂时阻止 { $source }
source-block-for = 时长
source-block-title = 阻止 { $source } { $time }？
source-block-text = { $time }内采集器不会得到它的工作项，之后自动恢复派发；已持有的可以做完。
source-block-yes = 阻止
source-unblock = 解除阻止
source-unblock-label = 解除对 { $source } 的阻止

# 采集器
collectors-title = 采集器
collectors-none = 一天之内没有采集器来领取工作。
collectors-more = { $n ->
   *[other] 一天之内还有 { $n } 个采集器来过。
}
collector-name = 采集器
collector-seen = 最近请求
collector-holds = 持有
collector-end = 最早的租约到期
collector-ends-in = { $left }后
collector-nothing = 无
collector-more = 另有 { $n } 项

# 轮转
rotations-title = 轮转
count-turns-label = 轮转的数量、进行中的回合数、等待者数
count-rotations = { $n } { $count ->
   *[other] 个轮转
}
count-taken = { $n } 进行中
count-waiters = { $n } 等待
rotations-more = { $n ->
   *[other] 另有 { $n } 个轮转未在此显示
}：GET /api/v1/rotations 列出全部。
no-rotations-title = 还没有轮转
no-rotations-text = 轮转让几类工作轮流使用一次只容一个的东西：供应商接口、设备、夜间窗口。回合从不重叠，也从不早于间隔开始。先定义第一个轮转，再让命令在各自的回合里运行：
no-rotations-http = 或者通过 HTTP：
no-rotations-after = 它会立即出现在这里：轮到谁、谁在等什么、最近的回合如何结束。

# 轮到谁
rotation-taken = 进行中
rotation-pacing = 间隔中
rotation-open = 可开始
rotation-absent = 受阻
rotation-idle = 空闲
rotation-why-taken = { $worker } 持有 { $kind } 的回合已 { $ago }；若不续期，租约在 { $left }后到期。
rotation-why-open = 轮到 { $kind }：等待最久者正在接手。
rotation-why-absent = 大家都在等 { $kind }，但没有人请求它；此处不跳过缺席者。
rotation-why-soon = 下一个是 { $kind }：一秒之内可以开始。
rotation-why-gap = 下一个是 { $kind }：间隔结束后，{ $left }后可以开始。
rotation-why-quota = 下一个是 { $kind }：配额有空余后，{ $left }后可以开始。
rotation-why-recovery = 存储重启或被清空，可能忘记了谁持有当前回合。待此类回合全部到期后，{ $kind } 可在 { $left }后开始。
rotation-why-not-before = 下一个是 { $kind }：按上一回合的要求，{ $left }后可以开始。
rotation-why-idle = 没有人等待：下一个请求即可开始。
rotation-why-idle-until = 没有人等待；{ $left }后可以开始新的回合。
rotation-undefined = 此轮转尚未定义：soloist rotation set { $rotation }
rule-min-gap = 开始间隔至少 { $time }
rule-skip-absent = 跳过缺席者
rule-skip-never = 等待缺席者
ring-label = { $rotation } 的类型，按回合顺序
ring-now = 持有回合
ring-next = 下一个
ring-waiting = { $n ->
   *[other] { $n } 个等待
}
ring-more = 另有 { $n } 个
wait-turn = 轮到它了
wait-held = 回合在别人手中
wait-behind = { $kind } 在前
wait-absent = { $kind } 在前，但没有人请求它
wait-gap = 间隔：{ $left }
wait-quota = 配额：{ $left }
wait-recovery = 存储可能忘记了一个回合：{ $left }
wait-not-before = 按要求等待：{ $left }

# 轮转的数字
type-name = 类型
type-waiting = 等待
type-why = 在等什么
waiters-title = 谁在等
waiters-none = 没有人。
waiter-worker = 工作者
waiter-node = 所在节点
waiter-since = 开始等待
waiters-more = 另有 { $n } 个
turns-title = 最近的回合
turns-none = 还没有人有过回合。
turns-span = 从 { $from } 到 { $to }
turns-picture = { $n ->
   *[other] { $rotation } 最近的 { $n } 个回合
}，每类一道。表格内容相同。
turns-table = 以表格显示
turn-began = 开始
turn-after = 距上一回合
turn-lasted = 用时
turn-ended = 结果
turn-had = 进行中
turn-done = 完成
turn-empty = 无事
turn-failed = 失败
turn-lost = 丢失
turn-bar = { $kind }：{ $ended }，{ $lasted }，{ $worker }
turn-silence = { $time }内无人
turn-least-gap = 每次开始后的最短间隔

# 工作项
remove-source = 移除来源
remove-rotation = 移除轮转
remove-name = 名称
remove-enter = 移除
remove-title = 移除 { $name }？
remove-source-text = 它的规则和全部工作项都会删除：未完成 { $tasks } 个，其中 { $flight } 个正由采集器持有。删除后无法恢复。
remove-rotation-held = { $worker } 正持有本轮，另有 { $waiting } 个在等待。规则和最近的轮次都会删除；正在进行的工作会继续，直到它再次请求。
remove-rotation-free = 目前无人持有，{ $waiting } 个在等待。规则和最近的轮次都会删除。
remove-yes = 移除
find-title = 查找工作项
find-source = 来源
find-key = 键
find-enter = 查找
find-none = { $source } 中没有这个键的工作项：从未放入，或完成已久而被忘记。
task-title = 工作项
task-state-ready = 就绪
task-state-due = 待到期
task-state-leased = 处理中
task-state-done = 已完成
task-state-dead = 死信
task-why-ready = 自 { $at } 起就绪：{ $source } 可以派发时，交给下一个采集器。
task-why-due = { $left }后就绪，即 { $at }。
task-why-leased = { $collector } 持有它；若不续租，租约在 { $left }后到期。
task-why-done = 已于 { $at } 完成。
task-why-dead = 已于 { $at } 放弃。在有人恢复之前一直留在这里。
task-source = 来源
task-id = 编号
task-attempt = 尝试
task-of-attempts = { $n } / { $most }
task-priority = 优先级
task-token = 令牌
task-created = 放入
task-every = 重复间隔
task-error = 最近的错误
task-payload = 内容
task-payload-cut = 共 { $all } 个字符，此处为前 { $shown } 个：GET /api/v1/tasks/{ $id } 给出全部。
task-history = 历史
task-history-none = 它从未出错。
past-when = 时间
past-event = 事件
past-attempt = 尝试
past-collector = 采集器
past-error = 错误
past-retried = 要求重试
past-expired = 租约到期
past-died = 放弃
past-revived = 恢复
revive = 恢复
revive-label = 恢复 { $key }
revive-text = 重新就绪，尝试次数从零计起。

# 死信
dead-title = 死信
dead-title-of = { $source } 的死信
dead-none = 没有死信。
dead-none-of = { $source } 没有死信。
dead-all = 所有来源
dead-back = 回到派发
dead-key = 键
dead-source = 来源
dead-error = 错误
dead-attempts = 尝试
dead-when = 放弃时间
dead-no-error = 没有报告错误
dead-older = 更早
dead-newest = 最新
revive-all = 恢复 { $source } 的全部死信
revive-all-title = 恢复 { $source } 的全部死信？
revive-all-text = 全部 { $n } 项重新就绪，尝试次数从零计起。每次最多恢复 { $most } 项。
revive-all-yes = 恢复它们
revived-some = { $n ->
   *[other] 已恢复 { $n } 项。
}
revived-more = 还有更多：请再按一次。

# 审计
audit-title = 审计
audit-none = 还没有任何操作。
audit-when = 时间
audit-who = 谁
audit-from = 来自
audit-act = 操作
audit-target = 对象
audit-older = 更早
audit-newer = 较新
audit-newest = 最新
audit-none-such = 没有找到符合条件的记录。
audit-kind = 类别
audit-kind-any = 全部
audit-kind-person = 人员
audit-kind-program = 程序
audit-kind-refusal = 被拒绝的请求
audit-act-any = 全部
audit-find = 筛选
audit-all = 显示全部
audit-save = 另存为
audit-save-lines = JSON 行（带哈希链）
audit-times = 共 { $n } 次
audit-times-last = ，最后一次
did-participation-on = 打开了开关
did-participation-off = 关闭了开关
did-job-hold = 禁止了任务
did-job-resume = 恢复了任务
did-job-move = 转移了任务
did-job-drill = 为演练结束了持有节点的进程
did-node-drain = 腾空了节点
did-node-undrain = 结束了节点的腾空
did-node-forget = 移除了节点
did-alert-mute = 静音了告警
did-alert-unmute = 取消了告警静音
did-channel-test = 测试了告警通道
did-source-put = 定义了来源
did-source-pause = 暂停了来源
did-source-resume = 恢复了来源
did-source-block = 阻止了来源
did-source-unblock = 解除了来源的阻止
did-source-revive = 恢复了来源的死信
did-task-revive = 恢复了工作项
did-source-remove = 移除了来源
did-task-remove = 移除了工作项
did-rotation-remove = 移除了轮转
did-rotation-put = 定义了轮转
did-login = 登录了
did-login-failed = 登录失败
did-login-throttled = 登录被限制：尝试次数过多
did-refused-right = 无权操作，被拒绝
did-refused-forgery = 被拒绝：请求并非来自本站页面
did-refused-token = 被拒绝：令牌无效
did-refused-more = 另有被拒绝的请求，数量过多，未逐条记录
did-logout = 退出了登录
did-user-add = 添加了账号
did-user-role = 更改了账号的角色
did-user-passwd = 更改了账号的密码
did-user-remove = 删除了账号
did-token-new = 创建了 API 令牌
did-token-revoke = 吊销了 API 令牌
did-user-link = 关联了账号与单点登录身份
did-link-new = 创建了登录链接
did-user-passwd-own = 更改了自己的密码
did-user-passwd-failed = 输错了原密码
did-user-reset = 作废了账号的密码
did-user-display = 更改了账号的显示名
did-user-invite = 为账号创建了设置密码的链接
did-session-end = 结束了账号的一个会话

# 登录
login-title = 登录
login-name = 用户名
login-password = 密码
login-again = 再输一次密码
login-differs = 两次输入的密码不同。
login-wrong = 用户名与密码不相符。
login-enter = 登录
login-nobody = 还没有任何账号。运行 soloist serve 的终端里打印过一个链接，用它可以创建第一个账号；要再打印一个，请运行：soloist link
login-form-old = 表单已过期，请再试一次。
login-collector = { $user } 是采集器账号：它使用令牌，没有页面。
login-no-admin = { $user } 已不是管理员，请联系其他管理员。
login-differ = 两次输入的密码不同，请输入相同的密码。
login-link-used = 这个链接已失效：链接只能使用一次，并且有期限。请向管理员要新的链接；管理员可运行：soloist link
login-link-late = 这个链接用于创建第一个账号，而现在已经有账号了，请用已有账号登录。要为管理员打印登录链接，请运行：soloist link
login-lost = 没有账号？请管理员添加：soloist user add NAME --role operator
sso-off = 这里没有设置单点登录，请用用户名和密码登录。
sso-away = 现在连不上单点登录服务，请稍后再试，或用密码登录。
sso-old = 这次登录已失效：它是在别的浏览器或窗口里开始的，或已超过 10 分钟。请重新登录。
sso-said = 单点登录服务拒绝了登录：{ $text }
sso-unproved = 无法验证单点登录服务的答复。请重新登录；如果一直这样，请告诉管理员，原因写在本节点的日志里。
sso-no-role = { $user } 不在任何可以使用 Soloist 的组里。请联系管理单点登录分组的人。
sso-no-account = 还没有 { $user } 的账号。请管理员关联你的账号：soloist user link NAME --subject { $subject }
sso-taken = 已有名为 { $user } 的账号，但它没有与你关联。如果它是你的，请管理员运行：soloist user link { $user } --subject { $subject }
sso-first = 还没有使用密码的管理员，必须先有一个。要打印创建链接，请运行：soloist link
first-title = 创建第一个管理员
first-text = 此链接只能使用一次。现在还没有任何账号；您的账号将是管理员。
first-enter = 创建账号并登录
link-title = 以 { $user } 登录
link-text = 此链接只能使用一次。
password-rule = 至少 { $n } 个字符。

# 账号
both-names = { $shown }（{ $user }）
invite-title = 设置 { $user } 的密码
invite-text = 此链接只能使用一次，48 小时内有效。设好密码后即可登录。
invite-enter = 设置密码并登录
save = 保存
account-title = 我的账号
account-me = 名称
display-name = 显示名
display-name-rule = 显示在用户名旁边，可以用任何文字，最多 64 个字符。
account-password = 密码
account-old = 当前密码
account-new = 新密码
account-password-text = 这里会保持登录，其他地方都会退出登录。API 令牌不受影响，列在下方。
account-password-change = 更改密码
account-old-wrong = 当前密码不对，请重新输入。
account-password-changed = 密码已更改，其他地方都已退出登录。
account-session-ended = 该会话已结束。
account-token-made = 令牌已创建。请立即保存：之后不会再显示。
account-token-revoked = 令牌已吊销。
account-tokens-revoked = 您的令牌已全部吊销。
sessions-title = 已登录的地方
session-from = 地址
session-browser = 浏览器
session-browser-unknown = 未知
session-created = 登录时间
session-seen = 最近活动
session-this = 当前会话
session-end = 退出登录
tokens-title = API 令牌
tokens-text = 持有令牌的程序可以做您能做的一切。不再需要的令牌请吊销。
tokens-revoke-all = 全部吊销
tokens-revoke-all-title = 要吊销您的全部令牌吗？
tokens-revoke-all-text = 此后，使用这些令牌的程序都会被拒绝。
token-name = 用途
token-id = 编号
token-created = 创建时间
token-used = 最近使用
token-unused = 从未使用
token-expires = 到期时间
token-never = 永不到期
token-days = { $n } 天后
token-lasts = 有效期
token-revoke = 吊销
token-make = 创建令牌
people-title = 人员
people-role = 角色
people-role-of = { $user } 的角色
people-role-save = 保存 { $user } 的角色
people-acts = 操作
people-you = 您自己
people-invited = 尚未设置密码
people-reset = 重置密码
people-invite-again = 重发链接
people-remove = 删除
people-add = 添加人员
people-add-text = 添加后会得到一个链接，请发给本人，由本人设置密码。采集器是程序：没有链接，只用令牌。
people-add-yes = 添加
people-name-rule = 1 到 64 个字符，可用 a-z、0-9、“.”、“_”、“-”，以字母或数字开头
people-added = 账号 { $user } 已添加。
people-link = 请把此链接发给 { $user }。链接只能使用一次，48 小时内有效，之后不会再显示：
people-reset-title = 要重置 { $user } 的密码吗？
people-reset-text = 当前密码会立即作废，该账号的所有会话和 API 令牌都会结束。您会得到一个链接，本人用它设置新密码。
people-reset-yes = 重置
people-remove-title = 要删除账号 { $user } 吗？
people-remove-text = 该账号的会话和 API 令牌都会结束。由它开启的任务会关闭，除非还有别人需要。
people-remove-yes = 删除
password-short = 密码太短，至少需要 { $n } 个字符。
password-long = 密码太长，最多 { $n } 字节。
password-weak = 这个密码太容易被猜中。
weak-about-you = 它主要由您的名字或本程序的名称组成。
weak-straight-rows = 键盘上连成一排的按键很容易被猜中。
weak-keyboard = 简短的键盘图案很容易被猜中。
weak-repeats = “aaa”这样的重复很容易被猜中。
weak-repeated-words = “abcabcabc”这样的重复并不比“abc”难猜多少。
weak-common = 它是最常用的密码之一。
weak-similar = 它与最常用的密码相似。
weak-sequences = “abc”、“6543”这样的序列很容易被猜中。
weak-years = 近年的年份很容易被猜中。
weak-one-word = 单独一个词很容易被猜中。
weak-dates = 日期很容易被猜中。
weak-names = 人名很容易被猜中。
better-few-words = 请用几个互不相关的词。
better-no-signs = 不需要符号、数字或大写字母。
better-more-words = 再加一两个词，越少见越好。
better-not-capitals = 大写字母帮助不大。
better-not-reversed = 把词倒过来写帮助不大。
better-not-substituted = 用符号代替字母（如用“@”代替“a”）帮助不大。
better-longer-pattern = 请用更长、转折更多的图案。
better-not-repeated = 避免重复的词和字符。
better-no-sequences = 避免使用序列。
better-no-dates = 避免日期和年份，尤其是与您有关的。

# 错误
away-title = 存储失联
away-text = 本节点连不上存储。登录会话保存在存储里，因此现在无法确认您是谁，也不会向陌生人显示任何任务。存储恢复之前，不能启动任务，也不能开关任务。
away-again = 本页每 3 秒自动重试一次。
error-no-address = 这个地址下没有内容。
error-unauthorized = 请先登录。
error-title-bad-request = 请求有误
error-title-unauthorized = 尚未登录
error-title-forbidden = 没有权限
error-title-not-found = 找不到
error-title-method = 不支持这种操作
error-title-conflict = 情况已有变化
error-title-too-large = 内容太大
error-title-timeout = 太慢了
error-title-misdirected = 主机名不对
error-title-too-many = 操作太频繁
error-title-unavailable = 暂时无法处理
error-title-internal = 内部错误
error-bad-request = 提交的内容有误，请返回修改后重新提交：
error-forbidden = 您没有权限进行此操作：
error-not-found = 您要找的内容不存在，或已被删除：
error-method = 这个地址不支持这种操作：
error-conflict = 相关内容已有变化，请重新查看后再操作：
error-too-large = 一次提交的内容太多：
error-body-slow = 请求内容发送得太慢：请在 { $total } 秒内全部发完，中间停顿不要超过 { $idle } 秒。服务器繁忙时这两个时限会更短，请稍后再试。
error-host = 本服务器不使用 { $host } 这个主机名：请打开 { $url }，或请管理员把该主机名加入配置项 allowed_hosts。
error-too-many = 操作太频繁，请稍候再试：
error-unavailable = 暂时无法处理，请稍后重试：
error-internal = 系统内部出错，请联系 Soloist 的管理员：
error-back = 回到任务列表

# 告警
alert-begin-wanted-not-running = { $title }（{ $job }）应当运行，但自 { $since } 起没有运行。{ $why }
alert-begin-given-up = { $title }（{ $job }）已放弃重试。{ $why }
alert-begin-crash-loop = { $title }（{ $job }）反复崩溃。{ $why }
alert-begin-node-lost = 节点 { $node } 自 { $since } 起没有消息，可能已宕机或断网。其他可用节点会接管它的任务。
alert-begin-store-lost = 节点 { $node } 自 { $since } 起连不上存储，不会启动任何任务，页面内容已过时。请检查存储和网络。
alert-begin-stuck = { $title }（{ $job }）自 { $since } 起没有输出，进度也没有变化。{ $why }
alert-begin-drift = { $title }（{ $job }）在节点 { $node } 上的配置与多数节点不同。请统一各节点的配置。
alert-begin-overdue-claims = 来源 { $source }：有采集器丢失的条目自 { $since } 起一直无人领取。请检查采集器是否在运行。
alert-end-wanted-not-running = 已恢复：{ $title }（{ $job }）。{ $why }
alert-end-given-up = 已恢复：{ $title }（{ $job }）不再处于放弃状态。{ $why }
alert-end-crash-loop = 已恢复：{ $title }（{ $job }）不再连续崩溃。{ $why }
alert-end-node-lost = 已恢复：节点 { $node } 重新上线，或已被移除。
alert-end-store-lost = 已恢复：节点 { $node } 重新连上了存储。
alert-end-stuck = 已恢复：{ $title }（{ $job }）有了新输出，或这次运行已结束。{ $why }
alert-end-drift = 已恢复：{ $title }（{ $job }）在节点 { $node } 上的配置与多数节点一致。
alert-end-overdue-claims = 已恢复：来源 { $source } 中丢失的条目已被领取。
alert-test = 这是 { $user } 发送的通道测试（{ $channel }），一切正常。

# 运行归属
hold-title = 由谁运行
hold-hour = 1 小时
hold-day = 24 小时
hold-week = 7 天
hold-picture = 最近 { $time }由哪些节点运行、哪些人需要它；下方表格内容相同。
hold-nothing = 这段时间没有节点运行它，也没有人需要它。
hold-legend = 无人运行：
hold-table = 以表格查看
hold-what = 内容
hold-from = 开始
hold-to = 结束
hold-lasted = 时长
hold-note = 情况
hold-more = 另有 { $n } 条更早的记录未在此显示，可通过 GET /api/v1/jobs/{ $job }/timeline 查看。
hold-wanted = { $user } 需要
hold-forbade = { $user } 禁止
hold-by = { $node } 运行
hold-nobody = 无人运行
hold-takeover = { $node } 在 { $ms }内从 { $before } 接管
hold-took = { $ms }内从 { $before } 接管
hold-now = 现在
hold-runs = { $n } 次运行
hold-failed = { $n } 次失败
hold-crashed = 崩溃
hold-minutes-ago = { $n } 分钟前
hold-hours-ago = { $n } 小时前
hold-days-ago = { $n } 天前
hold-failing = 异常结束
gap-off = 已关闭
gap-held = 被禁止
gap-resting = 两次运行之间休息
gap-backing-off = 崩溃后等待
gap-taking-over = 接管中
gap-waiting = 等待节点
gap-unknown = 当时是否有人需要未知
strip-label = 最近一小时：{ $nodes }
strip-node = { $node } { $time }
strip-nobody = 最近一小时：无人运行
runs-share = { $time }内 { $n } 次运行，成功率 { $percent }%
runs-picture = 这些运行的结果，从旧到新；越高表示时间越长
runs-older = 更早的运行
runs-newer = 更近的运行
runs-no-older = 没有更早的运行了。
alerts-title = 告警
alerts-as-of = 截至 { $at }。
alerts-again = 重新查看
alerts-sender = 由 { $name } 发送
alerts-no-sender = 目前没有节点负责发送
alerts-begin-title = 尚未设置任何告警
alerts-begin-text = 把要关注的情况和通知方式写进每个节点的配置文件：
alerts-begin-then = 然后向各节点发送 SIGHUP 或重启，再在本页测试通道。可以关注的情况都列在 docs/alerts.md 中。
alerts-on = 当前告警
alerts-on-none = 目前没有告警。
alerts-what = 内容
alerts-since = 开始于
alerts-told-to = 通知
alerts-told = { $channel } 已于 { $at } 通知
alerts-not-told = { $channel } 尚未通知
alerts-muted-until = 静音至 { $until }
alerts-why = 为什么？
alerts-rules = 规则
alerts-rules-none = 配置中有通道，但没有 [[alert]]。
alerts-rule = { $what }，持续 { $for }后通知。
alerts-rule-at-once = { $what }，立即通知。
alerts-rule-jobs = { $what }，持续 { $for }后通知。仅限 { $jobs }。
alerts-to = 通知 { $name }
alert-when-wanted-not-running = 应当运行的任务没有运行
alert-when-given-up = 任务已放弃重试
alert-when-crash-loop = 任务反复崩溃
alert-when-node-lost = 节点没有消息
alert-when-store-lost = 节点连不上存储
alert-when-stuck = 运行既没有输出也没有进展
alert-when-drift = 某个节点的任务配置与多数节点不同
alert-when-overdue-claims = 采集器丢失的条目无人领取
alerts-mute = 静音…
alerts-mute-of = 静音… { $name }
alerts-mute-for = 时长
alerts-mute-hour = 1 小时
alerts-mute-shift = 8 小时
alerts-mute-morning = 到明天 08:00
alerts-mute-until = 或直到（{ $name }）
alerts-mute-reason = 原因
alerts-mute-yes = 静音
alerts-unmute = 取消静音
alerts-unmute-of = 取消静音：{ $name }
alerts-until-wrong = 请选择一个将来的时间。
alerts-lasting-wrong = 请选择静音多久。
alerts-channels = 通道
alerts-channels-none = 配置中没有通道。
alerts-channel-took = { $at } 成功送达一条消息。
alerts-channel-failed = { $at } 的消息没有送达：{ $error }
alerts-channel-idle = 还没有通过它发送过消息。
alerts-test = 测试…
alerts-test-of = 测试… { $name }
alerts-test-title = 通过 { $name } 发送一条测试消息？
alerts-test-text = 这个通道（{ $kind }）背后的每个人都会收到一条中英文消息，说明这是测试以及由谁发送。消息由本节点发出。
alerts-test-yes = 发送
alerts-test-took = { $name } 已接收测试消息，返回：{ $said }
alerts-test-failed = { $name } 没有接收测试消息：{ $said }
alerts-past = 历史告警
alerts-past-none = 没有历史告警记录。
alerts-over = 结束于
alerts-lasted = 持续
alerts-store-lost = 显示最近 50 条，共保留 200 条。“节点连不上存储”只由该节点自己通知，不在这里保留。

told-participation-on = { $who } 打开了 { $target }
told-participation-off = { $who } 关闭了 { $target }
told-job-hold = { $who } 禁止了 { $target }
told-job-resume = { $who } 恢复了 { $target }
told-job-move = { $who } 转移了 { $target }
told-job-drill = { $who } 为演练结束了 { $target } 的持有节点进程
told-node-drain = { $who } 腾空了节点 { $target }
told-node-undrain = { $who } 结束了节点 { $target } 的腾空
told-node-forget = { $who } 移除了节点 { $target }
told-alert-mute = { $who } 静音了告警 { $target }
told-alert-unmute = { $who } 取消了告警 { $target } 的静音
told-channel-test = { $who } 测试了通道 { $target }
told-source-put = { $who } 定义了来源 { $target }
told-source-pause = { $who } 暂停了来源 { $target }
told-source-resume = { $who } 恢复了来源 { $target }
told-source-block = { $who } 阻止了来源 { $target }
told-source-unblock = { $who } 解除了来源 { $target } 的阻止
told-source-revive = { $who } 重新启用了来源 { $target } 的死信
told-source-remove = { $who } 移除了来源 { $target }
told-task-revive = { $who } 重新启用了工作项 { $target }
told-task-remove = { $who } 移除了工作项 { $target }
told-rotation-remove = { $who } 移除了轮转 { $target }
told-rotation-put = { $who } 定义了轮转 { $target }
told-login = { $who } 登录了
told-login-failed = { $who } 登录失败
told-login-throttled = { $who } 登录被限制：尝试次数过多
told-refused-right = { $who } 无权操作：{ $target }
told-refused-forgery = 以 { $who } 名义的请求并非来自本站页面：{ $target }
told-refused-token = { $who } 使用了无效的令牌：{ $target }
told-refused-more = 另有被拒绝的请求，数量过多，未逐条记录
told-logout = { $who } 退出了登录
told-user-add = { $who } 添加了账号 { $target }
told-user-role = { $who } 更改了 { $target } 的角色
told-user-passwd = { $who } 更改了 { $target } 的密码
told-user-passwd-own = { $who } 更改了自己的密码
told-user-passwd-failed = { $who } 输错了原密码
told-user-reset = { $who } 作废了 { $target } 的密码
told-user-display = { $who } 更改了 { $target } 的显示名
told-user-remove = { $who } 删除了账号 { $target }
told-session-end = { $who } 结束了 { $target } 的一个会话
told-token-new = { $who } 为 { $target } 创建了 API 令牌
told-token-revoke = { $who } 吊销了 { $target } 的一个 API 令牌
told-user-link = { $who } 为 { $target } 关联了单点登录身份
told-link-new = { $who } 为 { $target } 创建了登录链接
told-user-invite = { $who } 为 { $target } 创建了设置密码的链接
told-unknown = { $who } 对 { $target } 执行了 { $act }
told-why = ：“{ $reason }”
told-as-role = 角色为{ $role }
told-first-admin = 作为第一个管理员
told-to-node = 到 { $node }
told-drill-of = { $node }，令牌 { $token }
told-for-time = 时长 { $time }
told-of-source = 来源 { $source }
told-tasks = 共 { $n } 项
told-tasks-lost = 连同 { $n } 项工作，其中 { $flight } 项正在处理
told-turn-lost = 当时轮到 { $worker }，另有 { $n } 个在等待
told-turn-free = 当时没有人占用，{ $n } 个在等待
told-by-link = 通过一次性链接
told-nobody = 不再关联任何身份
told-rules-now = 现在：{ $rules }
told-rules-before = 之前：{ $rules }
told-rules-same = 没有变化
told-rule-paused = 已暂停
told-rule-order = 顺序：{ $types }
told-rule-backoff = 重试间隔 { $first } 到 { $most }
audit-since = 从
audit-until = 到
audit-what = 内容
told-role-viewer = 访客
told-role-operator = 操作员
told-role-admin = 管理员
told-role-collector = 采集器

node-address = 地址
node-load = 负载
node-load-of = { $load }（{ $n } 核）
node-memory = 内存
node-memory-of = 可用 { $free } / { $all } GiB
node-clock = 时钟
node-clock-right = 与存储一致
node-clock-ahead = 比存储快 { $by }
node-clock-behind = 比存储慢 { $by }
node-drift = 配置不同
node-held-now = 曾运行 { $job }，直到 { $until }；现在在 { $node }。
node-held-then = 曾运行 { $job }，直到 { $until }；随后由 { $node } 接手。
drain-goes = { $n } 个任务预计转到 { $node }：{ $jobs }。
drain-nowhere = { $jobs } 无处可去：没有其他可用节点可以运行。它会停止，直到腾空结束或有其他节点可以运行。
drain-nothing = 它目前没有运行任何任务。

# 墙上大屏、API、浏览器通知、首次使用
wall-title = 大屏
api-title = API
api-document = 供程序读取的文档（OpenAPI）
notices-title = 此浏览器的通知
notices-text = 当某个任务开始需要有人处理、而任务列表页面在后台打开时，此浏览器会通知您。首次打开时浏览器会请求许可；该选择保存在此浏览器中，只对此账号有效。
notices-switch = 通知我
notices-needs-you = 需要您处理
begin-link = 运行 soloist serve 的终端里打印过一个链接，只能使用一次，30 分钟内有效。请在此浏览器中打开它。
begin-again = 找不到或已过期？在节点所在的机器上，用同一个 soloist.toml 运行这条命令，会再打印一个：
begin-name = 链接会要求填写用户名（可用 a-z、0-9、“.”、“_”、“-”，以字母或数字开头）和至少十个字符的密码。没有默认密码。
begin-switch = 之后您就是管理员。打开第一个任务的开关，看它运行。
failover-title = 演示故障切换
failover-text = 有意杀死持有任务的节点，由另一个节点接着运行。您会看到本页失去一个节点，任务换了地方。
failover-second = 在这台机器的另一个终端里启动第二个节点。
failover-elsewhere = 给它一个 soloist.toml，使用相同的存储和相同的任务，并取一个自己的名字。
failover-several = 这里已经有不止一个节点在运行。
failover-on = 打开一个任务的开关，等它运行起来。
failover-kill = 杀死持有它的节点，效果与 kill -9 相同。只有在服务管理器负责启动时，它才会自己回来。
failover-watch = 请看：页面顶部会写出由谁接管、用了多少毫秒。如果被杀死的正是显示本页的节点，请在另一个节点上打开页面。
