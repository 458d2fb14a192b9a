//! The names of all acts: the codes in the audit, and their messages for people.

macro_rules! acts {
    ($($name:ident, $code:literal, $message:literal, $told:literal;)*) => {
        /// What was done.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Act {
            $(#[doc = concat!("`", $code, "`.")] $name,)*
        }

        impl Act {
            /// Every act.
            pub const ALL: &[Self] = &[$(Self::$name),*];

            /// As in the audit.
            #[must_use]
            pub fn code(self) -> &'static str {
                match self {
                    $(Self::$name => $code,)*
                }
            }

            /// The message that says it to people.
            #[must_use]
            pub fn message(self) -> &'static str {
                match self {
                    $(Self::$name => $message,)*
                }
            }

            /// The message that says who did it to what: `$who`, `$target`.
            #[must_use]
            pub fn told(self) -> &'static str {
                match self {
                    $(Self::$name => $told,)*
                }
            }

            /// The act of that code; `None` for one that this version does not know.
            #[must_use]
            pub fn of_code(code: &str) -> Option<Self> {
                match code {
                    $($code => Some(Self::$name),)*
                    _ => None,
                }
            }
        }
    };
}

acts! {
    ParticipationOn, "participation.on", "did-participation-on", "told-participation-on";
    ParticipationOff, "participation.off", "did-participation-off", "told-participation-off";
    JobHold, "job.hold", "did-job-hold", "told-job-hold";
    JobResume, "job.resume", "did-job-resume", "told-job-resume";
    JobMove, "job.move", "did-job-move", "told-job-move";
    JobDrill, "job.drill", "did-job-drill", "told-job-drill";
    JobRun, "job.run", "did-job-run", "told-job-run";
    JobRunTakenBack, "job.run.take_back", "did-job-run-taken-back", "told-job-run-taken-back";
    JobTakenReset, "job.taken.reset", "did-job-taken-reset", "told-job-taken-reset";
    NodeDrain, "node.drain", "did-node-drain", "told-node-drain";
    NodeUndrain, "node.undrain", "did-node-undrain", "told-node-undrain";
    NodeForget, "node.forget", "did-node-forget", "told-node-forget";
    AlertMute, "alert.mute", "did-alert-mute", "told-alert-mute";
    AlertUnmute, "alert.unmute", "did-alert-unmute", "told-alert-unmute";
    ChannelTest, "channel.test", "did-channel-test", "told-channel-test";
    SourcePut, "source.put", "did-source-put", "told-source-put";
    SourcePause, "source.pause", "did-source-pause", "told-source-pause";
    SourceResume, "source.resume", "did-source-resume", "told-source-resume";
    SourceBlock, "source.block", "did-source-block", "told-source-block";
    SourceUnblock, "source.unblock", "did-source-unblock", "told-source-unblock";
    SourceRevive, "source.revive", "did-source-revive", "told-source-revive";
    SourceRemove, "source.remove", "did-source-remove", "told-source-remove";
    TaskRevive, "task.revive", "did-task-revive", "told-task-revive";
    TaskRemove, "task.remove", "did-task-remove", "told-task-remove";
    RotationRemove, "rotation.remove", "did-rotation-remove", "told-rotation-remove";
    RotationPut, "rotation.put", "did-rotation-put", "told-rotation-put";
    Login, "login", "did-login", "told-login";
    LoginFailed, "login.failed", "did-login-failed", "told-login-failed";
    LoginThrottled, "login.throttled", "did-login-throttled", "told-login-throttled";
    RefusedRight, "refused.right", "did-refused-right", "told-refused-right";
    RefusedForgery, "refused.forgery", "did-refused-forgery", "told-refused-forgery";
    RefusedToken, "refused.token", "did-refused-token", "told-refused-token";
    RefusedMore, "refused.more", "did-refused-more", "told-refused-more";
    Logout, "logout", "did-logout", "told-logout";
    UserAdd, "user.add", "did-user-add", "told-user-add";
    UserRole, "user.role", "did-user-role", "told-user-role";
    UserPasswd, "user.passwd", "did-user-passwd", "told-user-passwd";
    UserPasswdOwn, "user.passwd.own", "did-user-passwd-own", "told-user-passwd-own";
    UserPasswdFailed, "user.passwd.failed", "did-user-passwd-failed", "told-user-passwd-failed";
    UserReset, "user.reset", "did-user-reset", "told-user-reset";
    UserDisplay, "user.display", "did-user-display", "told-user-display";
    UserRemove, "user.remove", "did-user-remove", "told-user-remove";
    SessionEnd, "session.end", "did-session-end", "told-session-end";
    SessionEndAll, "session.end.all", "did-session-end-all", "told-session-end-all";
    TokenNew, "token.new", "did-token-new", "told-token-new";
    TokenRevoke, "token.revoke", "did-token-revoke", "told-token-revoke";
    UserLink, "user.link", "did-user-link", "told-user-link";
    LinkNew, "link.new", "did-link-new", "told-link-new";
    Invite, "user.invite", "did-user-invite", "told-user-invite";
    StoreCopy, "store.copy", "did-store-copy", "told-store-copy";
    InviteWithdraw, "user.invite.withdraw", "did-user-uninvite", "told-user-uninvite";
}
