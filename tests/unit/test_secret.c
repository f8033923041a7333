/* SPDX-License-Identifier: MIT */
/* Secrets: where a password comes from, which of what is offered is one, and that a buffer which
 * had it leaves nothing of it behind. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/buffer.h"
#include "base/memory.h"
#include "net/secret.h"

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

static hf_error error;
static hf_credentials credentials;
static bool given;
static char folder[32], path[64];

static int make_folder(void **state)
{
    (void)state;
    snprintf(folder, sizeof(folder), "/tmp/holdfast-XXXXXX");
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/password", folder);
    return 0;
}

static int remove_folder(void **state)
{
    (void)state;
    (void)remove(path);
    return rmdir(folder);
}

static void put_file(const char *bytes, size_t count)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, count, file), count);
    assert_int_equal(fclose(file), 0);
}

static hf_status fetch_file(const char *file)
{
    hf__url server = {.user = NULL};
    memset(&credentials, 'x', sizeof(credentials));
    return hf__secret_fetch(&(hf__secret){.file = file}, &server, &credentials, &given, &error);
}

/* ---- From a file ---- */

static void the_first_line_is_the_password(void **state)
{
    (void)state;
    static const struct {
        const char *bytes, *password;
    } cases[] = {
        {"secret", "secret"},
        {"secret\n", "secret"},
        {"secret\r\n", "secret"},
        {"secret\nmore\n", "secret"},
        {" secret ", " secret "},
        {"se\rcret\n", "se\rcret"},
        {"\tp\xc3\xa9\n", "\tp\xc3\xa9"},
        {"secret\r", "secret"},
        {"a", "a"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        put_file(cases[i].bytes, strlen(cases[i].bytes));
        assert_int_equal(fetch_file(path), HF_OK);
        assert_true(given);
        assert_string_equal(credentials.password, cases[i].password);
        assert_string_equal(credentials.user, "");
        /* Of what came behind it in the file, nothing is kept. */
        for (size_t k = strlen(cases[i].password); k < sizeof(credentials.password); k++)
            assert_int_equal(credentials.password[k], '\0');
    }
}

static void a_password_has_a_longest_length(void **state)
{
    (void)state;
    static char bytes[2 * HF_PASSWORD_MAX];
    static const char *const ends[] = {"", "\n", "\r\n", "\nmore"};
    memset(bytes, 'p', sizeof(bytes));
    for (size_t i = 0; i < COUNT_OF(ends); i++) {
        memset(bytes, 'p', sizeof(bytes));
        memcpy(bytes + HF_PASSWORD_MAX, ends[i], strlen(ends[i]));
        put_file(bytes, HF_PASSWORD_MAX + strlen(ends[i]));
        assert_int_equal(fetch_file(path), HF_OK);
        assert_int_equal(strlen(credentials.password), HF_PASSWORD_MAX);
        memset(bytes, 'p', sizeof(bytes));
        memcpy(bytes + HF_PASSWORD_MAX + 1, ends[i], strlen(ends[i]));
        put_file(bytes, HF_PASSWORD_MAX + 1 + strlen(ends[i]));
        assert_int_equal(fetch_file(path), HF_EDENIED);
        assert_non_null(strstr(error.text, path));
    }
}

static void files_that_have_none(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        size_t count;
    } cases[] = {{"", 0}, {"\n", 1}, {"\r\n", 2}, {"\nsecret\n", 8}, {"sec\0ret\n", 8}, {"\0", 1}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        put_file(cases[i].bytes, cases[i].count);
        assert_int_equal(fetch_file(path), HF_EDENIED);
        assert_non_null(strstr(error.text, path));
        assert_null(strstr(error.text, "sec"));
    }
    assert_int_equal(remove(path), 0);
    assert_int_equal(fetch_file(path), HF_EDENIED);
    assert_non_null(strstr(error.text, "No such file"));
    assert_int_equal(fetch_file(folder), HF_EDENIED);
    assert_non_null(strstr(error.text, "directory"));
    assert_int_equal(fetch_file("/dev/null"), HF_EDENIED);
    assert_int_equal(mkfifo(path, 0600), 0); /* with nobody at the other end: it must not wait */
    assert_int_equal(fetch_file(path), HF_EDENIED);
    assert_int_equal(remove(path), 0);
    assert_int_equal(fetch_file("\x1b[31m/\n"), HF_EDENIED);
    assert_non_null(strstr(error.text, "?[31m/?"));
}

