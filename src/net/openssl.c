/* SPDX-License-Identifier: MIT */
/* Loads OpenSSL when it is first needed, and not with the program: who does without TLS should not
 * pay for it with the start and the memory of each process (docs/design.md has the numbers).
 *
 * It is loaded once and stays: OpenSSL leaves functions behind that run when threads and the
 * process end. A failure is not kept, for it may pass: the process may have had no descriptor left.
 * A fork waits until we are done, so that a child finds all of OpenSSL or nothing. */
#include "net/openssl.h"

#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

#include "core/fail.h"
#include "net/fork.h"

#define STRING(x)   #x
#define VALUE_OF(x) STRING(x)
#define NAME(name)  #name,

const char *hf__openssl_file = "libssl.so." VALUE_OF(OPENSSL_SHLIB_VERSION);
struct hf__openssl hf__openssl;

static const char *const names[] = {HF__OPENSSL_MAP(NAME)};
static pthread_mutex_t mutex; /* made with the guard */
static pthread_once_t once = PTHREAD_ONCE_INIT;
static hf__fork_guard fork_guard;
static bool guarded, loaded;

/* ISO C has no conversion from an object's address to a function's; POSIX promises that they look
 * the same. So the members are written as bytes, in the order of their names. */
_Static_assert(sizeof(hf__openssl) == sizeof(names), "as many functions as names, each a pointer");

/* What libssl needs is searched as well, so libcrypto's functions are found too. */
static bool find_functions(void *library)
{
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        void *function = dlsym(library, names[i]);
        if (function == NULL)
            return false;
        memcpy((char *)&hf__openssl + i * sizeof(function), &function, sizeof(function));
    }
    return true;
}

static hf_status load(hf_error *error)
{
    void *library = dlopen(hf__openssl_file, RTLD_NOW | RTLD_LOCAL);
    if (library != NULL && find_functions(library))
        return HF_OK;
    hf_status status =
        hf__fail(error, HF_EINVAL, "TLS needs OpenSSL %d: %s", OPENSSL_VERSION_MAJOR, dlerror());
    if (library != NULL)
        dlclose(library); /* nothing of it has been called */
    return status;
}

static void guard_against_forks(void)
{
    guarded = hf__fork_guard_add(&fork_guard, &mutex);
}

hf_status hf__openssl_load(hf_error *error)
{
    hf_status status = HF_OK;
    pthread_once(&once, guard_against_forks);
    if (!guarded)
        return hf__fail(error, HF_ENOMEM, "out of memory");
    pthread_mutex_lock(&mutex);
    if (!loaded)
        status = load(error);
    loaded = status == HF_OK;
    pthread_mutex_unlock(&mutex);
    return status;
}
