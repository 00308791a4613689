/* forget.c: a preloaded shim that makes a killed process look like a machine whose power failed.
 *
 * SIGKILL alone loses nothing that write(2) took: the kernel's page cache outlives the process. A power cut loses
 * every byte that no fsync has confirmed. This shim watches the regular files under FORGET_DIR and keeps, in
 * FORGET_SHADOW, what a disk would hold for certain: a byte reaches the shadow only when fsync or fdatasync of
 * its file returns. After SIGKILL the caller replaces FORGET_DIR by FORGET_SHADOW/names (scripts/powercut/cut).
 *
 *   data/<identity>  contents as of the last sync; which part is unsynced is remembered in memory only
 *   adopted          there once the image of the beginning is whole
 *   names/<path>     hard links into data/: the directory entries that are on the disk for certain
 *
 * Directory entries (creation, rename, unlink) become durable by fsync of their directory only, as POSIX reads;
 * with FORGET_ENTRIES=file an fsync of a file makes its own entry durable too, as ext4 does in practice.
 *
 * FORGET_EARLY=N (0 to 100): that share of writes reaches the shadow at once as well, as a kernel does that writes
 * back pages when it likes. Order among unsynced writes is then broken, which a correct store must survive.
 *
 * Processes that the first one forks, without starting another program, share what is known of the files, so that one
 * may sync what another wrote: so a PostgreSQL server is watched as a whole. What they have in common dies with them.
 *
 * Left out on purpose: files ending in -shm (SQLite rebuilds them after a cut). What could slip past unseen
 * (stdio writing, writable shared maps, links, copy_file_range) ends the process with a message instead. With
 * FORGET_STDIO=lost what is written through stdio is let pass and never reaches the disk: PostgreSQL writes caches
 * so, which it makes anew.
 * Bounds: 65,536 descriptors, 16,384 files. What is unsynced of a file is one range, from its first such byte to its
 * last: what lies between is on the disk already.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

enum { DESCRIPTORS = 65536, FILES = 16384 };

struct range { off_t from, to; };

/* Which file it is. An inode number comes back after unlink, so its time of birth belongs to the name. */
struct identity { uint64_t inode; int64_t second; uint32_t nanosecond; };

/* One file under FORGET_DIR. Never removed from the table: an unlinked file may still be open. */
struct file {
    struct identity identity;
    pthread_mutex_t syncing;    /* one sync at a time, so that none returns before an older one has finished */
    struct range dirty;         /* empty: from == to */
};

/* What all processes of the tree know. */
struct common {
    pthread_mutex_t table;
    int fileCount;
    struct file files[FILES];
};

static char root[PATH_MAX], shadow[PATH_MAX - 512];
static size_t rootLength;
static int active, entriesFollowFile, earlyPercent, losesStdio;
static struct common *common;                   /* shared with the children */
static _Atomic int fileOf[DESCRIPTORS];         /* index + 1; 0: not ours; -1: a directory of ours; a copy each */

#define REAL(name) ((__typeof__(&name))real_##name())
#define RESOLVE(name)                                                   \
    static void *real_##name(void) {                                    \
        static void *found;                                             \
        if (!found) found = dlsym(RTLD_NEXT, #name);                    \
        return found;                                                   \
    }
RESOLVE(open) RESOLVE(openat)
RESOLVE(write) RESOLVE(writev) RESOLVE(pwrite) RESOLVE(pwrite64) RESOLVE(pwritev) RESOLVE(pwritev64)
RESOLVE(ftruncate) RESOLVE(ftruncate64) RESOLVE(truncate) RESOLVE(truncate64)
RESOLVE(fallocate) RESOLVE(fallocate64) RESOLVE(posix_fallocate) RESOLVE(posix_fallocate64)
RESOLVE(fsync) RESOLVE(fdatasync) RESOLVE(close) RESOLVE(dup) RESOLVE(dup2) RESOLVE(dup3)
RESOLVE(fcntl) RESOLVE(fcntl64) RESOLVE(mmap) RESOLVE(mmap64) RESOLVE(fopen) RESOLVE(fopen64)
RESOLVE(copy_file_range) RESOLVE(link) RESOLVE(linkat)
RESOLVE(mkstemp) RESOLVE(mkostemp) RESOLVE(mkstemps)

