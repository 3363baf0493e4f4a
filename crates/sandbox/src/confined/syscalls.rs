//! System calls by seccomp: two filters, of which the kernel obeys the stricter.
//!
//! The first refuses, with EPERM so that programs can tell, what no tool needs and what namespaces alone have let through
//! before: tracing, mounting, namespaces, keys, kernel modules, sockets of kinds that aren't confined by a network namespace. So is
//! setting a set-user-ID or set-group-ID bit: such a file would outlive the sandbox.
//! The second knows the calls that existed when this was written and answers ENOSYS to all others, x86's second numbering (x32)
//! among them.

use std::collections::BTreeMap;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen::Dword, SeccompCmpArgLen::Qword, SeccompCmpOp, SeccompCondition,
    SeccompFilter, SeccompRule, TargetArch,
};

/// The last system call that this program knows: `file_setattr` of Linux 6.17. The numbers above 423 are the same everywhere.
const LAST: i64 = 469;

/// Refused whatever the arguments.
const REFUSED: &[i64] = &[
    // Looking into other processes.
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    libc::SYS_kcmp,
    libc::SYS_pidfd_getfd,
    libc::SYS_perf_event_open,
    // The tree of files itself.
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_open_tree,
    libc::SYS_move_mount,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    OPEN_TREE_ATTR,
    libc::SYS_open_by_handle_at,
    libc::SYS_name_to_handle_at,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_quotactl,
    libc::SYS_quotactl_fd,
    libc::SYS_fanotify_init,
    libc::SYS_acct,
    // Other namespaces.
    libc::SYS_setns,
    // Parts of the kernel with a long history of holes, which tools don't need.
    libc::SYS_bpf,
    libc::SYS_userfaultfd,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_keyctl,
    libc::SYS_vhangup,
    libc::SYS_nfsservctl,
    // The machine.
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    KEXEC_FILE_LOAD,
    libc::SYS_reboot,
    libc::SYS_syslog,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_clock_adjtime,
    libc::SYS_adjtimex,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_iopl,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_ioperm,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_modify_ldt,
];
/// The same number on all architectures (Linux 6.15); `libc` doesn't have it yet.
const OPEN_TREE_ATTR: i64 = 467;
/// `libc` has it for some architectures only.
const KEXEC_FILE_LOAD: i64 = if cfg!(target_arch = "x86_64") { 320 } else { 294 };
/// A cgroup and a time namespace; the others stand with `clone`.
const NAMESPACES: [i32; 8] = [
    libc::CLONE_NEWNS,
    libc::CLONE_NEWCGROUP,
    libc::CLONE_NEWUTS,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWNET,
    CLONE_NEWTIME,
];
/// Only for `unshare`: for `clone` the bit is part of the signal that tells of a child's end.
const CLONE_NEWTIME: i32 = 0x80;
/// The old way to raw packets, whatever the family.
const SOCK_PACKET: u64 = 10;
/// What is left of a socket's type without its flags.
const TYPE_MASK: u64 = 0xf;
/// Calls that give a file its mode, with the place of the mode among their arguments.
const MODE_CALLS: &[(i64, u8)] = &[
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_chmod, 1),
    (libc::SYS_fchmod, 1),
    (libc::SYS_fchmodat, 2),
    (FCHMODAT2, 2),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_creat, 1),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_mknod, 1),
    (libc::SYS_mknodat, 2),
];
/// Calls that look at a mode only where they make a file, with the places of their flags and of the mode.
const OPENING_CALLS: &[(i64, u8, u8)] = &[
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_open, 1, 2),
    (libc::SYS_openat, 2, 3),
];
/// The same number on all architectures (Linux 6.6); `libc` has it for some only.
const FCHMODAT2: i64 = 452;
/// Bits of a mode by which a program runs as the file's owner or group, whoever starts it. The file outlives the sandbox.
const SET_ID_BITS: [u64; 2] = [libc::S_ISUID as u64, libc::S_ISGID as u64];
/// Flags under which an opening call makes a file; of `O_TMPFILE` the bit that nothing else has.
const MAKING_FLAGS: [u64; 2] = [libc::O_CREAT as u64, (libc::O_TMPFILE & !libc::O_DIRECTORY) as u64];
/// Calls whose flags lie in memory, where no filter sees them. Libraries then call `clone` and `openat`, as on older kernels.
const OPAQUE: [i64; 2] = [libc::SYS_clone3, libc::SYS_openat2];
/// Typing into the terminal: `TIOCSTI` and the console's `TIOCLINUX`.
const TYPING: [u64; 2] = [0x5412, 0x541c];

/// Restricts this process and all that it becomes and starts.
pub(super) fn restrict() -> Result<(), seccompiler::Error> {
    for filter in [refusing()?, knowing()?] {
        seccompiler::apply_filter(&filter)?;
    }
    Ok(())
}

