// A signal mask that valgrind may write to: preloaded into a relay that runs under it.
//
// Valgrind 3.19 takes its own signals out of the mask that a program hands to rt_sigsuspend, in the program's
// memory. libdispatch's mask is a constant, so valgrind ends with SIGSEGV.
#define _GNU_SOURCE
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

int sigsuspend(const sigset_t *mask) {
    sigset_t copy = *mask;
    return (int)syscall(SYS_rt_sigsuspend, &copy, _NSIG / 8);
}