static void stop(const char *why) {
    static const char head[] = "forget: ";
    (void)!REAL(write)(2, head, sizeof head - 1);
    (void)!REAL(write)(2, why, strlen(why));
    (void)!REAL(write)(2, "\n", 1);
    _exit(99);
}

/* The absolute path of a name, its last part not resolved (it may not exist). 0 when the directory does not. */
static int absolute(int at, const char *path, char *out) {
    char directory[PATH_MAX], resolved[PATH_MAX];
    const char *slash = strrchr(path, '/'), *last = slash ? slash + 1 : path;
    if (path[0] == '/' || at == AT_FDCWD) {
        snprintf(directory, sizeof directory, "%.*s", slash ? (int)(slash - path) + 1 : 1, slash ? path : ".");
    } else {
        snprintf(directory, sizeof directory, "/proc/self/fd/%d/%.*s", at, slash ? (int)(slash - path) : 0, path);
    }
    if (!realpath(directory, resolved)) return 0;
    return snprintf(out, PATH_MAX, "%s/%s", strcmp(resolved, "/") ? resolved : "", last) < PATH_MAX;
}

/* Whether an absolute path lies under FORGET_DIR and is not shared memory of SQLite's. */
static int ours(const char *path) {
    size_t length = strlen(path);
    if (strncmp(path, root, rootLength) || (path[rootLength] != '/' && path[rootLength] != 0)) return 0;
    return !(length > 4 && !strcmp(path + length - 4, "-shm"));
}

/* Identity of an open file (path "") or of a path. 0 when there is none. */
static int identify(int fd, const char *path, struct identity *out) {
    struct statx status;
    int flags = AT_SYMLINK_NOFOLLOW | (*path ? 0 : AT_EMPTY_PATH);
    if (statx(fd, path, flags, STATX_INO | STATX_BTIME, &status)) return 0;
    *out = (struct identity){status.stx_ino, status.stx_btime.tv_sec, status.stx_btime.tv_nsec};
    return 1;
}

static void dataPath(const struct identity *file, char *out) {
    snprintf(out, PATH_MAX, "%s/data/%llu-%lld-%u", shadow, (unsigned long long)file->inode,
             (long long)file->second, file->nanosecond);
}

static int openShadow(const struct file *file) {
    char path[PATH_MAX];
    dataPath(&file->identity, path);
    int fd = REAL(open)(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0) stop("cannot open a file of the shadow");
    return fd;
}

/* Copies a range of the real file into the shadow. Reads by a descriptor of its own: `fd` may be write-only. */
static void copyRange(int from, int to, struct range range) {
    static _Thread_local char buffer[1 << 16];
    while (range.from < range.to) {
        size_t want = (size_t)(range.to - range.from);
        ssize_t got = pread(from, buffer, want < sizeof buffer ? want : sizeof buffer, range.from);
        if (got < 0) stop("cannot read a file under FORGET_DIR");
        if (got == 0) return;                   /* the file is shorter by now */
        if (REAL(pwrite)(to, buffer, (size_t)got, range.from) != got) stop("cannot write the shadow");
        range.from += got;
    }
}

static int reopenForReading(int fd) {
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    int again = REAL(open)(path, O_RDONLY | O_CLOEXEC);
    if (again < 0) stop("cannot reopen a file under FORGET_DIR");
    return again;
}

static void share(pthread_mutex_t *mutex) {
    pthread_mutexattr_t kind;
    pthread_mutexattr_init(&kind);
    pthread_mutexattr_setpshared(&kind, PTHREAD_PROCESS_SHARED);
    pthread_mutex_init(mutex, &kind);
    pthread_mutexattr_destroy(&kind);
}

