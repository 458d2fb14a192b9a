//! The nursery: a process between a node and its guards that does nothing but copy itself.
//!
//! Starting this program anew for each run costs milliseconds of loading and linking, at the very moment in which a job
//! waits for its node. The nursery is started once, has one thread, opens nothing, and forks as many guards as the node orders:
//! each copy is a child of the *node* (CLONE_PARENT), has a socket and two pipes whose other ends go to the node, has its
//! init ready, and waits for a plan. From then on it is a guard like any other.
//!
//! The session of a guard without a plan is the nursery's: by that the node tells it from an orphan.
//!
//! It ends when its node does, and its guards without a plan with it. The agent ([`Agent`]) runs beside it.

use std::io::IoSlice;
use std::os::fd::{AsRawFd, OwnedFd};

use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::sys::socket::{
    AddressFamily, ControlMessage, MsgFlags, SockFlag, SockType, sendmsg, socketpair,
};
use nix::unistd::{Pid, dup2_stderr, dup2_stdin, dup2_stdout, pipe2};

use super::begin::planned;
use super::init::Init;
use super::kernel;
use super::message::{LARGEST_ORDER, Nursing, Offer, Plan, Wanted};
use super::release::Agent;
use super::socket::{Heard, receive};
use super::title::Title;
use super::watch::{AFTER_THE_OTHERS, NotStarted, guard};
use soloist_domain::containment::Containment;
use soloist_store::Opener;

/// Serves one node until that is gone.
pub(super) fn nurse(open: Opener) -> Result<(), NotStarted> {
    let Heard::Message(nursing) = receive::<Nursing>(LARGEST_ORDER) else {
        return Err(NotStarted::NoNode);
    };
    let title = Title::find();
    say(title, &format!("soloist nursery of {}", nursing.node));
    nix::unistd::setsid().ok();
    let mut agent = None;
    loop {
        if agent.as_ref().is_none_or(Agent::has_ended) {
            agent = Agent::start(&nursing, open, || {
                say(title, &format!("soloist release agent of {}", nursing.node));
            });
        }
        match receive::<Wanted>(LARGEST_ORDER) {
            Heard::Message(Wanted { guards }) => {
                for _ in 0..guards {
                    offer_one(&nursing, open, agent.as_ref(), title)?;
                }
            }
            // The agent sees the end of its guards, and then goes too.
            Heard::NodeGone => {
                std::thread::sleep(AFTER_THE_OTHERS);
                return Ok(());
            }
        }
    }
}

/// Makes one guard and tells the node of it.
fn offer_one(
    nursing: &Nursing,
    open: Opener,
    agent: Option<&Agent>,
    title: Option<Title>,
) -> Result<(), NotStarted> {
    let flags = SockFlag::SOCK_CLOEXEC;
    let (nodes, own) = socketpair(AddressFamily::Unix, SockType::SeqPacket, None, flags)?;
    let (output, its_output) = pipe2(OFlag::O_CLOEXEC)?;
    let (errors, its_errors) = pipe2(OFlag::O_CLOEXEC)?;
    let Some(pid) = kernel::fork_sibling()? else {
        let code = match wait_warm(nursing, open, agent, title, [own, its_output, its_errors]) {
            Ok(()) => 0,
            Err(_) => 2,
        };
        std::process::exit(code);
    };
    send_offer(pid, &[nodes, output, errors])?;
    Ok(())
}

fn send_offer(pid: Pid, ends: &[OwnedFd; 3]) -> Result<(), Errno> {
    let text = serde_json::to_vec(&Offer { pid: pid.as_raw() }).map_err(|_| Errno::EINVAL)?;
    let ends = ends.each_ref().map(AsRawFd::as_raw_fd);
    let (parts, control) = ([IoSlice::new(&text)], [ControlMessage::ScmRights(&ends)]);
    let line = std::io::stdin().as_raw_fd();
    sendmsg::<()>(line, &parts, &control, MsgFlags::MSG_NOSIGNAL, None).map(drop)
}

/// What a guard does from its fork on. It never returns to what the nursery was about to do.
fn wait_warm(
    nursing: &Nursing,
    open: Opener,
    agent: Option<&Agent>,
    title: Option<Title>,
    [socket, output, errors]: [OwnedFd; 3],
) -> Result<(), NotStarted> {
    dup2_stdin(&socket)?;
    dup2_stdout(&output)?;
    dup2_stderr(&errors)?;
    // Nothing of the nursery's stays open, its line to the node least of all.
    std::mem::forget([socket, output, errors]);
    kernel::close_all_but(agent.map(Agent::line))?;
    say(title, &format!("soloist guard of {}, without a plan", nursing.node));
    let ready = match planned(&nursing.containment) {
        // Without one it is tried again, and explained, when there is a plan.
        Containment::PidNamespace => Init::make().ok(),
        Containment::Cgroup | Containment::Subreaper => None,
    };
    let introduce = |plan: &Plan| say(title, &format!("soloist guard of {}", plan.job));
    guard(open, ready, agent, introduce)
}

fn say(title: Option<Title>, words: &str) {
    if let Some(title) = title {
        title.say(words);
    }
}
