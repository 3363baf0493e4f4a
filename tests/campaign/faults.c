/* The campaign's preload library. It intercepts the libc calls of a program and its children, and counts those that change the
 * world. At a chosen call it kills every process of the trial or only the first, does half of a write before killing, or returns
 * an error. Alternatively it records all writes and syncs. `faults.rs` builds and steers it, and describes the shared memory and the
 * record's format.
 *
 * It is in C because libc's `open` is variadic, which stable Rust can't define. It never allocates or takes a lock, so that it is
 * safe in every caller of libc. */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum { COUNT, KILL, TEAR, ERROR_ONCE, ERROR_STICKY, RECORD, KILL_FIRST };
enum { DATA = 1, NAME = 2, SYNC = 4, NET = 8, OPEN = 16, REMOVE = 32 };
enum { R_CREATE = 1, R_WRITE, R_TRUNCATE, R_RENAME, R_LINK, R_UNLINK, R_MKDIR, R_RMDIR, R_SYMLINK, R_SYNC, R_SYNC_DIR,
       R_NET, R_SYNC_ALL, R_UNMODELLED };
enum { PIDS = 256 };

struct control {
    _Atomic uint64_t calls, mode, target, error, classes, fired;
    _Atomic uint64_t pids[PIDS];
};

static struct control idle;
static struct control *control = &idle;
static char root[PATH_MAX], record_path[PATH_MAX];
static size_t root_length;
static int record_fd = -1;
/* The flags of the current rename. */
static _Thread_local uint8_t record_flags;
enum { EXCHANGED = 1 };

/* ---- processes ---- */

static void enlist(void) {
    for (int i = 0; i < PIDS; i++) {
        uint64_t empty = 0;
        if (atomic_compare_exchange_strong(&control->pids[i], &empty, (uint64_t)getpid())) return;
    }
}

static void forked(void) {
    if (control != &idle) enlist();
}

__attribute__((constructor)) static void begin(void) {
    const char *path = getenv("FAULTS_CONTROL"), *beneath = getenv("FAULTS_ROOT"), *record = getenv("FAULTS_RECORD");
    if (!path || !beneath) return;
    int fd = syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC);
    if (fd < 0) return;
    void *shared = mmap(NULL, sizeof(struct control), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    syscall(SYS_close, fd);
    if (shared == MAP_FAILED) return;
    snprintf(root, sizeof root, "%s", beneath);
    root_length = strlen(root);
    if (record) snprintf(record_path, sizeof record_path, "%s", record);
    control = shared;
    pthread_atfork(NULL, NULL, forked);
    enlist();
}

__attribute__((destructor)) static void end(void) {
    for (int i = 0; i < PIDS; i++) {
        uint64_t me = (uint64_t)getpid();
        atomic_compare_exchange_strong(&control->pids[i], &me, 0);
    }
}

/* Kills all processes as nearly at once as possible, this one last. */
static void kill_all(void) {
    atomic_store(&control->fired, 1);
    for (int i = 0; i < PIDS; i++) {
        pid_t pid = (pid_t)atomic_load(&control->pids[i]);
        if (pid > 0 && pid != getpid()) kill(pid, SIGKILL);
    }
    kill(getpid(), SIGKILL);
    for (;;) pause();
}

/* Kills only the trial's own program. If a child made the call, the child stays blocked in it. */
static void kill_first(void) {
    atomic_store(&control->fired, 1);
    kill((pid_t)atomic_load(&control->pids[0]), SIGKILL);
    for (;;) pause();
}

/* ---- which calls count ---- */

static int is_beneath(const char *path) {
    return !strncmp(path, root, root_length) && (path[root_length] == '/' || !path[root_length]);
}

/* Resolves "." and ".." in the text of the path, which suffices: the campaign's world has no links to directories. */
static void tidy(char *path) {
    char *out = path;
    for (char *in = path; *in;) {
        if (in[0] == '/' && in[1] == '.' && (in[2] == '/' || !in[2])) in += 2;
        else if (in[0] == '/' && in[1] == '.' && in[2] == '.' && (in[3] == '/' || !in[3])) {
            while (out > path && *--out != '/') {}
            in += 3;
        } else if (in[0] == '/' && in[1] == '/') in++;
        else *out++ = *in++;
    }
    *out = 0;
}

