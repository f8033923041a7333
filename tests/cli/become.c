/* SPDX-License-Identifier: MIT */
/* A command that changes its user, as sudo does, for the tests: become FILE [keep]. As a
 * set-user-ID copy of itself it becomes its owner for good, so that whoever started it cannot
 * signal it any more; with "keep" it keeps its real user, as ping does. It writes its pid to FILE,
 * takes signals as they come, and ends with code 7 as soon as FILE.end exists. */
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { LOOK_MS = 5, CODE = 7 };

/* With sanitizers: a set-user-ID program may not trace itself to look for leaks. */
const char *__asan_default_options(void);
__attribute__((visibility("default"))) const char *__asan_default_options(void)
{
    return "detect_leaks=0";
}

int main(int count, char **words)
{
    char end[4096];
    if (count < 2 || snprintf(end, sizeof(end), "%s.end", words[1]) >= (int)sizeof(end))
        return 64;
    uid_t user = geteuid();
    if (count == 2 && setresuid(user, user, user) != 0)
        return 1;
    FILE *file = fopen(words[1], "w");
    if (file == NULL)
        return 1;
    (void)fprintf(file, "%d\n", (int)getpid());
    (void)fclose(file);
    while (access(end, F_OK) != 0)
        (void)poll(NULL, 0, LOOK_MS);
    return CODE;
}
