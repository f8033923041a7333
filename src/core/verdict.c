/* SPDX-License-Identifier: MIT */
/* What an error reply means for us: one table of the server's error codes. A code that is not in
 * it is final: repeating a request that the server does not understand helps nobody. */
#include <string.h>

#include "base/text.h"
#include "core/fail.h"
#include "core/state.h"

static const struct {
    const char *code;
    hf__verdict verdict;
    hf_status status;
    const char *advice; /* put before the server's own words; may be empty */
} codes[] = {
    {"NOSCRIPT", HF__VERDICT_RELOAD, HF_EUNAVAILABLE, ""},
    {"LOADING", HF__VERDICT_PASSING, HF_EUNAVAILABLE, "is loading its data: "},
    {"BUSY", HF__VERDICT_PASSING, HF_EUNAVAILABLE, "is busy running somebody's script: "},
    {"OOM", HF__VERDICT_PASSING, HF_EUNAVAILABLE, "is out of memory: "},
    {"MISCONF", HF__VERDICT_PASSING, HF_EUNAVAILABLE, "refuses writes: "},
    {"NOREPLICAS", HF__VERDICT_PASSING, HF_EUNAVAILABLE, "has too few replicas: "},
    {"TRYAGAIN", HF__VERDICT_PASSING, HF_EUNAVAILABLE, ""},
    {"CLUSTERDOWN", HF__VERDICT_PASSING, HF_EUNAVAILABLE, ""},
    {"READONLY", HF__VERDICT_MOVED, HF_EUNAVAILABLE, "is a replica: "},
    {"MASTERDOWN", HF__VERDICT_MOVED, HF_EUNAVAILABLE, "is a replica without its primary: "},
    {"ERR max number of clients", HF__VERDICT_MOVED, HF_EUNAVAILABLE, "is full: "},
    {"MOVED", HF__VERDICT_FINAL, HF_ESERVER, "is a cluster node, which is not supported yet: "},
    {"ASK", HF__VERDICT_FINAL, HF_ESERVER, "is a cluster node, which is not supported yet: "},
    {"TOOLARGE", HF__VERDICT_FINAL, HF_ESERVER, "answers with too much: "}, /* see resp/reader.c */
    {"WRONGTYPE", HF__VERDICT_FINAL, HF_ESERVER, "has another type of key at the lock's name: "},
    {"NOAUTH", HF__VERDICT_FINAL, HF_EDENIED, "asks for a password: "},
    {"WRONGPASS", HF__VERDICT_FINAL, HF_EDENIED, "refuses the password: "},
    {"NOPERM this user has no permissions to access one of the keys", HF__VERDICT_KEY, HF_EDENIED,
     "denies a permission (see docs/wire.md): "},
    {"NOPERM No permissions to access a key", HF__VERDICT_KEY, HF_EDENIED,
     "denies a permission (see docs/wire.md): "},
    {"NOPERM", HF__VERDICT_FINAL, HF_EDENIED, "denies a permission (see docs/wire.md): "},
    {"DENIED", HF__VERDICT_FINAL, HF_EDENIED, "does not let this host in: "},
    {"ERR The user executing the script", HF__VERDICT_COMMAND, HF_EDENIED,
     "denies a permission (see docs/wire.md): "},
    {"The user executing the script", HF__VERDICT_COMMAND, HF_EDENIED,
     "denies a permission (see docs/wire.md): "},
    {"ERR AUTH", HF__VERDICT_FINAL, HF_EDENIED, "refuses the password: "},
    {"ERR invalid password", HF__VERDICT_FINAL, HF_EDENIED, "refuses the password: "},
};

enum { CODES = sizeof(codes) / sizeof(codes[0]) };

/* A code matches as whole words at the start of the text. */
static bool starts_with_code(const char *text, const char *code)
{
    size_t length = strlen(code);
    return strncmp(text, code, length) == 0 && (text[length] == ' ' || text[length] == '\0');
}

static int find_code(const char *text)
{
    int i = 0;
    while (i < CODES && !starts_with_code(text, codes[i].code))
        i++;
    return i;
}

/* Servers before 7.0 wrap an error that happened inside a script, in more than one way:
 * "ERR Error running script (call to f_...): @user_script:5: @user_script: 5: -OOM command ..."
 * so the code may stand anywhere behind that. CODES: none is known. */
static int find_wrapped_code(const char *text)
{
    int found = CODES;
    const char *at = strncmp(text, "ERR Error running script", 24) == 0 ? text + 24 : "";
    for (; *at != '\0' && found == CODES; at++)
        if (*at == ' ' || *at == '-')
            found = find_code(at + 1);
    return found;
}

hf__verdict hf__judge(const hf__reply *reply, const char *server, hf_error *error)
{
    char shown[120];
    hf__printable(shown, sizeof(shown), reply->text, reply->length);
    int found = find_code(reply->text);
    if (found == CODES)
        found = find_wrapped_code(reply->text);
    if (found < CODES) {
        hf__fail(error, codes[found].status, "%s %s%s", server, codes[found].advice, shown);
        return codes[found].verdict;
    }
    hf__fail(error, HF_ESERVER, "%s refuses: %s", server, shown);
    return HF__VERDICT_FINAL;
}

bool hf__may_pass(hf_status status)
{
    return status == HF_EBUSY || status == HF_EUNKNOWN || status == HF_EUNAVAILABLE;
}
