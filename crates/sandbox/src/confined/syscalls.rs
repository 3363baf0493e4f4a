//! System call rules by seccomp: two filters, of which the kernel obeys the stricter.
//!
//! The first filter answers EPERM, so that programs can report it, to dangerous calls that tools don't need: tracing,
//! mounting, namespaces, keys, kernel modules, and socket kinds outside a network namespace's control. Setting a
//! set-user-ID or set-group-ID bit is refused too, because such a file would outlive the sandbox. The second filter
//! knows the calls that existed at the time of writing and answers ENOSYS to all others, including x86's second
//! numbering (x32).

use std::collections::BTreeMap;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen::Dword, SeccompCmpArgLen::Qword, SeccompCmpOp, SeccompCondition,
    SeccompFilter, SeccompRule, TargetArch,
};

/// The last known system call: `file_setattr` of Linux 6.17. Numbers above 423 are the same on all architectures.
const LAST: i64 = 469;

/// Calls refused for all arguments.
const REFUSED: &[i64] = &[
    // Access to other processes.
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    libc::SYS_kcmp,
    libc::SYS_pidfd_getfd,
    libc::SYS_perf_event_open,
    // Changes to the mount tree.
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
    // Parts of the kernel with a long history of vulnerabilities, not needed by tools.
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
/// The number is the same on all architectures (Linux 6.15); `libc` lacks it.
const OPEN_TREE_ATTR: i64 = 467;
/// `libc` has this number for some architectures only.
const KEXEC_FILE_LOAD: i64 = if cfg!(target_arch = "x86_64") { 320 } else { 294 };
/// The namespace flags of `clone` and `unshare`.
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
/// Valid only for `unshare`; in `clone` the bit belongs to the exit signal.
const CLONE_NEWTIME: i32 = 0x80;
/// The old socket type for raw packets, in any family.
const SOCK_PACKET: u64 = 10;
/// Masks the flags out of a socket's type.
const TYPE_MASK: u64 = 0xf;
/// Calls that set a file's mode, with the position of the mode argument.
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
/// Calls that use a mode only when they create a file, with the positions of flags and mode.
const OPENING_CALLS: &[(i64, u8, u8)] = &[
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_open, 1, 2),
    (libc::SYS_openat, 2, 3),
];
/// The number is the same on all architectures (Linux 6.6); `libc` has it for some only.
const FCHMODAT2: i64 = 452;
/// Mode bits that run a program as the file's owner or group. Such a file would outlive the sandbox.
const SET_ID_BITS: [u64; 2] = [libc::S_ISUID as u64, libc::S_ISGID as u64];
/// Flags with which an opening call creates a file; of `O_TMPFILE` only its unique bit.
const MAKING_FLAGS: [u64; 2] = [libc::O_CREAT as u64, (libc::O_TMPFILE & !libc::O_DIRECTORY) as u64];
/// Calls with flags in memory, invisible to filters. Libraries fall back to `clone` and `openat`, as on older kernels.
const OPAQUE: [i64; 2] = [libc::SYS_clone3, libc::SYS_openat2];
/// Ioctls that inject input into the terminal: `TIOCSTI` and the console's `TIOCLINUX`.
const TYPING: [u64; 2] = [0x5412, 0x541c];

/// Restricts this process, every program that it executes, and all its children.
pub(super) fn restrict() -> Result<(), seccompiler::Error> {
    for filter in [build_refusal_filter()?, build_enosys_filter()?] {
        seccompiler::apply_filter(&filter)?;
    }
    Ok(())
}

