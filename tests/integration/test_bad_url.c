/* SPDX-License-Identifier: MIT */
/* Goal: a URL that is not one gets HF_EINVAL and a text that points at the character, without
 * showing a password. No server is needed, because none is asked.
 */
#include <stdlib.h>
#include <string.h>

#include "../lib/process.h"

static hf_error error;

static void refuse_client(const char *url, const char *word)
{
    hf_client *none = (hf_client *)&error; /* anything but NULL: the call has to clear it */
    EXPECT(HF_EINVAL, hf_open(url, NULL, &none, &error));
    assert_null(none);
    if (strcasestr(error.text, word) == NULL)
        fail_msg("does not say \"%s\": %s", word, error.text);
}

/* The text points at the character, counted from one. `at` is 0 where more than one answer is
 * right; some position inside the URL, or just behind it, must be there all the same. */
static const struct {
    const char *url;
    size_t at;
} broken_urls[] = {
    {"", 0},
    {"redis", 0},
    {"redis:", 0},
    {"redis:/", 0},
    {"redis:/host", 0},
    {"redis://", 9},
    {"://host", 1},
    {"http://host", 1},
    {"memcached://host", 1},
    {" redis://host", 1},
    {"redis://:6379", 9},
    {"redis://ho st", 11},
    {"redis://ho\nst", 11},
    {"redis://host:", 0},
    {"redis://host:0", 14},
    {"redis://host:70000", 0},
    {"redis://host:-1", 14},
    {"redis://host:12x", 0},
    {"redis://host:99999999999999999999", 0},
    {"redis://[::1", 0},
    {"redis://[]", 0},
    {"redis://[::1]x", 14},
    {"redis://host/x", 14},
    {"redis://host/-1", 14},
    {"redis://host/1x", 0},
    {"redis://host/1/2", 0},
    {"redis://host/99999999999999999999", 0},
    {"redis://host?db=1", 0},
    {"redis://:p%zz@host", 11},
    {"redis://:p%4@host", 11},
    {"redis://:p%00q@host", 11},
    {"redis://:password@", 19},
    {"unix://", 8},
    {"unix://relative/path", 8},
    {"unix:///path?db=", 0},
    {"unix:///path?db=x", 17},
    {"unix:///path?db=-1", 17},
    {"unix:///path?bd=1", 0},
    {"unix:///path?", 0},
};

/* The number after the word "character"; 0 when there is none. */
static size_t position_in(const char *text)
{
    const char *word = strstr(text, "character ");
    return word != NULL ? (size_t)strtoull(word + strlen("character "), NULL, 10) : 0;
}

static void broken_urls_are_pointed_at(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(broken_urls) / sizeof(broken_urls[0]); i++) {
        const char *url = broken_urls[i].url;
        hf_client *none = (hf_client *)&error;
        hf_status status = hf_open(url, NULL, &none, &error);
        size_t at = position_in(error.text);
        if (status != HF_EINVAL || none != NULL || at == 0 || at > strlen(url) + 1 ||
            (broken_urls[i].at != 0 && at != broken_urls[i].at))
            fail_msg("\"%s\" (%zu): %s: %s", url, broken_urls[i].at, hf_status_name(status),
                     error.text);
    }
}

static void a_null_url(void **state)
{
    (void)state;
    refuse_client(NULL, "URL");
}

/* A unix socket's address has room for 107 bytes. */
static void an_over_long_socket_path(void **state)
{
    (void)state;
    char url[256] = "unix:///";
    memset(url + strlen(url), 's', 200);
    refuse_client(url, "path");
}

/* No password may get into logs by way of an error. */
static void a_text_never_shows_the_password(void **state)
{
    (void)state;
    refuse_client("redis://ann:sesame@host:0", "character");
    assert_null(strstr(error.text, "sesame"));
    refuse_client("redis://ann:sesame@host/x", "character");
    assert_null(strstr(error.text, "sesame"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(broken_urls_are_pointed_at),
        cmocka_unit_test(a_null_url),
        cmocka_unit_test(an_over_long_socket_path),
        cmocka_unit_test(a_text_never_shows_the_password),
    };
    return cmocka_run_group_tests_name("bad URLs", tests, NULL, NULL);
}
