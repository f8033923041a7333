/* SPDX-License-Identifier: MIT */
/* Goal: a password may come from a variable, a file or a function, may change while the client
 * lives, and is found nowhere afterwards: in no text, in no line of the log, and not in memory.
 *
 * For the last, the program runs itself as a child that never had the password but by way of the
 * library, and looks through all of its memory that can be written. It knows what to look for only
 * in a disguise.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "protected.h"

#define MASK 0x5a
#define M(c) (char)((c) ^ MASK)

static const char masked[] = {M('n'), M('e'), M('v'), M('e'), M('r'), M('-'),
                              M('t'), M('o'), M('-'), M('b'), M('e'), M('-'),
                              M('s'), M('e'), M('e'), M('n'), M('-'), M('7')};

enum { SECRET = sizeof(masked), SLOW_MS = 700 };

static char secret[SECRET + 1]; /* of the tests, not of the child */
static char path[128];
static hf_client *client;
static hf_hold *hold;
static hf_error error;
static struct attempt waiter;

static void unmask(char *place)
{
    for (size_t i = 0; i < SECRET; i++)
        place[i] = (char)(masked[i] ^ MASK);
    place[SECRET] = '\0';
}

/* In a way that no compiler leaves out. */
static void forget(char *place, size_t count)
{
    for (volatile char *at = place; count > 0; count--)
        *at++ = '\0';
}

/* ---- Verbs ----------------------------------------------------------------------------------- */

static void give_password(const char *password)
{
    char command[128];
    (void)snprintf(command, sizeof(command), "ACL SETUSER ann reset on >%s ~* &* +@all", password);
    assert_string_equal(raw(server, command), "OK");
}

static void write_file(const char *text)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static int begin(void **state)
{
    (void)state;
    start_server(state);
    unmask(secret);
    give_password(secret);
    (void)snprintf(path, sizeof(path), "%s/password", server->folder);
    forget_log();
    hold = NULL;
    return 0;
}

static const char *url_of(const char *credentials)
{
    static char url[256];
    (void)snprintf(url, sizeof(url), "redis://%s127.0.0.1:%d", credentials, server->port);
    return url;
}

static void open_with_file(void)
{
    open_client_at(url_of("ann@"), &client, HF_CLIENT(.password_file = path, .log = keep_log));
}

static void expect_denied(const char *words)
{
    hf_hold *none;
    int64_t start = now_ms();
    EXPECT(HF_EDENIED, hf_acquire(client, "lock", HF_ACQUIRE(.wait_ms = 20000), &none, &error));
    EXPECT_TOOK(start, 0, 500);
    assert_null(none);
    expect_says(error.text, words);
    assert_null(strstr(error.text, secret));
}

static void expect_bad(const char *url, const hf_client_options *options, const char *words)
{
    hf_client *none;
    EXPECT(HF_EINVAL, hf_open(url, options, &none, &error));
    assert_null(none);
    expect_says(error.text, words);
    assert_null(strstr(error.text, secret));
}

static void cut_connections(void)
{
    assert_true(raw_number(server, "CLIENT KILL USER ann") > 0);
}

/* ---- A variable ------------------------------------------------------------------------------ */

static void a_variable_is_read_once(void **state)
{
    (void)state;
    assert_int_equal(setenv("HF_TEST_PASSWORD", secret, 1), 0);
    open_client_at(url_of("ann@"), &client, HF_CLIENT(.password_env = "HF_TEST_PASSWORD"));
    assert_int_equal(setenv("HF_TEST_PASSWORD", "another", 1), 0);
    expect_free(client);
    cut_connections();
    hold = acquire_with(client, HF_ACQUIRE(.wait_ms = 5000));
    release(&hold);
    assert_int_equal(unsetenv("HF_TEST_PASSWORD"), 0);
    expect_bad(url_of("ann@"), HF_CLIENT(.password_env = "HF_TEST_PASSWORD"), "password_env");
    static char longest[HF_PASSWORD_MAX + 2];
    memset(longest, 'p', sizeof(longest) - 1);
    assert_int_equal(setenv("HF_TEST_PASSWORD", longest, 1), 0);
    expect_bad(url_of("ann@"), HF_CLIENT(.password_env = "HF_TEST_PASSWORD"), "4096");
    assert_int_equal(unsetenv("HF_TEST_PASSWORD"), 0);
}

/* ---- A file ---------------------------------------------------------------------------------- */