/* Finds or adds a file; a new one begins empty on the disk. */
static int indexOf(const struct identity *identity) {
    int index;
    pthread_mutex_lock(&common->table);
    for (index = 0; index < common->fileCount; index++) {
        const struct identity *known = &common->files[index].identity;
        if (known->inode == identity->inode && known->second == identity->second
            && known->nanosecond == identity->nanosecond) break;
    }
    if (index == FILES) stop("too many files");
    if (index == common->fileCount) {
        common->files[index].identity = *identity;
        share(&common->files[index].syncing);
        REAL(close)(openShadow(&common->files[index]));
        common->fileCount++;
    }
    pthread_mutex_unlock(&common->table);
    return index;
}

static void mark(struct file *file, off_t from, off_t to) {
    if (from >= to) return;
    struct range *dirty = &file->dirty;
    if (dirty->from == dirty->to) *dirty = (struct range){from, to};
    if (from < dirty->from) dirty->from = from;
    if (to > dirty->to) dirty->to = to;
}

static struct file *tracked(int fd) {
    if (!active || fd < 0 || fd >= DESCRIPTORS) return NULL;
    int value = fileOf[fd];
    return value > 0 ? &common->files[value - 1] : NULL;
}

/* Notes what a successful write of `count` bytes at `from` left unsynced. */
static void wrote(int fd, struct file *file, off_t from, ssize_t count) {
    if (count <= 0) return;
    pthread_mutex_lock(&common->table);
    mark(file, from, from + count);
    pthread_mutex_unlock(&common->table);
    static _Thread_local unsigned seed;
    if (!seed) seed = (unsigned)getpid() * 2654435761u ^ (unsigned)(uintptr_t)&seed;
    if (earlyPercent > 0 && (int)(rand_r(&seed) % 100) < earlyPercent) {
        int source = reopenForReading(fd), target = openShadow(file);
        copyRange(source, target, (struct range){from, from + count});
        REAL(close)(target);
        REAL(close)(source);
    }
}

static off_t position(int fd) {
    int saved = errno;
    off_t at = lseek(fd, 0, SEEK_CUR);
    errno = saved;
    return at;
}

/* Makes the entry names/<path> point to the inode's data, or removes it. */
static void enter(const char *path, const struct identity *identity) {
    char name[2 * PATH_MAX], data[PATH_MAX], fresh[PATH_MAX];
    snprintf(name, sizeof name, "%s/names%s", shadow, path + rootLength);
    if (!identity) {
        if (unlink(name) && errno != ENOENT) stop("cannot remove a name of the shadow");
        return;
    }
    struct stat there, held;
    dataPath(identity, data);
    if (!lstat(name, &there) && !stat(data, &held) && held.st_ino == there.st_ino) return;
    snprintf(fresh, sizeof fresh, "%s/data/fresh-%d", shadow, (int)gettid());
    if (REAL(link)(data, fresh) || rename(fresh, name)) stop("cannot enter a name into the shadow");
}

static void makeDirectory(const char *path) {
    char made[2 * PATH_MAX];
    snprintf(made, sizeof made, "%s/names%s", shadow, path + rootLength);
    mkdir(made, 0700);
}

/* fsync of a directory: its entries are on the disk as they stand now. Subdirectories are made, not removed. */
static void enterAll(const char *directory) {
    char path[PATH_MAX + 300];
    DIR *listing = opendir(directory);
    if (!listing) return;
    struct dirent *entry;
    while ((entry = readdir(listing))) {
        if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..")) continue;
        snprintf(path, sizeof path, "%s/%s", directory, entry->d_name);
        struct stat status;
        struct identity identity;
        if (!ours(path) || lstat(path, &status)) continue;
        if (S_ISDIR(status.st_mode)) {
            makeDirectory(path);
        } else if (S_ISREG(status.st_mode) && identify(AT_FDCWD, path, &identity)) {
            indexOf(&identity);
            enter(path, &identity);
        }
    }
    closedir(listing);
    char names[2 * PATH_MAX];
    snprintf(names, sizeof names, "%s/names%s", shadow, directory + rootLength);
    if (!(listing = opendir(names))) return;
    while ((entry = readdir(listing))) {
        snprintf(path, sizeof path, "%s/%s", directory, entry->d_name);
        struct stat status;
        if (entry->d_type == DT_REG && lstat(path, &status)) enter(path, NULL);
    }
    closedir(listing);
}

