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
    {"WRONGTYPE", HF__VERDICT_FINAL, HF_ESERVER, "has another type of key at the lock's name: "},
    {"NOAUTH", HF__VERDICT_FINAL, HF_EDENIED, "asks for a password: "},
    {"WRONGPASS", HF__VERDICT_FINAL, HF_EDENIED, "refuses the password: "},
    {"NOPERM", HF__VERDICT_FINAL, HF_EDENIED, "denies a permission (see docs/wire.md): "},
    {"DENIED", HF__VERDICT_FINAL, HF_EDENIED, "does not let this host in: "},
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

/* Servers before 7.0 wrap an error that happened inside a script:
 * "ERR Error running script (call to f_...): @user_script:5: OOM command not allowed ..." */
static const char *unwrap(const char *text)
{
    const char *inner = NULL;
    if (strncmp(text, "ERR Error running script", 24) == 0) {
        inner = strstr(text, "@user_script");
        inner = inner != NULL ? strchr(inner, ' ') : NULL;
    }
    while (inner != NULL && (*inner == ' ' || *inner == '-'))
        inner++;
    return inner != NULL ? inner : text;
}

hf__verdict hf__judge(const hf__reply *reply, const char *server, hf_error *error)
{
    const char *text = unwrap(reply->text);
    char shown[120];
    hf__printable(shown, sizeof(shown), reply->text, reply->length);
    for (int i = 0; i < CODES; i++) {
        if (starts_with_code(text, codes[i].code)) {
            hf__fail(error, codes[i].status, "%s %s%s", server, codes[i].advice, shown);
            return codes[i].verdict;
        }
    }
    hf__fail(error, HF_ESERVER, "%s refuses: %s", server, shown);
    return HF__VERDICT_FINAL;
}

bool hf__may_pass(hf_status status)
{
    return status == HF_EBUSY || status == HF_EUNKNOWN || status == HF_EUNAVAILABLE;
}
