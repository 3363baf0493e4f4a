/* Acts that a sandbox has to refuse, for which no command is everywhere at hand. Exit code 0: the act succeeded. Each is tried
 * outside first, so that a mistake in here shows as a failed control. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/vm_sockets.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timex.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef SYS_open_tree
#define SYS_open_tree 428
#endif
#ifndef SYS_fsopen
#define SYS_fsopen 430
#endif
#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif
#ifndef SYS_openat2
#define SYS_openat2 437
#endif
#ifndef SYS_fchmodat2
#define SYS_fchmodat2 452
#endif
#ifndef SYS_pidfd_getfd
#define SYS_pidfd_getfd 438
#endif

static int done(long result, const char *what)
{
    if (result >= 0)
        return 0;
    fprintf(stderr, "%s: %s\n", what, strerror(errno));
    return 1;
}

/* Sends a word and wants one back, within three seconds. */
static int talk(int fd, const void *to, socklen_t length, const char *what)
{
    struct timeval patience = {3, 0};
    char answer[64];
    if (fd < 0)
        return done(fd, what);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    if (connect(fd, to, length) < 0)
        return done(-1, what);
    if (send(fd, "hello\n", 6, MSG_NOSIGNAL) < 0)
        return done(-1, what);
    return done(recv(fd, answer, sizeof answer, 0) > 0 ? 0 : -1, what);
}

static int inet(const char *address, const char *port, int kind)
{
    struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons(atoi(port))};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = htons(atoi(port))};
    if (inet_pton(AF_INET, address, &v4.sin_addr) == 1)
        return talk(socket(AF_INET, kind, 0), &v4, sizeof v4, address);
    inet_pton(AF_INET6, address, &v6.sin6_addr);
    return talk(socket(AF_INET6, kind, 0), &v6, sizeof v6, address);
}

/* A path, or with @ a name in the abstract space. `how`: a socket of that kind, or one half of a pair turned elsewhere. */
static int unix_socket(const char *path, int kind, int is_pair)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    socklen_t length;
    int pair[2];
    snprintf(to.sun_path, sizeof to.sun_path, "%s", path);
    length = offsetof(struct sockaddr_un, sun_path) + strlen(path) + (path[0] == '@' ? 0 : 1);
    if (path[0] == '@')
        to.sun_path[0] = 0;
    if (!is_pair) {
        int fd = socket(AF_UNIX, kind, 0);
        if (fd < 0)
            return done(fd, "socket");
        if ((kind & 15) == SOCK_STREAM)
            return talk(fd, &to, length, path);
        return done(sendto(fd, "hello\n", 6, 0, (void *)&to, length), path);
    }
    if (socketpair(AF_UNIX, kind, 0, pair) < 0)
        return done(-1, "socketpair");
    return done(sendto(pair[0], "hello\n", 6, 0, (void *)&to, length), path);
}

static int child(void *unused)
{
    (void)unused;
    return 0;
}

static char stack[65536] __attribute__((aligned(16)));

static int cloned(int flags)
{
    int status, pid = clone(child, stack + sizeof stack, flags | SIGCHLD, NULL);
    if (pid < 0)
        return done(pid, "clone");
    return done(waitpid(pid, &status, 0), "waitpid");
}

static int cloned3(uint64_t flags)
{
    uint64_t args[11] = {flags};
    long pid;
    args[4] = SIGCHLD;
    pid = syscall(SYS_clone3, args, sizeof args);
    if (pid == 0)
        _exit(0);
    if (pid < 0)
        return done(pid, "clone3");
    return done(waitpid(pid, NULL, 0), "waitpid");
}

/* A terminal of our own, and a letter typed into it. */
static int typing(void)
{
    int pty = posix_openpt(O_RDWR | O_NOCTTY), tty;
    if (pty < 0 || grantpt(pty) || unlockpt(pty))
        return done(-1, "pty");
    if (fork()) {
        int status;
        wait(&status);
        return WEXITSTATUS(status);
    }
    setsid();
    tty = open(ptsname(pty), O_RDWR);
    if (tty < 0 || ioctl(tty, TIOCSCTTY, 0) < 0)
        _exit(done(-1, "controlling terminal"));
    _exit(done(ioctl(tty, TIOCSTI, "x"), "TIOCSTI"));
}

static int traced(void)
{
    if (fork()) {
        int status;
        wait(&status);
        return WEXITSTATUS(status);
    }
    _exit(done(ptrace(PTRACE_TRACEME, 0, 0, 0), "PTRACE_TRACEME"));
}

static int attached(int pid)
{
    if (ptrace(PTRACE_SEIZE, pid, 0, 0) < 0)
        return done(-1, "PTRACE_SEIZE");
    return 0;
}