static int path_of_fd(int fd, char *out) {
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    long n = syscall(SYS_readlinkat, AT_FDCWD, link, out, PATH_MAX - 1);
    out[n > 0 ? n : 0] = 0;
    return n > 0;
}

/* Makes a path absolute, and returns whether it is beneath the root. */
static int resolve(int dir, const char *path, char *out) {
    if (control == &idle || !path) return 0;
    if (path[0] == '/') snprintf(out, PATH_MAX, "%s", path);
    else {
        if (dir == AT_FDCWD) {
            if (syscall(SYS_getcwd, out, PATH_MAX) < 0) return 0;
        } else if (!path_of_fd(dir, out)) return 0;
        size_t n = strlen(out);
        snprintf(out + n, PATH_MAX - n, "/%s", path);
    }
    tidy(out);
    return is_beneath(out);
}

static int ends_with(const char *text, const char *end) {
    size_t n = strlen(text), m = strlen(end);
    return n >= m && !strcmp(text + n - m, end);
}

/* Returns whether a descriptor's file or directory is beneath the root, with its path. */
static int is_ours(int fd, char *path) {
    return control != &idle && path_of_fd(fd, path) && is_beneath(path) && !ends_with(path, " (deleted)");
}

static int is_internet(int fd) {
    if (control == &idle) return 0;
    struct sockaddr_storage peer;
    socklen_t size = sizeof peer;
    int before = errno, found = !getpeername(fd, (struct sockaddr *)&peer, &size);
    errno = before;
    return found && (peer.ss_family == AF_INET || peer.ss_family == AF_INET6);
}

enum { GO, FAIL, HALF };

/* Counts a call of this class and returns its fate. */
static int next(unsigned class) {
    if (control == &idle || !(atomic_load(&control->classes) & class)) return GO;
    uint64_t n = atomic_fetch_add(&control->calls, 1) + 1, mode = atomic_load(&control->mode);
    uint64_t target = atomic_load(&control->target);
    if (mode == KILL && n == target) kill_all();
    if (mode == KILL_FIRST && n == target) kill_first();
    if (mode == TEAR && n == target) {
        if (class & DATA) return HALF;
        kill_all();
    }
    if ((mode == ERROR_ONCE && n == target) || (mode == ERROR_STICKY && n >= target)) {
        atomic_store(&control->fired, 1);
        errno = (int)atomic_load(&control->error);
        return FAIL;
    }
    return GO;
}

/* ---- the record ---- */

