//! The names of all acts: the codes that stand in the audit, and the messages that say them to people.

macro_rules! acts {
    ($($name:ident, $code:literal, $message:literal;)*) => {
        /// What was done.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Act {
            $(#[doc = concat!("`", $code, "`.")] $name,)*
        }

        impl Act {
            /// Every act.
            pub const ALL: &[Self] = &[$(Self::$name),*];

            /// As it stands in the audit.
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
    ParticipationOn, "participation.on", "did-participation-on";
    ParticipationOff, "participation.off", "did-participation-off";
    JobHold, "job.hold", "did-job-hold";
    JobResume, "job.resume", "did-job-resume";
    JobMove, "job.move", "did-job-move";
    JobDrill, "job.drill", "did-job-drill";
    NodeDrain, "node.drain", "did-node-drain";
    NodeUndrain, "node.undrain", "did-node-undrain";
    NodeForget, "node.forget", "did-node-forget";
    AlertMute, "alert.mute", "did-alert-mute";
    AlertUnmute, "alert.unmute", "did-alert-unmute";
    ChannelTest, "channel.test", "did-channel-test";
    SourcePut, "source.put", "did-source-put";
    SourcePause, "source.pause", "did-source-pause";
    SourceResume, "source.resume", "did-source-resume";
    SourceBlock, "source.block", "did-source-block";
    SourceUnblock, "source.unblock", "did-source-unblock";
    SourceRevive, "source.revive", "did-source-revive";
    SourceRemove, "source.remove", "did-source-remove";
    TaskRevive, "task.revive", "did-task-revive";
    TaskRemove, "task.remove", "did-task-remove";
    RotationRemove, "rotation.remove", "did-rotation-remove";
    RotationPut, "rotation.put", "did-rotation-put";
    Login, "login", "did-login";
    LoginFailed, "login.failed", "did-login-failed";
    LoginThrottled, "login.throttled", "did-login-throttled";
    RefusedRight, "refused.right", "did-refused-right";
    RefusedForgery, "refused.forgery", "did-refused-forgery";
    RefusedToken, "refused.token", "did-refused-token";
    RefusedMore, "refused.more", "did-refused-more";
    Logout, "logout", "did-logout";
    UserAdd, "user.add", "did-user-add";
    UserRole, "user.role", "did-user-role";
    UserPasswd, "user.passwd", "did-user-passwd";
    UserPasswdOwn, "user.passwd.own", "did-user-passwd-own";
    UserPasswdFailed, "user.passwd.failed", "did-user-passwd-failed";
    UserReset, "user.reset", "did-user-reset";
    UserDisplay, "user.display", "did-user-display";
    UserRemove, "user.remove", "did-user-remove";
    SessionEnd, "session.end", "did-session-end";
    TokenNew, "token.new", "did-token-new";
    TokenRevoke, "token.revoke", "did-token-revoke";
    UserLink, "user.link", "did-user-link";
    LinkNew, "link.new", "did-link-new";
    Invite, "user.invite", "did-user-invite";
}