/* ---- From a function ---- */

static bool say_yes(void *arg, hf_credentials *place)
{
    *place = *(const hf_credentials *)arg;
    return true;
}

static bool say_no(void *arg, hf_credentials *place)
{
    (void)arg;
    snprintf(place->password, sizeof(place->password), "hidden");
    return false;
}

static bool keep_user(void *arg, hf_credentials *place)
{
    (void)arg;
    snprintf(place->password, sizeof(place->password), "for %s", place->user);
    return true;
}

static hf_status fetch_from(hf_credentials_function *function, void *arg)
{
    char user[] = "ann";
    hf__url server = {.user = user};
    return hf__secret_fetch(&(hf__secret){.function = function, .arg = arg}, &server, &credentials,
                            &given, &error);
}

static void a_function_says_who_we_are(void **state)
{
    (void)state;
    static hf_credentials said = {.user = "bea", .password = "secret"};
    assert_int_equal(fetch_from(say_yes, &said), HF_OK);
    assert_string_equal(credentials.user, "bea");
    assert_string_equal(credentials.password, "secret");
    assert_int_equal(fetch_from(keep_user, NULL), HF_OK);
    assert_string_equal(credentials.password, "for ann");
    assert_int_equal(fetch_from(say_no, NULL), HF_EDENIED);
    assert_non_null(strstr(error.text, "credentials function"));
    assert_null(strstr(error.text, "hidden"));
}

static void a_function_must_end_what_it_says(void **state)
{
    (void)state;
    static hf_credentials said;
    memset(said.user, 'u', sizeof(said.user));
    assert_int_equal(fetch_from(say_yes, &said), HF_EDENIED);
    assert_non_null(strstr(error.text, "NUL"));
    said = (hf_credentials){.user = "bea"};
    memset(said.password, 'p', sizeof(said.password));
    assert_int_equal(fetch_from(say_yes, &said), HF_EDENIED);
    assert_null(strstr(error.text, "ppp"));
    said.password[HF_PASSWORD_MAX] = '\0';
    assert_int_equal(fetch_from(say_yes, &said), HF_OK);
    assert_int_equal(strlen(credentials.password), HF_PASSWORD_MAX);
}

static void nothing_is_given(void **state)
{
    (void)state;
    hf__url server = {.user = NULL};
    given = true;
    assert_int_equal(
        hf__secret_fetch(&(hf__secret){.file = NULL}, &server, &credentials, &given, &error),
        HF_OK);
    assert_false(given);
}

/* ---- Buffers ---- */

static const char secret[] = "a-password-in-a-buffer";

/* What the allocator gets back is looked at just before. */
static int seen_in(const char *bytes, size_t count)
{
    int seen = 0;
    for (size_t i = 0; i + 4 <= count; i++)
        seen += memcmp(bytes + i, "pass", 4) == 0;
    return seen;
}

static void put(hf__buffer *buffer, const char *bytes, size_t count)
{
    assert_true(hf__buffer_reserve(buffer, count));
    hf__buffer_append(buffer, bytes, count);
}

static hf__buffer begin_secret(void)
{
    hf__buffer buffer = {0};
    hf__buffer_keep_secret(&buffer);
    put(&buffer, secret, sizeof(secret));
    assert_int_equal(seen_in(buffer.bytes, buffer.capacity), 1);
    return buffer;
}