/* The unit tests have more kinds of files. As root, there is none that cannot be read. */
static void a_file_is_read_for_each_connection(void **state)
{
    (void)state;
    open_with_file(); /* it need not be there yet */
    expect_denied("password: cannot read");
    expect_says(error.text, path);
    write_file("wrong\n");
    expect_denied("refuses the password");
    write_file(secret);
    hold = acquire_with(client, HF_ACQUIRE(.wait_ms = 5000));
    release(&hold);
}

static void a_rotated_file_is_picked_up(void **state)
{
    (void)state;
    write_file(secret);
    open_with_file();
    expect_free(client);
    give_password("the-next-one");
    write_file("the-next-one\r\n");
    cut_connections();
    hold = acquire_with(client, HF_ACQUIRE(.wait_ms = 5000));
    release(&hold);
}

/* The server changes first, and the file a little later: renewals are refused in between. */
static void a_hold_survives_a_rotation(void **state)
{
    (void)state;
    write_file(secret);
    open_with_file();
    hold = acquire_with(client, HF_ACQUIRE(.lease_ms = 10000, .renew_interval_ms = 50));
    WAIT_UNTIL(stats_of(client)->renewals > 0, 5000);
    give_password("the-next-one");
    cut_connections();
    WAIT_UNTIL(logged("refuses the password") > 0, 5000);
    assert_true(hf_is_valid(hold));
    write_file("the-next-one\n");
    uint64_t before = stats_of(client)->renewals;
    WAIT_UNTIL(stats_of(client)->renewals > before, 5000);
    assert_int_equal(hf_hold_state(hold), HF_SAFE);
    release(&hold);
}

/* ---- A function ------------------------------------------------------------------------------ */

static struct {
    atomic_int calls;
    atomic_int inside;
    atomic_bool refuses, is_slow;
    hf_status acquired, closed;
} source;

static bool fetch(void *arg, hf_credentials *credentials)
{
    atomic_fetch_add(&source.calls, 1);
    atomic_fetch_add(&source.inside, 1);
    if (arg != NULL) { /* the client that it is for, once it is open */
        hf_hold *none;
        source.acquired = hf_acquire(*(hf_client **)arg, "other", NULL, &none, NULL);
        source.closed = hf_close(*(hf_client **)arg);
    }
    if (atomic_load(&source.is_slow))
        sleep_ms(SLOW_MS);
    (void)snprintf(credentials->user, sizeof(credentials->user), "ann");
    (void)snprintf(credentials->password, sizeof(credentials->password), "%s", secret);
    atomic_fetch_sub(&source.inside, 1);
    return !atomic_load(&source.refuses);
}

static int begin_source(void **state)
{
    atomic_store(&source.calls, 0);
    atomic_store(&source.inside, 0);
    atomic_store(&source.refuses, false);
    atomic_store(&source.is_slow, false);
    return begin(state);
}

static void open_with_function(void)
{
    open_client_at(url_of(""), &client, HF_CLIENT(.credentials = fetch, .log = keep_log));
}

static void a_function_is_asked_for_each_connection(void **state)
{
    (void)state;
    char name[32];
    open_with_function();
    assert_int_equal(atomic_load(&source.calls), 0);
    for (int i = 0; i < 40; i++) {
        (void)snprintf(name, sizeof(name), "lock %d", i);
        EXPECT(HF_OK, hf_acquire(client, name, NULL, &hold, &error));
        release(&hold);
    }
    assert_in_range(atomic_load(&source.calls), 4, 5); /* and perhaps one for messages */
    cut_connections();
    hold = acquire_with(client, HF_ACQUIRE(.wait_ms = 5000));
    release(&hold);
    assert_true(atomic_load(&source.calls) > 4);
}

static void a_function_may_have_none(void **state)
{
    (void)state;
    open_with_function();
    atomic_store(&source.refuses, true);
    expect_denied("credentials function");
    atomic_store(&source.refuses, false);
    hold = acquire_with(client, HF_ACQUIRE(.wait_ms = 5000));
    release(&hold);
}

static void calls_that_wait_turn_back_inside(void **state)
{
    (void)state;
    source.acquired = source.closed = HF_OK;
    open_client_at(url_of(""), &client,
                   HF_CLIENT(.credentials = fetch, .credentials_arg = &client, .links = 1));
    hf_hold *got;
    EXPECT(HF_OK, hf_acquire(client, "lock", NULL, &got, &error));
    EXPECT_STATUS(HF_EDEADLK, source.acquired);
    EXPECT_STATUS(HF_EDEADLK, source.closed);
    release(&got);
}

