// Shows libFuzzer the counters of code that has run, and no others.
//
// The program of all targets has about a million counters of coverage, and libFuzzer looks at each of them after every
// input: 80 % of the time of a quick target by `perf`. A target reaches a few thousand. So the pages of counters can
// only be read at first. The first write to a page, by code that has never run before, faults; the page is opened, and
// told to libFuzzer when the input ends, which is before libFuzzer looks. So no input's coverage is lost, the first
// one's neither.
//
// libFuzzer had an option for this, -lazy_counters; the toolchain's has it no more. The linker leads the three calls
// below here (`--wrap`, in Package.swift).

#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

// What counts and watches must neither be counted nor watched: it runs inside of a fault.
#define PLAIN __attribute__((no_sanitize("coverage", "address")))

enum { page = 4096, most_pages = 4000 };  // libFuzzer carries 4,096 ranges.

extern void __real___sanitizer_cov_8bit_counters_init(uint8_t *begin, uint8_t *end);
extern void __real___sanitizer_cov_pcs_init(const uintptr_t *begin, const uintptr_t *end);
extern int __real_LLVMFuzzerTestOneInput(const uint8_t *data, size_t count);

static uint8_t *counters, *counters_end;
// Whole pages in it: [closed, closed_end).
static uint8_t *closed, *closed_end;
// Two words for each counter: where its code is, and flags.
static const uintptr_t *places;
static struct sigaction before;
// 0: closed; 1: opened in this input; 2: told.
static atomic_uchar states[most_pages];
static atomic_bool opened;

PLAIN static void tell(uint8_t *begin, uint8_t *end) {
  if (begin == end) return;
  __real___sanitizer_cov_8bit_counters_init(begin, end);
  __real___sanitizer_cov_pcs_init(places + 2 * (begin - counters), places + 2 * (end - counters));
}

PLAIN static void on_fault(int signal, siginfo_t *info, void *context) {
  uint8_t *address = info->si_addr;
  if (address >= closed && address < closed_end) {
    size_t number = (size_t)(address - closed) / page;
    unsigned char none = 0;
    if (mprotect(closed + number * page, page, PROT_READ | PROT_WRITE) != 0) abort();
    // Another thread may have come first.
    if (atomic_compare_exchange_strong(&states[number], &none, 1)) atomic_store(&opened, 1);
    return;
  }
  // A real one: AddressSanitizer reports it, or whoever was there.
  if (before.sa_flags & SA_SIGINFO) {
    before.sa_sigaction(signal, info, context);
  } else if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN) {
    before.sa_handler(signal);
  } else {
    abort();
  }
}

// Every module's constructor makes these two calls, with the same range: the program is one file.
PLAIN void __wrap___sanitizer_cov_8bit_counters_init(uint8_t *begin, uint8_t *end) {
  if (counters != NULL) return;
  counters = begin;
  counters_end = end;
}

PLAIN void __wrap___sanitizer_cov_pcs_init(const uintptr_t *begin, const uintptr_t *end) {
  (void)end;
  if (places != NULL) return;
  places = begin;
  closed = (uint8_t *)(((uintptr_t)counters + page - 1) / page * page);
  closed_end = (uint8_t *)((uintptr_t)counters_end / page * page);
  if (closed >= closed_end || closed_end - closed > (ptrdiff_t)page * most_pages) {
    closed = closed_end = NULL;
    tell(counters, counters_end);
    return;
  }
  // The outer pages hold other things too.
  tell(counters, closed);
  tell(closed_end, counters_end);
  struct sigaction action = {.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER};
  action.sa_sigaction = on_fault;
  if (sigaction(SIGSEGV, &action, &before) != 0) abort();
  if (mprotect(closed, (size_t)(closed_end - closed), PROT_READ) != 0) abort();
}

PLAIN int __wrap_LLVMFuzzerTestOneInput(const uint8_t *data, size_t count) {
  int answer = __real_LLVMFuzzerTestOneInput(data, count);
  if (atomic_exchange(&opened, 0)) {
    for (size_t number = 0; closed + number * page < closed_end; number++) {
      unsigned char fresh = 1;
      if (atomic_compare_exchange_strong(&states[number], &fresh, 2))
        tell(closed + number * page, closed + (number + 1) * page);
    }
  }
  return answer;
}