static void what_is_taken_is_wiped(void **state)
{
    (void)state;
    hf__buffer buffer = begin_secret();
    put(&buffer, "public", 6);
    for (size_t i = 0; i < sizeof(secret); i++) {
        assert_int_equal(hf__buffer_front(&buffer)[0], secret[i]);
        hf__buffer_take(&buffer, 1);
        assert_int_equal(buffer.bytes[i], '\0');
    }
    assert_int_equal(seen_in(buffer.bytes, buffer.capacity), 0);
    assert_memory_equal(hf__buffer_front(&buffer), "public", 6);
    assert_true(buffer.secret);
    hf__buffer_take(&buffer, 6);
    assert_false(buffer.secret); /* empty: what follows is no secret any more */
    put(&buffer, "passing", 7);
    hf__buffer_take(&buffer, 7);
    assert_int_equal(seen_in(buffer.bytes, buffer.capacity), 1);
    hf__buffer_free(&buffer);
}

static void what_is_cleared_is_wiped(void **state)
{
    (void)state;
    hf__buffer buffer = begin_secret();
    hf__buffer_take(&buffer, 3);
    hf__buffer_clear(&buffer);
    assert_int_equal(seen_in(buffer.bytes, buffer.capacity), 0);
    assert_false(buffer.secret);
    hf__buffer_free(&buffer);
}

/* The rest moves to the front, over what was taken. */
static void what_is_moved_is_wiped(void **state)
{
    (void)state;
    static char filling[1024];
    hf__buffer buffer = {0};
    hf__buffer_keep_secret(&buffer);
    put(&buffer, filling, 900);
    put(&buffer, secret, sizeof(secret));
    hf__buffer_take(&buffer, 890);
    size_t capacity = buffer.capacity;
    put(&buffer, filling, 200);
    assert_int_equal(buffer.capacity, capacity);
    assert_int_equal(seen_in(buffer.bytes, buffer.capacity), 1);
    assert_memory_equal(hf__buffer_front(&buffer) + 10, secret, sizeof(secret));
    hf__buffer_take(&buffer, 10 + sizeof(secret));
    assert_int_equal(seen_in(buffer.bytes, buffer.capacity), 0);
    hf__buffer_free(&buffer);
}

/* Into new storage, never in place or by realloc(), which may leave a copy behind. */
static void growing_keeps_what_is_there(void **state)
{
    (void)state;
    static char filling[5000];
    hf__buffer buffer = begin_secret();
    const char *old = buffer.bytes;
    put(&buffer, filling, sizeof(filling));
    assert_ptr_not_equal(buffer.bytes, old); /* not grown in place: it was copied and wiped */
    assert_memory_equal(buffer.bytes, secret, sizeof(secret));
    assert_true(buffer.secret);
    hf__buffer_take(&buffer, sizeof(secret));
    assert_int_equal(seen_in(buffer.bytes, buffer.capacity), 0);
    hf__buffer_free(&buffer);
}

static bool no_memory(void)
{
    return false;
}

static void a_failed_growth_changes_nothing(void **state)
{
    (void)state;
    hf__buffer buffer = begin_secret();
    hf__memory_set_gate(no_memory);
    assert_false(hf__buffer_reserve(&buffer, 100000));
    hf__memory_set_gate(NULL);
    assert_memory_equal(hf__buffer_front(&buffer), secret, sizeof(secret));
    assert_true(buffer.secret);
    hf__buffer_free(&buffer);
    assert_null(buffer.bytes);
    assert_false(buffer.secret);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_line_is_the_password),
        cmocka_unit_test(a_password_has_a_longest_length),
        cmocka_unit_test(files_that_have_none),
        cmocka_unit_test(a_function_says_who_we_are),
        cmocka_unit_test(a_function_must_end_what_it_says),
        cmocka_unit_test(nothing_is_given),
        cmocka_unit_test(what_is_taken_is_wiped),
        cmocka_unit_test(what_is_cleared_is_wiped),
        cmocka_unit_test(what_is_moved_is_wiped),
        cmocka_unit_test(growing_keeps_what_is_there),
        cmocka_unit_test(a_failed_growth_changes_nothing),
    };
    return cmocka_run_group_tests_name("secrets", tests, make_folder, remove_folder);
}
