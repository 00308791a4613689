/* search.c: finds many values in a file at one go.
 *   search IMAGE NEEDLES
 * NEEDLES has a value in hexadecimal digits in each line, of 6 to 4,096 bytes. For each place it prints a line with the
 * needle's number, from 0, and the offset; of each needle the first 16 places. The status is 0 whatever it found.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LEAST = 6, MOST = 4096, PLACES = 16, BITS = 20 };

struct needle {
    unsigned char *bytes;
    size_t count;
    unsigned found;
    /* The next one whose beginning has the same sum, and 0 behind the last; numbers are from 1. */
    uint32_t next;
};

static struct needle *needles;
static uint32_t needle_count;
static uint32_t first[1 << BITS];

static uint32_t sum(const unsigned char *at) {
    uint64_t head = 0;
    memcpy(&head, at, LEAST);
    return (uint32_t)((head * UINT64_C(0x9E3779B97F4A7C15)) >> (64 - BITS));
}

static void fail(const char *words) {
    fprintf(stderr, "search: %s\n", words);
    exit(70);
}

static int digit(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    return -1;
}

static void read_needles(const char *path) {
    FILE *file = fopen(path, "r");
    if (!file) fail("the needles cannot be read");
    static char line[2 * MOST + 2];
    while (fgets(line, sizeof line, file)) {
        size_t length = strcspn(line, "\n");
        if (line[length] != '\n' || length % 2 || length < 2 * LEAST) fail("a needle is too short, too long or no line");
        struct needle one = {malloc(length / 2), length / 2, 0, 0};
        for (size_t at = 0; at < length / 2; at++) {
            int high = digit(line[2 * at]), low = digit(line[2 * at + 1]);
            if (high < 0 || low < 0) fail("a needle has other characters than hexadecimal digits");
            one.bytes[at] = (unsigned char)(high << 4 | low);
        }
        needles = realloc(needles, (needle_count + 1) * sizeof *needles);
        if (!needles) fail("no memory");
        uint32_t slot = sum(one.bytes);
        one.next = first[slot];
        needles[needle_count++] = one;
        first[slot] = needle_count;
    }
    fclose(file);
    if (needle_count == 0) fail("there are no needles");
}

int main(int argc, char **argv) {
    if (argc != 3) fail("an image and a file of needles are wanted");
    read_needles(argv[2]);
    int file = open(argv[1], O_RDONLY | O_CLOEXEC);
    struct stat facts;
    if (file < 0 || fstat(file, &facts) != 0 || facts.st_size < LEAST) fail("the image cannot be read");
    size_t size = (size_t)facts.st_size;
    const unsigned char *image = mmap(NULL, size, PROT_READ, MAP_PRIVATE, file, 0);
    if (image == MAP_FAILED) fail("the image cannot be read");
    for (size_t at = 0; at + 8 <= size; at++) {
        for (uint32_t number = first[sum(image + at)]; number != 0; number = needles[number - 1].next) {
            struct needle *one = &needles[number - 1];
            if (one->found >= PLACES || one->count > size - at) continue;
            if (memcmp(image + at, one->bytes, one->count) != 0) continue;
            one->found++;
            printf("%u %zu\n", number - 1, at);
        }
    }
    return 0;
}