/* fsync or fdatasync of a file that returned 0: everything written before it began is on the disk. */
static int synced(int fd, struct file *file, int (*sync)(int)) {
    pthread_mutex_lock(&file->syncing);
    pthread_mutex_lock(&common->table);
    struct range dirty = file->dirty;
    file->dirty = (struct range){0, 0};
    pthread_mutex_unlock(&common->table);
    int result = sync(fd), saved = errno;
    if (result == 0) {
        struct stat status;
        if (fstat(fd, &status)) stop("fstat");
        int source = reopenForReading(fd), target = openShadow(file);
        if (REAL(ftruncate)(target, status.st_size)) stop("cannot cut the shadow");
        copyRange(source, target, dirty);
        REAL(close)(target);
        REAL(close)(source);
        if (entriesFollowFile) {
            char link[64], path[PATH_MAX];
            snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
            ssize_t length = readlink(link, path, sizeof path - 1);
            if (length > 0 && (path[length] = 0, ours(path)) && status.st_nlink > 0) enter(path, &file->identity);
        }
    } else {                                    /* after a failed sync nothing of it is certain: keep forgetting */
        pthread_mutex_lock(&common->table);
        mark(file, dirty.from, dirty.to);
        pthread_mutex_unlock(&common->table);
    }
    pthread_mutex_unlock(&file->syncing);
    errno = saved;
    return result;
}

static int syncing(int fd, int (*sync)(int)) {
    struct file *file = tracked(fd);
    if (file) return synced(fd, file, sync);
    int result = sync(fd), saved = errno;
    if (active && result == 0 && fd >= 0 && fd < DESCRIPTORS && fileOf[fd] == -1) {
        char link[64], path[PATH_MAX];
        snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
        ssize_t length = readlink(link, path, sizeof path - 1);
        if (length > 0) {
            path[length] = 0;
            enterAll(path);
        }
    }
    errno = saved;
    return result;
}

/* Takes note of a descriptor that open gave; `truncated`: O_TRUNC emptied what may have been there. */
static int opened(int fd, const char *path, int truncated) {
    if (!active || fd < 0) return fd;
    int saved = errno;
    if (fd >= DESCRIPTORS) stop("too many descriptors");
    struct stat status;
    fileOf[fd] = 0;
    if (ours(path) && !fstat(fd, &status)) {
        if (S_ISDIR(status.st_mode)) {
            fileOf[fd] = -1;
        } else if (S_ISREG(status.st_mode)) {
            struct identity identity;
            if (!identify(fd, "", &identity)) stop("statx");
            int index = indexOf(&identity);
            if (truncated) {
                pthread_mutex_lock(&common->table);
                mark(&common->files[index], 0, INT64_MAX);
                pthread_mutex_unlock(&common->table);
            }
            fileOf[fd] = index + 1;
        }
    }
    errno = saved;
    return fd;
}

static int openAt(int at, const char *path, int flags, mode_t mode) {
    int fd = REAL(openat)(at, path, flags, mode);
    char full[PATH_MAX];
    if (!active || fd < 0 || (flags & O_PATH) == O_PATH) return fd;
    int saved = errno;
    int known = absolute(at, path, full);
    errno = saved;
    if ((flags & O_TMPFILE) == O_TMPFILE && known && ours(full)) stop("O_TMPFILE under FORGET_DIR");
    return known ? opened(fd, full, flags & O_TRUNC) : fd;
}

#define MODE(flags, mode)                                               \
    mode_t mode = 0;                                                    \
    if ((flags) & (O_CREAT | __O_TMPFILE)) {                            \
        va_list rest;                                                   \
        va_start(rest, flags);                                          \
        mode = va_arg(rest, mode_t);                                    \
        va_end(rest);                                                   \
    }