/* Reads a few bytes of another process's stack by process_vm_readv. */
static int peeked(int pid)
{
    char name[64], line[256], buffer[8];
    unsigned long from = 0;
    FILE *maps;
    snprintf(name, sizeof name, "/proc/%d/maps", pid);
    maps = fopen(name, "r");
    while (maps && fgets(line, sizeof line, maps))
        if (strstr(line, "r") && !from)
            from = strtoul(line, NULL, 16);
    struct iovec here = {buffer, sizeof buffer}, there = {(void *)from, sizeof buffer};
    return done(process_vm_readv(pid, &here, 1, &there, 1, 0), "process_vm_readv");
}

/* A file that runs as its owner or its group: `how` names the call, then the bit in octal, as in chmod:4000. */
static int set_id(const char *how, const char *path)
{
    long mode = strtol(strchr(how, ':') + 1, NULL, 8) | 0755, fd = -1, result;
    size_t length = strcspn(how, ":");
    uint64_t opening[3] = {O_CREAT | O_WRONLY, mode, 0};
    struct stat found = {0};
#define IS(name) (length == strlen(name) && !strncmp(how, name, length))
    umask(0);
    if (IS("open"))
        fd = result = syscall(SYS_openat, AT_FDCWD, path, O_CREAT | O_WRONLY, mode);
    else if (IS("tmpfile"))
        fd = result = syscall(SYS_openat, AT_FDCWD, path, O_TMPFILE | O_WRONLY, mode);
    else if (IS("openat2"))
        fd = result = syscall(SYS_openat2, AT_FDCWD, path, opening, sizeof opening);
    else if (IS("mknodat"))
        result = syscall(SYS_mknodat, AT_FDCWD, path, S_IFREG | mode, 0);
#ifdef __x86_64__
    else if (IS("old-open"))
        fd = result = syscall(SYS_open, path, O_CREAT | O_WRONLY, mode);
    else if (IS("creat"))
        fd = result = syscall(SYS_creat, path, mode);
    else if (IS("mknod"))
        result = syscall(SYS_mknod, path, S_IFREG | mode, 0);
#endif
    else {
        fd = open(path, O_CREAT | O_WRONLY, 0600);
        if (IS("fchmod"))
            result = syscall(SYS_fchmod, fd, mode);
        else if (IS("fchmodat"))
            result = syscall(SYS_fchmodat, AT_FDCWD, path, mode);
#ifdef __x86_64__
        else if (IS("chmod"))
            result = syscall(SYS_chmod, path, mode);
#endif
        else
            result = syscall(SYS_fchmodat2, AT_FDCWD, path, mode, 0);
        /* A kernel that doesn't know it. */
        if (result < 0 && errno == ENOSYS)
            result = syscall(SYS_fchmodat, AT_FDCWD, path, mode);
    }
    if (fd >= 0 ? fstat(fd, &found) : stat(path, &found))
        result = -1;
    unlink(path);
    return done(result < 0 || !(found.st_mode & mode & 06000) ? -1 : 0, how);
}

/* Speaks HTTP: sends what is on standard input, prints what comes back until the other side closes. */
static int http(const char *port)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(atoi(port)), .sin_addr = {htonl(INADDR_LOOPBACK)}};
    struct timeval patience = {5, 0};
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    char buffer[4096];
    ssize_t count;
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    if (connect(fd, (void *)&to, sizeof to) < 0)
        return done(-1, "connect");
    while ((count = read(0, buffer, sizeof buffer)) > 0)
        if (send(fd, buffer, count, MSG_NOSIGNAL) < 0)
            return done(-1, "send");
    while ((count = recv(fd, buffer, sizeof buffer, 0)) > 0)
        if (write(1, buffer, count) < 0)
            return 1;
    return 0;
}

