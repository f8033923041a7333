/* SPDX-License-Identifier: MIT */
/* The shared library as a plugin has it: loaded, used, closed and unloaded, while a name look-up
 * still hangs in a thread of the library. Nobody can wait for that thread, so its code must stay.
 * The look-up here is our own getaddrinfo(), which the library finds before the system's. */
#include <dlfcn.h>
#include <netdb.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include <cmocka.h>

#include <holdfast.h>

static atomic_int hanging, over;
static atomic_bool may_end;

static void pause_a_little(void)
{
    nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

#define EVENTUALLY(condition)                                    \
    do {                                                         \
        for (int left = 10000; !(condition) && left > 0; left--) \
            pause_a_little();                                    \
        assert_true(condition);                                  \
    } while (0)

__attribute__((visibility("default"))) int getaddrinfo(const char *host, const char *service,
                                                       const struct addrinfo *hints,
                                                       struct addrinfo **found)
{
    (void)host;
    (void)service;
    (void)found;
    if (hints != NULL && (hints->ai_flags & AI_NUMERICHOST) != 0)
        return EAI_NONAME;
    atomic_fetch_add(&hanging, 1);
    while (!atomic_load(&may_end))
        pause_a_little();
    atomic_fetch_add(&over, 1);
    return EAI_NONAME;
}

/* POSIX promises that the address of a function fits into a pointer. */
#define FIND(library, name) ((__typeof__(&name))(uintptr_t)dlsym(library, #name))

static void use(void *library)
{
    hf_client *client;
    hf_hold *hold;
    hf_client_options options = {
        .size = sizeof(options), .call_timeout_ms = 100, .connect_timeout_ms = 50};
    assert_int_equal(FIND(library, hf_open)("redis://nowhere", &options, &client, NULL), HF_OK);
    assert_int_equal(FIND(library, hf_acquire)(client, "x", NULL, &hold, NULL), HF_EUNAVAILABLE);
    FIND(library, hf_close)(client);
}

static void a_look_up_may_hang_when_the_library_is_unloaded(void **state)
{
    (void)state;
    void *library = dlopen(HOLDFAST_LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL)
        fail_msg("%s", dlerror());
    use(library);
    int begun = atomic_load(&hanging);
    assert_true(begun > 0);
    assert_int_equal(dlclose(library), 0);
    atomic_store(&may_end, true);
    EVENTUALLY(atomic_load(&over) == begun);
    for (int i = 0; i < 50; i++)
        pause_a_little(); /* the threads go back into the library, and end */
    library = dlopen(HOLDFAST_LIBRARY, RTLD_NOW | RTLD_LOCAL);
    assert_non_null(library);
    use(library);
    assert_int_equal(dlclose(library), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_look_up_may_hang_when_the_library_is_unloaded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