int open(const char *path, int flags, ...) { MODE(flags, mode) return openAt(AT_FDCWD, path, flags, mode); }
int open64(const char *path, int flags, ...) { MODE(flags, mode) return openAt(AT_FDCWD, path, flags, mode); }
int openat(int at, const char *path, int flags, ...) {
    MODE(flags, mode) return openAt(at, path, flags, mode);
}
int openat64(int at, const char *path, int flags, ...) {
    MODE(flags, mode) return openAt(at, path, flags, mode);
}
int __open_2(const char *path, int flags) { return openAt(AT_FDCWD, path, flags, 0); }
int __open64_2(const char *path, int flags) { return openAt(AT_FDCWD, path, flags, 0); }
int __openat_2(int at, const char *path, int flags) { return openAt(at, path, flags, 0); }
int __openat64_2(int at, const char *path, int flags) { return openAt(at, path, flags, 0); }
int creat(const char *path, mode_t mode) { return openAt(AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC, mode); }
int creat64(const char *path, mode_t mode) { return creat(path, mode); }

static int openedTemporary(int fd, const char *path) {
    char full[PATH_MAX];
    return fd >= 0 && active && absolute(AT_FDCWD, path, full) ? opened(fd, full, 0) : fd;
}
int mkstemp(char *path) { return openedTemporary(REAL(mkstemp)(path), path); }
int mkstemp64(char *path) { return openedTemporary(REAL(mkstemp)(path), path); }
int mkostemp(char *path, int flags) { return openedTemporary(REAL(mkostemp)(path, flags), path); }
int mkostemp64(char *path, int flags) { return openedTemporary(REAL(mkostemp)(path, flags), path); }
int mkstemps(char *path, int tail) { return openedTemporary(REAL(mkstemps)(path, tail), path); }
int mkstemps64(char *path, int tail) { return openedTemporary(REAL(mkstemps)(path, tail), path); }

static void refuseStdio(const char *path, const char *mode) {
    char full[PATH_MAX];
    if (active && !losesStdio && strpbrk(mode, "wa+") && absolute(AT_FDCWD, path, full) && ours(full))
        stop("stdio writes under FORGET_DIR, which this shim cannot see");
}
FILE *fopen(const char *path, const char *mode) { refuseStdio(path, mode); return REAL(fopen)(path, mode); }
FILE *fopen64(const char *path, const char *mode) { refuseStdio(path, mode); return REAL(fopen64)(path, mode); }

/* Writes at the descriptor's own position. The position is read after: with O_APPEND it is known only then. */
#define AT_POSITION(call)                                               \
    ssize_t result = (call);                                            \
    struct file *file = tracked(fd);                                    \
    if (file && result > 0) {                                           \
        int saved = errno;                                              \
        wrote(fd, file, position(fd) - result, result);                 \
        errno = saved;                                                  \
    }                                                                   \
    return result;
#define AT_OFFSET(call)                                                 \
    ssize_t result = (call);                                            \
    struct file *file = tracked(fd);                                    \
    if (file && result > 0) {                                           \
        int saved = errno;                                              \
        wrote(fd, file, offset, result);                                \
        errno = saved;                                                  \
    }                                                                   \
    return result;

ssize_t write(int fd, const void *bytes, size_t count) { AT_POSITION(REAL(write)(fd, bytes, count)) }
ssize_t writev(int fd, const struct iovec *parts, int count) { AT_POSITION(REAL(writev)(fd, parts, count)) }
ssize_t pwrite(int fd, const void *bytes, size_t count, off_t offset) {
    AT_OFFSET(REAL(pwrite)(fd, bytes, count, offset))
}
ssize_t pwrite64(int fd, const void *bytes, size_t count, off64_t offset) {
    AT_OFFSET(REAL(pwrite64)(fd, bytes, count, offset))
}
ssize_t pwritev(int fd, const struct iovec *parts, int count, off_t offset) {
    AT_OFFSET(REAL(pwritev)(fd, parts, count, offset))
}
ssize_t pwritev64(int fd, const struct iovec *parts, int count, off64_t offset) {
    AT_OFFSET(REAL(pwritev64)(fd, parts, count, offset))
}

