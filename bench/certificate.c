/* SPDX-License-Identifier: MIT
 *
 * Made with the `openssl` command, as a person would: an authority that signs itself, and a
 * certificate that it signs. Keys are on a curve, which takes no time. What was used to make them
 * stays in the server's folder, and goes with it.
 */
#include "certificate.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "process.h"

#define AUTHORITY_KEY_FILE "authority.key"

/* Both commands begin like this. */
#define NEW_CERTIFICATE                                                                          \
    "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", \
        "-days", "1"

static void child_run(const char *folder, char *const *arguments)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (chdir(folder) != 0 || null < 0 || dup2(null, 0) < 0 || dup2(null, 1) < 0 ||
        dup2(null, 2) < 0)
        _exit(1);
    execvp(arguments[0], arguments);
    _exit(127);
}

static bool run(const char *folder, char *const *arguments, struct result *result)
{
    int status = 0;
    pid_t child = process_fork();
    if (child == 0)
        child_run(folder, arguments);
    if (child > 0 && waitpid(child, &status, 0) == child && status == 0)
        return true;
    return result_fail(result, "openssl made no certificate (wait status %d); is it installed?",
                       status);
}

bool certificates_make(const char *folder, struct result *result)
{
    char *const authority[] = {NEW_CERTIFICATE,
                               "-subj",
                               "/CN=holdfast-bench authority",
                               "-keyout",
                               AUTHORITY_KEY_FILE,
                               "-out",
                               AUTHORITY_FILE,
                               NULL};
    char *const server[] = {NEW_CERTIFICATE,
                            "-subj",
                            "/CN=holdfast-bench",
                            "-CA",
                            AUTHORITY_FILE,
                            "-CAkey",
                            AUTHORITY_KEY_FILE,
                            "-addext",
                            "subjectAltName=IP:127.0.0.1",
                            "-addext",
                            "basicConstraints=critical,CA:FALSE",
                            "-keyout",
                            KEY_FILE,
                            "-out",
                            CERTIFICATE_FILE,
                            NULL};
    return run(folder, authority, result) && run(folder, server, result);
}