/// What is refused answers EPERM; all else is the second filter's.
fn refusing() -> Result<BpfProgram, seccompiler::Error> {
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> = REFUSED.iter().map(|call| (*call, Vec::new())).collect();
    let has = |flag: &i32| rule(vec![flags(0, *flag as u64, *flag as u64)?]);
    rules.insert(libc::SYS_unshare, NAMESPACES.iter().map(has).collect::<Result<_, _>>()?);
    let of_clone = NAMESPACES.iter().filter(|flag| **flag != CLONE_NEWTIME).map(has);
    rules.insert(libc::SYS_clone, of_clone.collect::<Result<_, _>>()?);
    let typing = TYPING.iter().map(|request| rule(vec![is(1, *request)?]));
    rules.insert(libc::SYS_ioctl, typing.collect::<Result<_, _>>()?);
    rules.insert(libc::SYS_socket, sockets()?);
    // A pair is connected with itself, but for datagrams, which can be turned to whoever listens on a path.
    let datagrams = [libc::SOCK_DGRAM, libc::SOCK_RAW].map(|kind| rule(vec![flags(1, TYPE_MASK, kind as u64)?]));
    rules.insert(libc::SYS_socketpair, datagrams.into_iter().collect::<Result<_, _>>()?);
    for (call, mode) in MODE_CALLS {
        let sets = |bit: &u64| rule(vec![flags(*mode, *bit, *bit)?]);
        rules.insert(*call, SET_ID_BITS.iter().map(sets).collect::<Result<_, _>>()?);
    }
    for (call, flag, mode) in OPENING_CALLS {
        let makes = MAKING_FLAGS.iter().flat_map(|making| SET_ID_BITS.iter().map(move |bit| (making, bit)));
        let makes = makes.map(|(making, bit)| rule(vec![flags(*flag, *making, *making)?, flags(*mode, *bit, *bit)?]));
        rules.insert(*call, makes.collect::<Result<_, _>>()?);
    }
    compile(rules, SeccompAction::Allow, SeccompAction::Errno(libc::EPERM as u32))
}

/// IP over the sandbox's own network, and asking the kernel for its addresses. Not Unix sockets: daemons listen on those, and
/// no namespace keeps a program from a path that it can read.
fn sockets() -> Result<Vec<SeccompRule>, seccompiler::Error> {
    let isnt = |family: i32| compare(0, Dword, SeccompCmpOp::Ne, family as u64);
    Ok(vec![
        rule(vec![isnt(libc::AF_INET)?, isnt(libc::AF_INET6)?, isnt(libc::AF_NETLINK)?])?,
        rule(vec![is(0, libc::AF_NETLINK as u64)?, compare(2, Dword, SeccompCmpOp::Ne, libc::NETLINK_ROUTE as u64)?])?,
        rule(vec![isnt(libc::AF_NETLINK)?, flags(1, TYPE_MASK, libc::SOCK_RAW as u64)?])?,
        rule(vec![isnt(libc::AF_NETLINK)?, flags(1, TYPE_MASK, SOCK_PACKET)?])?,
    ])
}

/// What isn't known answers ENOSYS, as an older kernel would, and so does what can't be looked into.
fn knowing() -> Result<BpfProgram, seccompiler::Error> {
    let known = (0..=LAST).filter(|call| !OPAQUE.contains(call)).map(|call| (call, Vec::new()));
    compile(known.collect(), SeccompAction::Errno(libc::ENOSYS as u32), SeccompAction::Allow)
}

fn compile(
    rules: BTreeMap<i64, Vec<SeccompRule>>,
    otherwise: SeccompAction,
    matched: SeccompAction,
) -> Result<BpfProgram, seccompiler::Error> {
    let arch = TargetArch::try_from(std::env::consts::ARCH)?;
    Ok(SeccompFilter::new(rules, otherwise, matched, arch)?.try_into()?)
}

fn rule(conditions: Vec<SeccompCondition>) -> Result<SeccompRule, seccompiler::Error> {
    Ok(SeccompRule::new(conditions)?)
}

/// The kernel looks at the lower half of such arguments, so a filter must, too.
fn is(argument: u8, value: u64) -> Result<SeccompCondition, seccompiler::Error> {
    compare(argument, Dword, SeccompCmpOp::Eq, value)
}

fn flags(argument: u8, mask: u64, value: u64) -> Result<SeccompCondition, seccompiler::Error> {
    compare(argument, if argument == 0 { Qword } else { Dword }, SeccompCmpOp::MaskedEq(mask), value)
}

fn compare(
    argument: u8,
    length: seccompiler::SeccompCmpArgLen,
    operator: SeccompCmpOp,
    value: u64,
) -> Result<SeccompCondition, seccompiler::Error> {
    Ok(SeccompCondition::new(argument, length, operator, value)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_filters_fit_the_kernels_bound_and_differ() {
        let (refusing, knowing) = (refusing().unwrap(), knowing().unwrap());
        assert!(refusing.len() < 4096 && knowing.len() < 4096, "{} and {}", refusing.len(), knowing.len());
        assert!(!refusing.is_empty() && refusing != knowing);
    }
}