/* A new length, or space set aside: what lies behind the shorter end is unsynced too. */
#define RESIZED(call, from)                                             \
    int result = (call);                                                \
    struct file *file = tracked(fd);                                    \
    if (file && result == 0) {                                          \
        pthread_mutex_lock(&common->table);                                     \
        mark(file, (from), INT64_MAX);                                  \
        pthread_mutex_unlock(&common->table);                                   \
    }                                                                   \
    return result;

int ftruncate(int fd, off_t length) { RESIZED(REAL(ftruncate)(fd, length), length) }
int ftruncate64(int fd, off64_t length) { RESIZED(REAL(ftruncate64)(fd, length), length) }
int fallocate(int fd, int mode, off_t offset, off_t length) {
    RESIZED(REAL(fallocate)(fd, mode, offset, length), offset)
}
int fallocate64(int fd, int mode, off64_t offset, off64_t length) {
    RESIZED(REAL(fallocate64)(fd, mode, offset, length), offset)
}
int posix_fallocate(int fd, off_t offset, off_t length) {
    RESIZED(REAL(posix_fallocate)(fd, offset, length), offset)
}
int posix_fallocate64(int fd, off64_t offset, off64_t length) {
    RESIZED(REAL(posix_fallocate64)(fd, offset, length), offset)
}

static void refuse(const char *path, const char *why) {
    char full[PATH_MAX];
    if (active && absolute(AT_FDCWD, path, full) && ours(full)) stop(why);
}
/* By name: the file may be open nowhere, and is synced later by whoever opens it. */
static void cutByName(const char *path, off_t length) {
    char full[PATH_MAX];
    struct identity identity;
    int saved = errno;
    if (active && absolute(AT_FDCWD, path, full) && ours(full) && identify(AT_FDCWD, full, &identity)) {
        int index = indexOf(&identity);
        pthread_mutex_lock(&common->table);
        mark(&common->files[index], length, INT64_MAX);
        pthread_mutex_unlock(&common->table);
    }
    errno = saved;
}
int truncate(const char *path, off_t length) {
    int result = REAL(truncate)(path, length);
    if (result == 0) cutByName(path, length);
    return result;
}
int truncate64(const char *path, off64_t length) {
    int result = REAL(truncate64)(path, length);
    if (result == 0) cutByName(path, length);
    return result;
}
int link(const char *from, const char *to) {
    refuse(to, "a hard link under FORGET_DIR");
    return REAL(link)(from, to);
}
int linkat(int fromAt, const char *from, int toAt, const char *to, int flags) {
    refuse(to, "a hard link under FORGET_DIR");
    return REAL(linkat)(fromAt, from, toAt, to, flags);
}
ssize_t copy_file_range(int from, off64_t *fromAt, int to, off64_t *toAt, size_t count, unsigned flags) {
    if (tracked(to)) stop("copy_file_range into a file under FORGET_DIR");
    return REAL(copy_file_range)(from, fromAt, to, toAt, count, flags);
}
void *mmap(void *address, size_t length, int protection, int flags, int fd, off_t offset) {
    if ((flags & MAP_SHARED) && (protection & PROT_WRITE) && tracked(fd)) stop("a writable map");
    return REAL(mmap)(address, length, protection, flags, fd, offset);
}
void *mmap64(void *address, size_t length, int protection, int flags, int fd, off64_t offset) {
    if ((flags & MAP_SHARED) && (protection & PROT_WRITE) && tracked(fd)) stop("a writable map");
    return REAL(mmap64)(address, length, protection, flags, fd, offset);
}

int fsync(int fd) { return syncing(fd, REAL(fsync)); }
int fdatasync(int fd) { return syncing(fd, REAL(fdatasync)); }