/* Begins an acquire of a lock on another connection than the first one, so that the function is
 * asked once more; returns when that is so. */
static void begin_on_another_link(void)
{
    static char name[32];
    atomic_store(&source.is_slow, true);
    for (int i = 0; atomic_load(&source.inside) == 0; i++) {
        (void)snprintf(name, sizeof(name), "lock %d", i);
        attempt_begin(&waiter, client, name, HF_ACQUIRE(.owner = NULL));
        WAIT_UNTIL(attempt_is_over(&waiter) || atomic_load(&source.inside) > 0, 5000);
        if (atomic_load(&source.inside) > 0)
            return;
        assert_int_equal(attempt_end(&waiter), HF_OK);
        release(&waiter.hold);
    }
}

/* The call that needs the connection waits for it, and not those on others. (If the client's own
 * thread makes the connection, they may, as for the log hook.) */
static void a_slow_function_is_waited_for_by_one_call(void **state)
{
    (void)state;
    int rounds = 0;
    open_with_function();
    expect_free(client); /* this connection is up */
    begin_on_another_link();
    int64_t longest = 0;
    for (; atomic_load(&source.inside) > 0; rounds++) {
        int64_t start = now_ms();
        expect_free(client);
        longest = now_ms() - start > longest ? now_ms() - start : longest;
    }
    assert_int_equal(attempt_end(&waiter), HF_OK);
    release(&waiter.hold);
    assert_in_range(longest, 0, SLOW_MS / 2);
    assert_true(rounds > 1);
}

/* A server that hangs up right away says why. Nobody may read that before the greeting is out, also
 * if others of the client are busy reading. */
static void what_the_server_says_meanwhile_is_heard(void **state)
{
    (void)state;
    open_with_function();
    hold = acquire_with(client, HF_ACQUIRE(.lease_ms = 20000, .renew_interval_ms = 20));
    WAIT_UNTIL(stats_of(client)->renewals > 1, 5000);
    assert_string_equal(raw(server, "CONFIG SET maxclients 2"), "OK"); /* of raw(), and this */
    begin_on_another_link();
    while (atomic_load(&source.inside) > 0)
        EXPECT(HF_OK, hf_extend(hold, 0, &error));
    assert_int_equal(attempt_end(&waiter), HF_EUNAVAILABLE);
    expect_says(waiter.error.text, "max number of clients");
    assert_string_equal(raw(server, "CONFIG SET maxclients 100"), "OK");
    release(&hold);
}

static atomic_int acquired_count;

static void acquired(void *arg, hf_hold *got, const hf_error *why)
{
    *(hf_status *)arg = why->status;
    if (got != NULL)
        (void)hf_release_nowait(&got);
    atomic_fetch_add(&acquired_count, 1);
}

static void a_function_in_an_own_loop(void **state)
{
    (void)state;
    static hf_status status = HF_EINTERNAL;
    atomic_store(&acquired_count, 0);
    open_client_at(url_of(""), &client,
                   HF_CLIENT(.credentials = fetch, .own_loop = true, .log = keep_log));
    EXPECT(HF_OK, hf_acquire_async(client, "lock", HF_ACQUIRE(.wait_ms = 5000), acquired, &status,
                                   NULL, &error));
    int64_t give_up = now_ms() + 10000;
    while (atomic_load(&acquired_count) == 0 && now_ms() < give_up) {
        struct pollfd look = {.fd = hf_loop_descriptor(client), .events = POLLIN};
        (void)poll(&look, 1, 50);
        EXPECT(HF_OK, hf_process(client, &error));
    }
    EXPECT_STATUS(HF_OK, status);
    assert_true(atomic_load(&source.calls) >= 1);
}

/* ---- One source at most ---------------------------------------------------------------------- */

static void one_source_is_enough(void **state)
{
    (void)state;
    char url[256];
    (void)snprintf(url, sizeof(url), "redis://ann:%s@127.0.0.1:%d", secret, server->port);
    assert_int_equal(setenv("HF_TEST_PASSWORD", secret, 1), 0);
    expect_bad(url, HF_CLIENT(.password_env = "HF_TEST_PASSWORD"), "once");
    expect_bad(url, HF_CLIENT(.password_file = path), "once");
    expect_bad(url, HF_CLIENT(.credentials = fetch), "once");
    expect_bad(url_of(""), HF_CLIENT(.password_env = "HF_TEST_PASSWORD", .password_file = path),
               "once");
    expect_bad(url_of(""), HF_CLIENT(.password_file = path, .credentials = fetch), "once");
    expect_bad(url_of("ann@"), NULL, "no password");
    assert_int_equal(unsetenv("HF_TEST_PASSWORD"), 0);
}

