// What only the start has read of the program and its libraries, out of the process's pages.
#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif
#include "CWiping.h"

#if defined(__linux__)
#include <link.h>
#include <stdint.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <unistd.h>

// Whether the loader has written into segments that nobody may write to: those pages are the file's no more.
static int is_written(const struct dl_phdr_info *object) {
    for (int index = 0; index < object->dlpi_phnum; index++) {
        const ElfW(Phdr) *header = &object->dlpi_phdr[index];
        if (header->p_type != PT_DYNAMIC) continue;
        const ElfW(Dyn) *entry = (const ElfW(Dyn) *)(object->dlpi_addr + header->p_vaddr);
        for (; entry->d_tag != DT_NULL; entry++) {
            if (entry->d_tag == DT_TEXTREL) return 1;
            if (entry->d_tag == DT_FLAGS && (entry->d_un.d_val & DF_TEXTREL) != 0) return 1;
        }
        return 0;
    }
    // Nothing says so.
    return 1;
}

static int unmap(struct dl_phdr_info *object, size_t size, void *sum) {
    (void)size;
    // The kernel's own object is no file.
    unsigned long kernels = getauxval(AT_SYSINFO_EHDR);
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    if (is_written(object)) return 0;
    for (int index = 0; index < object->dlpi_phnum; index++) {
        const ElfW(Phdr) *header = &object->dlpi_phdr[index];
        if (header->p_type != PT_LOAD || (header->p_flags & PF_W) != 0) continue;
        uintptr_t begin = object->dlpi_addr + header->p_vaddr, end = begin + header->p_filesz;
        if (kernels != 0 && kernels >= begin && kernels < end) return 0;
        // Whole pages of the segment alone.
        begin = (begin + page - 1) / page * page;
        end = end / page * page;
        if (begin >= end) continue;
        if (madvise((void *)begin, end - begin, MADV_DONTNEED) == 0) *(size_t *)sum += end - begin;
    }
    return 0;
}

size_t sealbell_unmap_start(void) {
    size_t sum = 0;
    dl_iterate_phdr(unmap, &sum);
    return sum;
}
#else
size_t sealbell_unmap_start(void) { return 0; }
#endif
