//! Parts of the kernel that lead out, or have led out before.

use super::{
    attempts::{Attempt, as_root, attempt},
    world::World,
};

pub(super) fn attempts(_: &World) -> Vec<Attempt> {
    let namespaces = [
        ("users", "0x10000000"),
        ("files", "0x10020000"),
        ("networks", "0x50000000"),
        ("processes", "0x30000000"),
        ("names", "0x14000000"),
        ("messages", "0x18000000"),
        ("control groups", "0x12000000"),
    ];
    let mut all: Vec<Attempt> = namespaces
        .iter()
        .flat_map(|(what, flags)| {
            ["unshare", "clone", "clone3"]
                .map(|how| attempt(format!("a namespace of {what} by {how}"), format!("\"$P\" {how} {flags}")))
        })
        .collect();
    let list = [
        ("a namespace by the command", "unshare -U true"),
        ("a mount in a namespace", "unshare -Urm mount -t tmpfs none /mnt"),
        (
            "a bind of what is hidden",
            "mkdir -p ./at && unshare -Urm sh -c 'mount --bind \"$0\" ./at && grep -q SECRET ./at/id_ed25519' \"$H/.ssh\"; R=$?; rmdir ./at; exit $R",
        ),
        ("everything mounted once more", "unshare -Urm mount --rbind / /mnt"),
        ("another root", "unshare -Ur chroot / true"),
        ("another root by the system call", "unshare -Ur \"$P\" chroot"),
        ("a new file system", "unshare -Urm \"$P\" fsopen"),
        ("all rights in a namespace", "unshare -Ur grep -q 'CapEff:.*[1-9a-f]' /proc/self/status"),
        ("another name for the machine", "unshare -Uru \"$P\" hostname"),
        ("a tree of mounts", "\"$P\" open_tree"),
        ("a file's handle", "\"$P\" handle /etc/passwd"),
        ("watch a file system", "\"$P\" fanotify"),
        ("a key in the keyring", "\"$P\" key"),
        ("a look at the keyring", "\"$P\" keyring"),
        ("performance events", "\"$P\" perf"),
        ("faults of memory", "\"$P\" userfaultfd"),
        ("io_uring", "\"$P\" io_uring"),
        ("the clock's tuning", "\"$P\" adjtimex"),
        ("a letter typed into the terminal", "\"$P\" typing"),
        ("the system's hostname", "[ \"$(uname -n)\" != sandbox ]"),
        ("system calls without a filter", "! grep -q 'Seccomp:.2' /proc/self/status"),
        #[cfg(target_arch = "x86_64")]
        ("the processor's tables", "\"$P\" ldt"),
    ];
    all.extend(list.map(|(name, script)| attempt(format!("the kernel: {name}"), script)));
    let of_root = [
        ("a mount", "mkdir -p ./at && mount -t tmpfs none ./at && umount ./at; R=$?; rmdir ./at; exit $R"),
        ("a device", "\"$P\" mknod ./device; R=$?; rm -f ./device; exit $R"),
        ("a root", "\"$P\" chroot"),
        ("BPF", "\"$P\" bpf"),
        ("its log", "\"$P\" syslog"),
        ("a raw socket", "\"$P\" raw"),
        ("a packet socket", "\"$P\" packet"),
        ("a capability", "grep -q 'CapEff:.*[1-9a-f]' /proc/self/status"),
        ("another namespace", "nsenter -t $$ -u true"),
        ("memory as a device", "test -e /dev/mem -o -e /dev/kmsg -o -e /dev/vda -o -e /dev/sda"),
        ("quotas", "\"$P\" quota"),
    ];
    all.extend(of_root.map(|(name, script)| as_root(format!("root's kernel: {name}"), script)));
    all
}