/* ---- Never shown ----------------------------------------------------------------------------- */

static void try_to_be_let_in(const char *url, const hf_client_options *options)
{
    hf_hold *got;
    hf_client_options logging = *options;
    logging.log = keep_log;
    open_client_at(url, &client, &logging);
    for (int i = 0; i < 2; i++) {
        hf_status status = hf_acquire(client, "lock", HF_ACQUIRE(.wait_ms = 1000), &got, &error);
        assert_true(status == HF_OK || status == HF_EDENIED);
        assert_null(strstr(error.text, secret));
        EXPECT(HF_OK, hf_release(&got, &error));
        (void)raw(server, "CLIENT KILL TYPE normal SKIPME yes");
    }
    EXPECT_STATUS(HF_OK, hf_close(client));
    client = NULL;
}

static void the_password_is_never_shown(void **state)
{
    (void)state;
    char url[256];
    (void)snprintf(url, sizeof(url), "redis://ann:%s@127.0.0.1:%d", secret, server->port);
    write_file(secret);
    for (int right = 1; right >= 0; right--) {
        give_password(right ? secret : "something-else");
        try_to_be_let_in(url, HF_CLIENT(.links = 1));
        try_to_be_let_in(url_of("ann@"), HF_CLIENT(.password_file = path));
        try_to_be_let_in(url_of(""), HF_CLIENT(.credentials = fetch));
    }
    assert_true(logged("connected to") > 0);
    assert_true(logged("refuses the password") > 0);
    assert_int_equal(logged(secret), 0);
}

/* ---- In memory ------------------------------------------------------------------------------- */

static int found_in(const char *bytes, size_t count)
{
    int found = 0;
    for (size_t i = 0; i + SECRET <= count; i++) {
        size_t k = 0;
        while (k < SECRET && (char)(bytes[i + k] ^ MASK) == masked[k])
            k++;
        found += k == SECRET;
    }
    return found;
}

/* How often it is in what this process may write. What is larger than any heap or stack of ours is
 * the sanitizer's. */
static int found_in_memory(void)
{
    enum { LARGEST = 64 << 20, CHUNK = 1 << 20 };
    static char chunk[CHUNK];
    int found = 0;
    char line[512];
    FILE *maps = fopen("/proc/self/maps", "re");
    int memory = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
    while (maps != NULL && memory >= 0 && fgets(line, sizeof(line), maps) != NULL) {
        uint64_t from = 0, to = 0;
        char rights[8] = "";
        if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %7s", &from, &to, rights) != 3 ||
            strncmp(rights, "rw", 2) != 0 || to - from > LARGEST)
            continue;
        for (uint64_t at = from; at < to; at += CHUNK - SECRET) {
            size_t wanted = to - at < CHUNK ? (size_t)(to - at) : CHUNK;
            uint64_t own = (uint64_t)(uintptr_t)chunk;
            ssize_t count =
                at < own + CHUNK && at + wanted > own ? 0 : pread(memory, chunk, wanted, (off_t)at);
            found += count > 0 ? found_in(chunk, (size_t)count) : 0;
        }
    }
    forget(chunk, sizeof(chunk));
    if (maps != NULL)
        (void)fclose(maps);
    (void)close(memory);
    return found;
}

static bool fetch_masked(void *arg, hf_credentials *credentials)
{
    (void)arg;
    unmask(credentials->password);
    return true;
}

/* The child: exit status 0 if all is well, else which step was not. */
static int look_for_secret(const char *url, const char *file, const char *authority)
{
    char *control = malloc(SECRET + 1);
    hf_client *mine;
    hf_hold *got;
    if (control == NULL)
        return 1;
    unmask(control);
    if (found_in_memory() != 1) /* it would be found */
        return 2;
    forget(control, SECRET);
    bool hidden = found_in_memory() == 0;
    free(control);
    if (!hidden)
        return 3;
    hf_client_options options = {.size = sizeof(options), .connect_timeout_ms = 5000};
    options.password_file = file[0] != '\0' ? file : NULL;
    options.credentials = file[0] == '\0' ? fetch_masked : NULL;
    options.tls = authority[0] != '\0' ? HF_TLS(.ca_file = authority) : NULL;
    if (hf_open(url, &options, &mine, NULL) != HF_OK)
        return 4;
    if (hf_acquire(mine, "lock", HF_ACQUIRE(.wait_ms = 10000), &got, NULL) != HF_OK)
        return 5;
    if (found_in_memory() != 0)
        return 6;
    if (hf_release(&got, NULL) != HF_OK || hf_close(mine) != HF_OK)
        return 7;
    return found_in_memory() == 0 ? 0 : 8;
}

