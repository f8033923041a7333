/* SPDX-License-Identifier: MIT */
/* What can be said about a server before a byte is sent: who else could read what we say to it. */
#include <string.h>

#include "doctor.h"

static bool begins(const char *text, const char *start)
{
    return strncmp(text, start, strlen(start)) == 0;
}

/* What follows the scheme, and the last '@' in it; NULL: no '@' before the path. */
static const char *authority_of(const char *url, const char **at)
{
    const char *start = strstr(url, "://");
    start = start != NULL ? start + 3 : url;
    size_t length = begins(url, "unix:") ? strlen(start) : strcspn(start, "/?");
    *at = memrchr(start, '@', length);
    return start;
}

static bool is_this_machine(const char *host)
{
    size_t length = host[0] == '[' ? strcspn(host, "]") + 1 : strcspn(host, ":/?");
    if (begins(host, "127."))
        return strspn(host, "0123456789.") == length;
    return (length == 9 && begins(host, "localhost")) || (length == 5 && begins(host, "[::1]"));
}

static void look_at_the_way(const struct session_options *options, const char *url,
                            const char *host, struct findings *findings)
{
    if (begins(url, "unix:"))
        findings_add(findings, FINDING_OK, "way", "a socket of this machine");
    else if (begins(url, "rediss:") && options->tls_insecure)
        findings_add(findings, FINDING_WARNING, "way",
                     "TLS, but with --tls-insecure anybody can pretend to be the server; name who "
                     "signs its certificate with --tls-ca");
    else if (begins(url, "rediss:"))
        findings_add(findings, FINDING_OK, "way", "TLS");
    else if (is_this_machine(host))
        findings_add(findings, FINDING_OK, "way", "plain text, within this machine");
    else
        findings_add(findings, FINDING_WARNING, "way",
                     "plain text: whoever is on the way can read the password and change locks; "
                     "use rediss://");
}

void doctor_look_at_address(const struct session_options *options, const char *url, bool typed,
                            struct findings *findings)
{
    const char *at;
    const char *start = authority_of(url, &at);
    look_at_the_way(options, url, at != NULL ? at + 1 : start, findings);
    bool has_password = at != NULL && memchr(start, ':', (size_t)(at - start)) != NULL;
    if (has_password && typed)
        findings_add(findings, FINDING_WARNING, "password",
                     "it stands on the command line, where everybody on this machine can see it "
                     "(ps); use --password-file, --password-env or HOLDFAST_URL");
}