static void record(int kind, uint64_t ino, int64_t offset, const char *path, const char *path2, const struct iovec *data,
                   int parts, size_t length) {
    if (atomic_load(&control->mode) != RECORD || !record_path[0] || ends_with(path, "-shm")) return;
    int before = errno;
    uint8_t set = kind == R_RENAME ? record_flags : 0;
    if (record_fd < 0) {
        record_fd = (int)syscall(SYS_openat, AT_FDCWD, record_path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
        if (record_fd < 0) kill_all();
    }
    struct { uint32_t length; uint8_t kind, flags; uint16_t zero; uint32_t pid; uint64_t ino; int64_t offset;
             uint32_t path, path2, data; } __attribute__((packed)) head;
    head.kind = (uint8_t)kind, head.flags = set, head.zero = 0, head.pid = (uint32_t)getpid(), head.ino = ino;
    head.offset = offset, head.path = (uint32_t)strlen(path), head.path2 = (uint32_t)strlen(path2);
    head.data = (uint32_t)length;
    head.length = (uint32_t)(sizeof head + head.path + head.path2 + length);
    struct iovec all[IOV_MAX > 64 ? 64 : IOV_MAX];
    int n = 0;
    all[n++] = (struct iovec){&head, sizeof head};
    all[n++] = (struct iovec){(void *)path, head.path};
    all[n++] = (struct iovec){(void *)path2, head.path2};
    for (int i = 0; i < parts && length && n < 64; i++) {
        size_t take = data[i].iov_len < length ? data[i].iov_len : length;
        all[n++] = (struct iovec){data[i].iov_base, take};
        length -= take;
    }
    if (syscall(SYS_writev, record_fd, all, n) != (long)head.length) kill_all();
    errno = before;
}

static uint64_t ino_of(int fd) {
    struct stat found;
    return fstat(fd, &found) ? 0 : found.st_ino;
}

static uint64_t ino_at(const char *path) {
    struct stat found;
    int before = errno;
    uint64_t ino = lstat(path, &found) ? 0 : found.st_ino;
    errno = before;
    return ino;
}

static void record_name(int kind, uint64_t ino, const char *path, const char *path2) {
    record(kind, ino, 0, path, path2, NULL, 0, 0);
}

#define REAL(name) \
    static __typeof__(&name) real; \
    if (!real) real = (__typeof__(&name))dlsym(RTLD_NEXT, #name)

/* ---- opening ---- */

static int opened(int fd, int existed, int flags, const char *path) {
    if (fd < 0) return fd;
    if (!existed && (flags & O_CREAT)) record_name(R_CREATE, ino_of(fd), path, "");
    else if (flags & O_TRUNC) record(R_TRUNCATE, ino_of(fd), 0, path, "", NULL, 0, 0);
    return fd;
}

#define OPENS(call) \
    mode_t mode = 0; \
    if (flags & (O_CREAT | O_TMPFILE)) { va_list rest; va_start(rest, flags); mode = va_arg(rest, mode_t); va_end(rest); } \
    char full[PATH_MAX]; \
    int ours = resolve(dir, path, full), existed = ours && ino_at(full); \
    unsigned class = OPEN | ((flags & O_TRUNC) && existed ? DATA : 0) | ((flags & O_CREAT) && !existed ? NAME : 0); \
    if (ours && next(class) != GO) { if (atomic_load(&control->mode) == TEAR) kill_all(); return -1; } \
    int fd = call; \
    return ours ? opened(fd, existed, flags, full) : fd

int open(const char *path, int flags, ...) { enum { dir = AT_FDCWD }; REAL(open); OPENS(real(path, flags, mode)); }
int open64(const char *path, int flags, ...) { enum { dir = AT_FDCWD }; REAL(open64); OPENS(real(path, flags, mode)); }
int openat(int dir, const char *path, int flags, ...) { REAL(openat); OPENS(real(dir, path, flags, mode)); }
int openat64(int dir, const char *path, int flags, ...) { REAL(openat64); OPENS(real(dir, path, flags, mode)); }

/* ---- writing ---- */

static void wrote(int fd, int64_t offset, const char *path, const struct iovec *data, int parts, ssize_t n) {
    if (n <= 0) return;
    /* Without an offset, the data went to the file's current position. */
    if (offset < 0) offset = (int64_t)lseek(fd, 0, SEEK_CUR) - n;
    record(R_WRITE, ino_of(fd), offset, path, "", data, parts, (size_t)n);
}

#define WRITES(fd, at, data, parts, half, call) \
    char path[PATH_MAX]; \
    if (is_ours(fd, path)) { \
        int what = next(DATA); \
        if (what == FAIL) return -1; \
        if (what == HALF) { half; kill_all(); } \
        ssize_t n = call; \
        wrote(fd, at, path, data, parts, n); \
        return n; \
    } \
    if (is_internet(fd)) { \
        if (next(NET) != GO) kill_all(); \
        ssize_t n = call; \
        if (n > 0) record(R_NET, ino_of(fd), 0, "", "", data, parts, (size_t)n); \
        return n; \
    } \
    return call

ssize_t write(int fd, const void *data, size_t size) {
    REAL(write);
    struct iovec one = {(void *)data, size};
    WRITES(fd, -1, &one, 1, real(fd, data, size / 2), real(fd, data, size));
}
ssize_t pwrite(int fd, const void *data, size_t size, off_t at) {
    REAL(pwrite);
    struct iovec one = {(void *)data, size};
    WRITES(fd, at, &one, 1, real(fd, data, size / 2, at), real(fd, data, size, at));
}
ssize_t pwrite64(int fd, const void *data, size_t size, off64_t at) {
    REAL(pwrite64);
    struct iovec one = {(void *)data, size};
    WRITES(fd, at, &one, 1, real(fd, data, size / 2, at), real(fd, data, size, at));
}
ssize_t writev(int fd, const struct iovec *data, int parts) {
    REAL(writev);
    WRITES(fd, -1, data, parts, real(fd, data, parts / 2), real(fd, data, parts));
}
ssize_t send(int fd, const void *data, size_t size, int flags) {
    REAL(send);
    struct iovec one = {(void *)data, size};
    WRITES(fd, 0, &one, 1, (void)0, real(fd, data, size, flags));
}
ssize_t sendto(int fd, const void *data, size_t size, int flags, const struct sockaddr *to, socklen_t length) {
    REAL(sendto);
    struct iovec one = {(void *)data, size};
    WRITES(fd, 0, &one, 1, (void)0, real(fd, data, size, flags, to, length));
}
ssize_t sendmsg(int fd, const struct msghdr *message, int flags) {
    REAL(sendmsg);
    WRITES(fd, 0, message->msg_iov, (int)message->msg_iovlen, (void)0, real(fd, message, flags));
}

/* Copies within the kernel wouldn't be recorded. They fail here, so that programs read and write instead. */
ssize_t copy_file_range(int in, off64_t *from, int out, off64_t *to, size_t size, unsigned flags) {
    char path[PATH_MAX];
    if (is_ours(out, path)) { errno = EXDEV; return -1; }
    REAL(copy_file_range);
    return real(in, from, out, to, size, flags);
}
ssize_t sendfile64(int out, int in, off64_t *from, size_t size) {
    char path[PATH_MAX];
    if (is_ours(out, path)) { errno = EINVAL; return -1; }
    REAL(sendfile64);
    return real(out, in, from, size);
}

#define MAPS(name, offset) \
    void *name(void *at, size_t size, int access, int flags, int fd, offset from) { \
        REAL(name); \
        char path[PATH_MAX]; \
        if ((access & PROT_WRITE) && (flags & MAP_SHARED) && fd >= 0 && is_ours(fd, path)) \
            record_name(R_UNMODELLED, ino_of(fd), path, ""); \
        return real(at, size, access, flags, fd, from); \
    }
MAPS(mmap, off_t)
MAPS(mmap64, off64_t)

#define CUTS(name, offset) \
    int name(int fd, offset size) { \
        REAL(name); \
        char path[PATH_MAX]; \
        if (!is_ours(fd, path)) return real(fd, size); \
        int what = next(DATA); \
        if (what == FAIL) return -1; \
        if (what == HALF) kill_all(); \
        int result = real(fd, size); \
        if (!result) record(R_TRUNCATE, ino_of(fd), size, path, "", NULL, 0, 0); \
        return result; \
    }
CUTS(ftruncate, off_t)
CUTS(ftruncate64, off64_t)

/* ---- syncing ---- */

static void synced(int fd, const char *path) {
    struct stat found;
    if (fstat(fd, &found)) return;
    record_name(S_ISDIR(found.st_mode) ? R_SYNC_DIR : R_SYNC, found.st_ino, path, "");
}

#define SYNCS(name) \
    int name(int fd) { \
        REAL(name); \
        char path[PATH_MAX]; \
        if (!is_ours(fd, path)) return real(fd); \
        if (next(SYNC) == FAIL) return -1; \
        int result = real(fd); \
        if (!result) synced(fd, path); \
        return result; \
    }
SYNCS(fsync)
SYNCS(fdatasync)

int syncfs(int fd) {
    REAL(syncfs);
    char path[PATH_MAX];
    if (!is_ours(fd, path)) return real(fd);
    if (next(SYNC) == FAIL) return -1;
    int result = real(fd);
    if (!result) record_name(R_SYNC_ALL, 0, path, "");
    return result;
}
void sync(void) {
    REAL(sync);
    next(SYNC);
    real();
    if (control != &idle) record_name(R_SYNC_ALL, 0, "", "");
}

/* ---- names ---- */

#define NAMES(class, result_is, dir, path, call, kind, other) \
    char full[PATH_MAX]; \
    if (!resolve(dir, path, full)) return call; \
    uint64_t ino = (kind) == R_MKDIR || (kind) == R_SYMLINK ? 0 : ino_at(full); \
    if (next(class) == FAIL) return -1; \
    int result = call; \
    if (!result) record_name(kind, ino ? ino : ino_at(full), full, other); \
    return result

#define MOVES(kind, from_dir, from, to_dir, to, call) \
    char full[PATH_MAX], target[PATH_MAX]; \
    if (!resolve(to_dir, to, target) || !resolve(from_dir, from, full)) return call; \
    uint64_t ino = ino_at(full); \
    if (next(NAME) == FAIL) return -1; \
    int result = call; \
    if (!result) record_name(kind, ino, full, target); \
    return result

int rename(const char *from, const char *to) {
    REAL(rename);
    record_flags = 0;
    MOVES(R_RENAME, AT_FDCWD, from, AT_FDCWD, to, real(from, to));
}
int renameat(int from_dir, const char *from, int to_dir, const char *to) {
    REAL(renameat);
    record_flags = 0;
    MOVES(R_RENAME, from_dir, from, to_dir, to, real(from_dir, from, to_dir, to));
}
int renameat2(int from_dir, const char *from, int to_dir, const char *to, unsigned flags) {
    REAL(renameat2);
    record_flags = flags & RENAME_EXCHANGE ? EXCHANGED : 0;
    MOVES(R_RENAME, from_dir, from, to_dir, to, real(from_dir, from, to_dir, to, flags));
}
int link(const char *from, const char *to) {
    REAL(link);
    MOVES(R_LINK, AT_FDCWD, from, AT_FDCWD, to, real(from, to));
}
int linkat(int from_dir, const char *from, int to_dir, const char *to, int flags) {
    REAL(linkat);
    MOVES(R_LINK, from_dir, from, to_dir, to, real(from_dir, from, to_dir, to, flags));
}
int unlink(const char *path) {
    REAL(unlink);
    NAMES(REMOVE, 0, AT_FDCWD, path, real(path), R_UNLINK, "");
}
int unlinkat(int dir, const char *path, int flags) {
    REAL(unlinkat);
    NAMES(REMOVE, 0, dir, path, real(dir, path, flags), flags & AT_REMOVEDIR ? R_RMDIR : R_UNLINK, "");
}
int remove(const char *path) {
    REAL(remove);
    NAMES(REMOVE, 0, AT_FDCWD, path, real(path), R_UNLINK, "");
}
int rmdir(const char *path) {
    REAL(rmdir);
    NAMES(REMOVE, 0, AT_FDCWD, path, real(path), R_RMDIR, "");
}
int mkdir(const char *path, mode_t mode) {
    REAL(mkdir);
    NAMES(NAME, 0, AT_FDCWD, path, real(path, mode), R_MKDIR, "");
}
int mkdirat(int dir, const char *path, mode_t mode) {
    REAL(mkdirat);
    NAMES(NAME, 0, dir, path, real(dir, path, mode), R_MKDIR, "");
}
char *mkdtemp(char *template) {
    REAL(mkdtemp);
    char full[PATH_MAX];
    if (!resolve(AT_FDCWD, template, full)) return real(template);
    if (next(NAME) == FAIL) return NULL;
    char *made = real(template);
    if (made && resolve(AT_FDCWD, made, full)) record_name(R_MKDIR, ino_at(full), full, "");
    return made;
}
int symlink(const char *target, const char *path) {
    REAL(symlink);
    NAMES(NAME, 0, AT_FDCWD, path, real(target, path), R_SYMLINK, target);
}
int symlinkat(const char *target, int dir, const char *path) {
    REAL(symlinkat);
    NAMES(NAME, 0, dir, path, real(target, dir, path), R_SYMLINK, target);
}

/* ---- other calls that open descriptors, so that programs can run out of them ---- */

int socket(int family, int type, int protocol) {
    REAL(socket);
    if ((family == AF_INET || family == AF_INET6) && next(OPEN) == FAIL) return -1;
    return real(family, type, protocol);
}
int pipe2(int ends[2], int flags) {
    REAL(pipe2);
    if (next(OPEN) == FAIL) return -1;
    return real(ends, flags);
}
