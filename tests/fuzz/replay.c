/* SPDX-License-Identifier: MIT */
/* Runs a fuzz target without libFuzzer, so that its corpus is part of the normal tests: over every
 * file of the folders given, and over every file cut off after each of its bytes. Each input is
 * handed over in a block of exactly its size, so that a byte read beyond it is seen.
 *
 *     replay FOLDER...
 *
 * A crash names no input by itself, so the file and the length in work are kept for a debugger and
 * for the handler below, which says them when a check fails or an input takes too long. An empty
 * folder is a failure: a test that ran nothing has shown nothing. */
#include <dirent.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "fuzz.h"

enum { PATH_SIZE = 1024, FILE_SIZE_MAX = 65536, CUTS_MAX = 1024, SECONDS_MAX = 5 };

static char current[PATH_SIZE + 64];

/* Writes only what is ready: nothing else is allowed in here. */
static void name_input(int signal_number)
{
    (void)signal_number;
    if (write(STDERR_FILENO, current, strlen(current)) < 0)
        _exit(1);
    signal(SIGABRT, SIG_DFL);
    abort();
}

static void run_one(const char *path, const uint8_t *bytes, size_t count)
{
    uint8_t *exact = malloc(count > 0 ? count : 1);
    REQUIRE(exact != NULL);
    snprintf(current, sizeof(current), "while running %s, first %zu bytes\n", path, count);
    if (count > 0)
        memcpy(exact, bytes, count);
    alarm(SECONDS_MAX); /* or it runs for ever */
    LLVMFuzzerTestOneInput(exact, count);
    alarm(0);
    free(exact);
}

/* All cuts of a small file, evenly spread ones of a large one. */
static void run_file(const char *path)
{
    static uint8_t bytes[FILE_SIZE_MAX];
    FILE *file = fopen(path, "rb");
    REQUIRE(file != NULL);
    size_t count = fread(bytes, 1, sizeof(bytes), file);
    fclose(file);
    size_t stride = count / CUTS_MAX + 1;
    for (size_t cut = 0; cut < count; cut += stride)
        run_one(path, bytes, cut);
    run_one(path, bytes, count);
}

static int run_folder(const char *folder)
{
    DIR *listing = opendir(folder);
    struct dirent *entry;
    char path[PATH_SIZE];
    int files = 0;
    REQUIRE(listing != NULL);
    while ((entry = readdir(listing)) != NULL) {
        if (entry->d_name[0] == '.')
            continue;
        int length = snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
        REQUIRE(length > 0 && length < PATH_SIZE);
        run_file(path);
        files++;
    }
    closedir(listing);
    return files;
}

int main(int count, char **folders)
{
    int files = 0;
    signal(SIGABRT, name_input);
    signal(SIGALRM, name_input);
    for (int i = 1; i < count; i++)
        files += run_folder(folders[i]);
    printf("%d files\n", files);
    return files > 0 ? 0 : 1;
}