static int call(const char *what, const char *a, const char *b)
{
    char data[4096] = {0};
    struct timex clock = {0};
    if (!strcmp(what, "tcp"))
        return inet(a, b, SOCK_STREAM);
    if (!strcmp(what, "udp"))
        return inet(a, b, SOCK_DGRAM);
    if (!strcmp(what, "unix"))
        return unix_socket(a, SOCK_STREAM, 0);
    if (!strcmp(what, "unix-datagram"))
        return unix_socket(a, SOCK_DGRAM, 0);
    if (!strcmp(what, "unix-cloexec"))
        return unix_socket(a, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (!strcmp(what, "pair"))
        return unix_socket(a, SOCK_DGRAM, 1);
    if (!strcmp(what, "pair-cloexec"))
        return unix_socket(a, SOCK_DGRAM | SOCK_CLOEXEC, 1);
    if (!strcmp(what, "pair-raw"))
        return unix_socket(a, SOCK_RAW, 1);
    if (!strcmp(what, "http"))
        return http(a);
    if (!strcmp(what, "socket"))
        return done(socket(atoi(a), atoi(b), 0), "socket");
    if (!strcmp(what, "netlink"))
        return done(socket(AF_NETLINK, SOCK_RAW, atoi(a)), "socket");
    if (!strcmp(what, "raw"))
        return done(socket(AF_INET, SOCK_RAW, IPPROTO_ICMP), "socket");
    if (!strcmp(what, "packet"))
        return done(socket(AF_PACKET, SOCK_RAW, htons(3)), "socket");
    if (!strcmp(what, "clone"))
        return cloned(strtol(a, NULL, 0));
    if (!strcmp(what, "clone3"))
        return cloned3(strtol(a, NULL, 0));
    if (!strcmp(what, "unshare"))
        return done(unshare(strtol(a, NULL, 0)), "unshare");
    if (!strcmp(what, "typing"))
        return typing();
    if (!strcmp(what, "traced"))
        return traced();
    if (!strcmp(what, "attach"))
        return attached(atoi(a));
    if (!strcmp(what, "peek"))
        return peeked(a ? atoi(a) : getpid());
    if (!strcmp(what, "kill"))
        return done(kill(atoi(a), atoi(b)), "kill");
    if (!strcmp(what, "pidfd"))
        return done(syscall(SYS_pidfd_open, atoi(a), 0), "pidfd_open");
    if (!strcmp(what, "getfd"))
        return done(syscall(SYS_pidfd_getfd, syscall(SYS_pidfd_open, getpid(), 0), 0, 0), "pidfd_getfd");
    if (!strcmp(what, "kcmp"))
        return done(syscall(SYS_kcmp, getpid(), getpid(), 2, 0, 0), "kcmp");
    if (!strcmp(what, "key"))
        return done(syscall(SYS_add_key, "user", "reveille-probe", "x", 1, -2), "add_key");
    if (!strcmp(what, "keyring"))
        return done(syscall(SYS_keyctl, 0, -3, 1), "keyctl");
    if (!strcmp(what, "bpf")) {
        uint32_t map[32] = {1, 4, 4, 1};
        return done(syscall(SYS_bpf, 0, map, sizeof map), "bpf");
    }
    if (!strcmp(what, "perf")) {
        uint32_t event[32] = {1, 128, 1};
        event[10] = 0x61; /* disabled, without kernel and hypervisor */
        return done(syscall(SYS_perf_event_open, event, 0, -1, -1, 0), "perf_event_open");
    }
    if (!strcmp(what, "userfaultfd"))
        return done(syscall(SYS_userfaultfd, 1), "userfaultfd");
    if (!strcmp(what, "io_uring"))
        return done(syscall(SYS_io_uring_setup, 4, data), "io_uring_setup");
    if (!strcmp(what, "open_tree"))
        return done(syscall(SYS_open_tree, AT_FDCWD, "/", 0), "open_tree");
    if (!strcmp(what, "fsopen"))
        return done(syscall(SYS_fsopen, "tmpfs", 0), "fsopen");
    if (!strcmp(what, "handle")) {
        struct file_handle *handle = (void *)data;
        int mount;
        handle->handle_bytes = 128;
        return done(name_to_handle_at(AT_FDCWD, a, handle, &mount, 0), "name_to_handle_at");
    }
    if (!strcmp(what, "fanotify"))
        return done(syscall(SYS_fanotify_init, 0x200, O_RDONLY), "fanotify_init");
    if (!strcmp(what, "adjtimex"))
        return done(syscall(SYS_adjtimex, &clock), "adjtimex");
    if (!strcmp(what, "quota"))
        return errno = 0, syscall(SYS_quotactl, 0x80000100 /* Q_SYNC */, NULL, 0, NULL) < 0 && errno == EPERM;
    if (!strcmp(what, "setuid"))
        return done(setuid(12345), "setuid");
    if (!strcmp(what, "mknod"))
        return done(mknod(a, S_IFCHR | 0600, 0x103), "mknod");
    if (!strcmp(what, "chroot"))
        return done(chroot("/"), "chroot");
    if (!strcmp(what, "syslog"))
        return done(syscall(SYS_syslog, 10, NULL, 0), "syslog");
    if (!strcmp(what, "hostname"))
        return done(gethostname(data, sizeof data) || sethostname(data, strlen(data)) ? -1 : 0, "sethostname");
    if (!strcmp(what, "open"))
        return done(open(a, strtol(b, NULL, 0)), a);
    if (!strcmp(what, "set-id"))
        return set_id(a, b);
    if (!strcmp(what, "utime"))
        return done(utimensat(AT_FDCWD, a, NULL, 0), a);
#ifdef __x86_64__
    if (!strcmp(what, "ldt"))
        return done(syscall(SYS_modify_ldt, 0, data, sizeof data), "modify_ldt");
    if (!strcmp(what, "ioperm"))
        return done(syscall(SYS_ioperm, 0x80, 1, 1), "ioperm");
#endif
    fprintf(stderr, "no such probe: %s\n", what);
    return 2;
}

int main(int argc, char **argv)
{
    return argc < 2 ? 2 : call(argv[1], argc > 2 ? argv[2] : NULL, argc > 3 ? argv[3] : NULL);
}