static int copied(int from, int to) {
    if (active && from >= 0 && from < DESCRIPTORS && to >= 0 && to < DESCRIPTORS) fileOf[to] = fileOf[from];
    return to;
}
int close(int fd) {
    /* Forgotten before the kernel may give the number to somebody else. */
    if (active && fd >= 0 && fd < DESCRIPTORS) fileOf[fd] = 0;
    return REAL(close)(fd);
}
int dup(int fd) { return copied(fd, REAL(dup)(fd)); }
int dup2(int fd, int to) { return copied(fd, REAL(dup2)(fd, to)); }
int dup3(int fd, int to, int flags) { return copied(fd, REAL(dup3)(fd, to, flags)); }

#define CONTROL(name)                                                   \
    int name(int fd, int command, ...) {                                \
        va_list rest;                                                   \
        va_start(rest, command);                                        \
        void *argument = va_arg(rest, void *);                          \
        va_end(rest);                                                   \
        int result = REAL(name)(fd, command, argument);                 \
        return command == F_DUPFD || command == F_DUPFD_CLOEXEC ? copied(fd, result) : result; \
    }
CONTROL(fcntl)
CONTROL(fcntl64)

/* At start everything that stands under FORGET_DIR counts as being on the disk: it is what the cut left. */
static void adopt(const char *directory) {
    char path[PATH_MAX + 300];
    DIR *listing = opendir(directory);
    if (!listing) stop("FORGET_DIR is not a directory");
    struct dirent *entry;
    while ((entry = readdir(listing))) {
        if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..")) continue;
        snprintf(path, sizeof path, "%s/%s", directory, entry->d_name);
        struct stat status;
        struct identity identity;
        if (!ours(path) || lstat(path, &status)) continue;
        if (S_ISDIR(status.st_mode)) {
            makeDirectory(path);
            adopt(path);
        } else if (S_ISREG(status.st_mode) && identify(AT_FDCWD, path, &identity)) {
            int index = indexOf(&identity), source = REAL(open)(path, O_RDONLY | O_CLOEXEC);
            if (source < 0) stop("cannot read a file under FORGET_DIR");
            int target = openShadow(&common->files[index]);
            if (REAL(ftruncate)(target, status.st_size)) stop("cannot cut the shadow");
            copyRange(source, target, (struct range){0, status.st_size});
            REAL(close)(target);
            REAL(close)(source);
            enter(path, &identity);
        }
    }
    closedir(listing);
}

__attribute__((constructor)) static void start(void) {
    const char *directory = getenv("FORGET_DIR"), *image = getenv("FORGET_SHADOW");
    const char *entries = getenv("FORGET_ENTRIES"), *early = getenv("FORGET_EARLY"), *stdio = getenv("FORGET_STDIO");
    if (!directory || !image) return;
    if (!realpath(directory, root) || !realpath(image, shadow)) stop("FORGET_DIR or FORGET_SHADOW does not exist");
    rootLength = strlen(root);
    entriesFollowFile = entries && !strcmp(entries, "file");
    losesStdio = stdio && !strcmp(stdio, "lost");
    earlyPercent = early ? atoi(early) : 0;
    common = REAL(mmap)(NULL, sizeof *common, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (common == MAP_FAILED) stop("out of memory");
    share(&common->table);
    char path[PATH_MAX + 16];
    snprintf(path, sizeof path, "%s/data", shadow);
    if (mkdir(path, 0700)) stop("FORGET_SHADOW must be empty");
    snprintf(path, sizeof path, "%s/names", shadow);
    if (mkdir(path, 0700)) stop("FORGET_SHADOW must be empty");
    adopt(root);
    /* Before this mark the process has written nothing: killed earlier, it leaves the disk as it was. */
    snprintf(path, sizeof path, "%s/adopted", shadow);
    REAL(close)(REAL(open)(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    /* Programs that this process starts are not watched: two writers of one shadow would undo each other. */
    unsetenv("LD_PRELOAD");
    unsetenv("FORGET_DIR");
    active = 1;
}
