/* main.c: hands files to a fuzz target, one after the other, where libFuzzer is not. Before each it writes the file's
 * name to standard output, so that the last one is known when the program ends by a signal. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t count);

/* What targets say to the sanitizer, which is not here either. */
void __lsan_disable(void) {}
void __lsan_enable(void) {}

/* No input that is kept has more. */
enum { MOST = 64 << 10 };

int main(int argc, char **argv) {
    for (int at = 1; at < argc; at++) {
        printf("%s\n", argv[at]);
        fflush(stdout);
        FILE *file = fopen(argv[at], "rb");
        if (!file) return 66;
        /* One byte more than there may be. */
        uint8_t *data = malloc(MOST + 1);
        size_t count = data ? fread(data, 1, MOST + 1, file) : 0;
        fclose(file);
        if (count > MOST) return 65;
        LLVMFuzzerTestOneInput(data, count);
        free(data);
    }
    return 0;
}
