/* SPDX-License-Identifier: MIT */
/* OpenSSL is loaded for the first client that wants TLS, and for nobody else. Where it cannot be, a
 * client with TLS is not opened and the text says why; others do not notice. The tests build on
 * each other: once it is loaded, it stays. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "net/openssl.h"
#include "wired.h"

#define PROTECTED "rediss://localhost:1" /* which hf_open() does not contact */

static const char *right_file;

static bool is_loaded(void)
{
    char line[512];
    bool found = false;
    FILE *maps = fopen("/proc/self/maps", "re");
    assert_non_null(maps);
    while (!found && fgets(line, sizeof(line), maps) != NULL)
        found = strstr(line, "libssl") != NULL || strstr(line, "libcrypto") != NULL;
    fclose(maps);
    return found;
}

static void a_client_without_tls_does_not_load_it(void **state)
{
    (void)state;
    hf_client *client = OPEN();
    hf_hold *hold = acquire(client, "x", NULL);
    assert_false(is_loaded());
    release(&hold, HF_OK);
    assert_int_equal(hf_close(client), HF_OK);
}

static void refuse(const char *file, const char *words)
{
    hf_client *client = (hf_client *)&client; /* to be cleared */
    hf_error error;
    hf__openssl_file = file;
    expect_status(hf_open(PROTECTED, NULL, &client, &error), HF_EINVAL, &error);
    hf__openssl_file = right_file;
    assert_null(client);
    assert_non_null(strstr(error.text, "TLS needs OpenSSL 3: "));
    assert_non_null(strstr(error.text, words));
}

static void there_is_none(void **state)
{
    (void)state;
    refuse("libssl.so.none", "libssl.so.none: cannot open shared object file");
}

static void it_is_something_else(void **state)
{
    (void)state;
    refuse("libc.so.6", "undefined symbol: ");
}

static void *open_and_close(void *error)
{
    hf_client *client;
    hf_open(PROTECTED, NULL, &client, error);
    hf_close(client);
    return NULL;
}

static void it_is_there_now_for_many_at_once(void **state)
{
    enum { THREADS = 4 };
    pthread_t threads[THREADS];
    hf_error errors[THREADS];
    (void)state;
    assert_false(is_loaded());
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, open_and_close, &errors[i]), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < THREADS; i++)
        expect_status(errors[i].status, HF_OK, &errors[i]);
    assert_true(is_loaded());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SEEING(a_client_without_tls_does_not_load_it),
        SEEING(there_is_none),
        SEEING(it_is_something_else),
        SEEING(it_is_there_now_for_many_at_once),
    };
    right_file = hf__openssl_file;
    wired_install_gate();
    return cmocka_run_group_tests_name("OpenSSL", tests, NULL, NULL);
}