/* One that comes in the URL is there as long as the client, and not longer. */
static int look_for_url(const char *before, const char *behind)
{
    char *url = malloc(256);
    hf_client *mine;
    hf_hold *got;
    if (url == NULL)
        return 1;
    size_t length = strlen(before);
    memcpy(url, before, length);
    unmask(url + length);
    memcpy(url + length + SECRET, behind, strlen(behind) + 1);
    if (hf_open(url, NULL, &mine, NULL) != HF_OK)
        return 4;
    forget(url, 256);
    free(url);
    if (hf_acquire(mine, "lock", HF_ACQUIRE(.wait_ms = 10000), &got, NULL) != HF_OK)
        return 5;
    if (found_in_memory() != 1)
        return 6;
    if (hf_release(&got, NULL) != HF_OK || hf_close(mine) != HF_OK)
        return 7;
    return found_in_memory() == 0 ? 0 : 8;
}

static void run_again(int line, void *arg)
{
    (void)line;
    char *const *words = arg;
    (void)execv("/proc/self/exe", words);
}

static void expect_hidden(const char *mode, const char *first, const char *next, const char *last)
{
    char *words[] = {(char *)(uintptr_t) "secrets", (char *)(uintptr_t)mode,
                     (char *)(uintptr_t)first,      (char *)(uintptr_t)next,
                     (char *)(uintptr_t)last,       NULL};
    struct process *child = process_start(run_again, words);
    int status = -1;
    assert_true(reap(child->pid, &status, 60000));
    child->pid = 0;
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        fail_msg("%s: status %#x", mode, (unsigned)status);
}

/* ThreadSanitizer keeps notes about memory in more memory than can be looked through. */
static void skip_under_thread_sanitizer(void)
{
#ifdef __SANITIZE_THREAD__
    print_message("not under ThreadSanitizer\n");
    skip();
#endif
}

static void nothing_of_it_stays_in_memory(void **state)
{
    (void)state;
    skip_under_thread_sanitizer();
    char behind[64];
    write_file(secret);
    (void)snprintf(behind, sizeof(behind), "@127.0.0.1:%d", server->port);
    expect_hidden("--look", url_of("ann@"), path, "");
    expect_hidden("--look", url_of("ann@"), "", "");
    expect_hidden("--look-url", "redis://ann:", behind, "");
}

static void nothing_of_it_stays_in_memory_over_tls(void **state)
{
    (void)state;
    char url[128];
    skip_under_thread_sanitizer();
    certificates_begin();
    start_showing("server");
    give_password(secret);
    write_file(secret);
    (void)snprintf(url, sizeof(url), "rediss://ann@localhost:%d", server->tls_port);
    expect_hidden("--look", url, path, certificate_path("authority.crt"));
    expect_hidden("--look", url, "", certificate_path("authority.crt"));
    certificates_end();
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, begin_source, end_everything)

int main(int count, char **words)
{
    if (count == 5 && strcmp(words[1], "--look") == 0)
        return look_for_secret(words[2], words[3], words[4]);
    if (count == 5 && strcmp(words[1], "--look-url") == 0)
        return look_for_url(words[2], words[3]);
    const struct CMUnitTest tests[] = {
        TEST(a_variable_is_read_once),
        TEST(a_file_is_read_for_each_connection),
        TEST(a_rotated_file_is_picked_up),
        TEST(a_hold_survives_a_rotation),
        TEST(a_function_is_asked_for_each_connection),
        TEST(a_function_may_have_none),
        TEST(calls_that_wait_turn_back_inside),
        TEST(a_slow_function_is_waited_for_by_one_call),
        TEST(what_the_server_says_meanwhile_is_heard),
        TEST(a_function_in_an_own_loop),
        TEST(one_source_is_enough),
        TEST(the_password_is_never_shown),
        TEST(nothing_of_it_stays_in_memory),
        TEST(nothing_of_it_stays_in_memory_over_tls),
    };
    return cmocka_run_group_tests_name("secrets", tests, NULL, NULL);
}