/// Builds the filter that refuses dangerous calls with EPERM and allows all others.
fn build_refusal_filter() -> Result<BpfProgram, seccompiler::Error> {
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> = REFUSED.iter().map(|call| (*call, Vec::new())).collect();
    let refuse_flag = |flag: &i32| build_rule(vec![match_flags(0, *flag as u64, *flag as u64)?]);
    rules.insert(libc::SYS_unshare, NAMESPACES.iter().map(refuse_flag).collect::<Result<_, _>>()?);
    let clone_rules = NAMESPACES.iter().filter(|flag| **flag != CLONE_NEWTIME).map(refuse_flag);
    rules.insert(libc::SYS_clone, clone_rules.collect::<Result<_, _>>()?);
    let ioctl_rules = TYPING.iter().map(|request| build_rule(vec![match_value(1, *request)?]));
    rules.insert(libc::SYS_ioctl, ioctl_rules.collect::<Result<_, _>>()?);
    rules.insert(libc::SYS_socket, build_socket_rules()?);
    // The ends of a socket pair are connected to each other, but a datagram socket can be redirected to a listener on a path.
    let datagrams =
        [libc::SOCK_DGRAM, libc::SOCK_RAW].map(|kind| build_rule(vec![match_flags(1, TYPE_MASK, kind as u64)?]));
    rules.insert(libc::SYS_socketpair, datagrams.into_iter().collect::<Result<_, _>>()?);
    for (call, mode) in MODE_CALLS {
        let refuse_bit = |bit: &u64| build_rule(vec![match_flags(*mode, *bit, *bit)?]);
        rules.insert(*call, SET_ID_BITS.iter().map(refuse_bit).collect::<Result<_, _>>()?);
    }
    for (call, flag, mode) in OPENING_CALLS {
        let combinations = MAKING_FLAGS.iter().flat_map(|making| SET_ID_BITS.iter().map(move |bit| (making, bit)));
        let opening_rules = combinations.map(|(making, bit)| {
            build_rule(vec![match_flags(*flag, *making, *making)?, match_flags(*mode, *bit, *bit)?])
        });
        rules.insert(*call, opening_rules.collect::<Result<_, _>>()?);
    }
    compile_filter(rules, SeccompAction::Allow, SeccompAction::Errno(libc::EPERM as u32))
}

/// Builds the rules that refuse every socket except for IP over the sandbox's own network and for asking the kernel about
/// routes. Unix sockets are refused: daemons listen on them, and a namespace doesn't bar a program from a readable path.
fn build_socket_rules() -> Result<Vec<SeccompRule>, seccompiler::Error> {
    let isnt = |family: i32| build_condition(0, Dword, SeccompCmpOp::Ne, family as u64);
    Ok(vec![
        build_rule(vec![isnt(libc::AF_INET)?, isnt(libc::AF_INET6)?, isnt(libc::AF_NETLINK)?])?,
        build_rule(vec![
            match_value(0, libc::AF_NETLINK as u64)?,
            build_condition(2, Dword, SeccompCmpOp::Ne, libc::NETLINK_ROUTE as u64)?,
        ])?,
        build_rule(vec![isnt(libc::AF_NETLINK)?, match_flags(1, TYPE_MASK, libc::SOCK_RAW as u64)?])?,
        build_rule(vec![isnt(libc::AF_NETLINK)?, match_flags(1, TYPE_MASK, SOCK_PACKET)?])?,
    ])
}

/// Builds the filter that answers ENOSYS, like an older kernel, to unknown calls and to calls with invisible flags.
fn build_enosys_filter() -> Result<BpfProgram, seccompiler::Error> {
    let known = (0..=LAST).filter(|call| !OPAQUE.contains(call)).map(|call| (call, Vec::new()));
    compile_filter(known.collect(), SeccompAction::Errno(libc::ENOSYS as u32), SeccompAction::Allow)
}

fn compile_filter(
    rules: BTreeMap<i64, Vec<SeccompRule>>,
    otherwise: SeccompAction,
    matched: SeccompAction,
) -> Result<BpfProgram, seccompiler::Error> {
    let arch = TargetArch::try_from(std::env::consts::ARCH)?;
    Ok(SeccompFilter::new(rules, otherwise, matched, arch)?.try_into()?)
}

fn build_rule(conditions: Vec<SeccompCondition>) -> Result<SeccompRule, seccompiler::Error> {
    Ok(SeccompRule::new(conditions)?)
}

/// Matches an argument's value. The kernel uses the lower half of these arguments, so the filter must compare the same half.
fn match_value(argument: u8, value: u64) -> Result<SeccompCondition, seccompiler::Error> {
    build_condition(argument, Dword, SeccompCmpOp::Eq, value)
}

/// Matches bits of an argument. Argument 0 is the flags of `clone` and `unshare`, which the kernel takes in full width.
fn match_flags(argument: u8, mask: u64, value: u64) -> Result<SeccompCondition, seccompiler::Error> {
    build_condition(argument, if argument == 0 { Qword } else { Dword }, SeccompCmpOp::MaskedEq(mask), value)
}

fn build_condition(
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
        let (refusing, knowing) = (build_refusal_filter().unwrap(), build_enosys_filter().unwrap());
        assert!(refusing.len() < 4096 && knowing.len() < 4096, "{} and {}", refusing.len(), knowing.len());
        assert!(!refusing.is_empty() && refusing != knowing);
    }
}
