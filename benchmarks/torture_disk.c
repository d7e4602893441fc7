/* A disk that fails when it is told to: stands before the system's calls that write (LD_PRELOAD), whoever makes them:
   Python, Arrow, safetensors, SQLite. Calls on files outside the folder are passed on and not counted.

   disk_begin(folder, at, how): from now on the calls below the folder are counted; call number `at` (from 1; 0: none)
   meets the fault `how`:
     'F' full       this call and all later ones that need space fail with ENOSPC; a write first writes half
     'Q' quota      the same with EDQUOT
     'I' I/O        this call fails with EIO, later ones do not
     'R' read-only  this call and all later ones that change the folder or open for writing fail with EROFS
     'P' permission the same with EACCES
     'B', 'A'       the process is killed before, after the call; 'M': in the middle of a write, half of which is done
   disk_log(): one letter for each call so far: o(pen for writing) w(rite) s(ync) t(runcate) r(ename) l(ink) m(kdir) c(hmod)
   u(nlink). */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#define MOST 65536

static char folder[PATH_MAX], letters[MOST + 1];
static int fault_at;
static char fault;
static atomic_int count, struck;

void disk_begin(const char *path, int at, char how) {
    strncpy(folder, path, sizeof folder - 1);
    fault_at = at, fault = how;
    memset(letters, 0, sizeof letters);
    count = struck = 0;
}

void disk_end(void) { folder[0] = 0; }
const char *disk_log(void) { return letters; }

static int below(const char *path) {
    size_t size = strlen(folder);
    return size && path && !strncmp(path, folder, size) && (path[size] == '/' || !path[size]);
}

static int file_below(int file) {
    char link[64], path[PATH_MAX];
    if (!folder[0]) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t size = readlink(link, path, sizeof path - 1);
    if (size < 0) return 0;
    path[size] = 0;
    return below(path);
}

static void die(void) { kill(getpid(), SIGKILL); }

/* What to do with a call that is below the folder: 0 to make it, else the errno with which it fails; 'M' comes out as -1. */
static int meets(char kind) {
    int number = atomic_fetch_add(&count, 1) + 1, here = number == fault_at;
    if (number <= MOST) letters[number - 1] = kind;
    if (here) struck = 1;
    if (!struck) return 0;
    switch (fault) {
    case 'F': return strchr("owstm", kind) ? ENOSPC : 0;
    case 'Q': return strchr("owstm", kind) ? EDQUOT : 0;
    case 'I': return here ? EIO : 0;
    case 'R': return strchr("ormlcu", kind) ? EROFS : 0;
    case 'P': return strchr("ormlcu", kind) ? EACCES : 0;
    case 'B': if (here) die(); return 0;
    case 'M': if (here && kind != 'w') die(); return here ? -1 : 0;
    default: return 0;
    }
}

static void done(void) {
    if (fault == 'A' && struck) die();
}

#define REAL(name) static __typeof__(&name) real; if (!real) real = (__typeof__(&name))dlsym(RTLD_NEXT, #name)
#define GUARD(is_below, kind, failed) \
    int counted = (is_below); \
    if (counted) { int error = meets(kind); if (error > 0) { errno = error; return failed; } }
#define PASS(type, call) type result = (call); if (counted) done(); return result

static int writes(int flags) { return (flags & (O_CREAT | O_TRUNC)) || (flags & O_ACCMODE) != O_RDONLY; }

#define OPEN(name, parameters, path, arguments) \
    int name parameters { \
        REAL(name); \
        mode_t mode = 0; \
        if (flags & (O_CREAT | O_TMPFILE)) { va_list more; va_start(more, flags); mode = va_arg(more, mode_t); va_end(more); } \
        GUARD(below(path) && writes(flags), 'o', -1) \
        PASS(int, real arguments); \
    }
OPEN(open, (const char *path, int flags, ...), path, (path, flags, mode))
OPEN(open64, (const char *path, int flags, ...), path, (path, flags, mode))
OPEN(openat, (int at, const char *path, int flags, ...), path, (at, path, flags, mode))
OPEN(openat64, (int at, const char *path, int flags, ...), path, (at, path, flags, mode))

/* A write of which half is done before the disk is full, or the process dies. */
#define WRITE(name, parameters, half, arguments) \
    ssize_t name parameters { \
        REAL(name); \
        int counted = file_below(file); \
        if (counted) { \
            int first = !struck, error = meets('w'); \
            if (error && (fault == 'M' || (first && size > 1 && (error == ENOSPC || error == EDQUOT)))) { \
                ssize_t some = real half; \
                if (fault == 'M') die(); \
                return some; \
            } \
            if (error) { errno = error; return -1; } \
        } \
        PASS(ssize_t, real arguments); \
    }
WRITE(write, (int file, const void *data, size_t size), (file, data, size / 2), (file, data, size))
WRITE(pwrite, (int file, const void *data, size_t size, off_t to), (file, data, size / 2, to), (file, data, size, to))
WRITE(pwrite64, (int file, const void *data, size_t size, off64_t to), (file, data, size / 2, to), (file, data, size, to))

ssize_t writev(int file, const struct iovec *parts, int size) {
    REAL(writev);
    GUARD(file_below(file), 'w', -1)
    PASS(ssize_t, real(file, parts, size));
}

#define ONE_FILE(name, parameters, kind, arguments) \
    int name parameters { REAL(name); GUARD(file_below(file), kind, -1) PASS(int, real arguments); }
ONE_FILE(fsync, (int file), 's', (file))
ONE_FILE(fdatasync, (int file), 's', (file))
ONE_FILE(ftruncate, (int file, off_t size), 't', (file, size))
ONE_FILE(ftruncate64, (int file, off64_t size), 't', (file, size))
ONE_FILE(fchmod, (int file, mode_t mode), 'c', (file, mode))

#define ONE_PATH(name, parameters, path, kind, arguments) \
    int name parameters { REAL(name); GUARD(below(path), kind, -1) PASS(int, real arguments); }
ONE_PATH(mkdir, (const char *path, mode_t mode), path, 'm', (path, mode))
ONE_PATH(chmod, (const char *path, mode_t mode), path, 'c', (path, mode))
ONE_PATH(unlink, (const char *path), path, 'u', (path))
ONE_PATH(rmdir, (const char *path), path, 'u', (path))
ONE_PATH(rename, (const char *from, const char *to), to, 'r', (from, to))
ONE_PATH(renameat, (int a, const char *from, int b, const char *to), to, 'r', (a, from, b, to))
ONE_PATH(link, (const char *from, const char *to), to, 'l', (from, to))

int posix_fallocate(int file, off_t from, off_t size) {
    REAL(posix_fallocate);
    int counted = file_below(file), error = counted ? meets('t') : 0;
    if (error > 0) return error;
    PASS(int, real(file, from, size));
}
