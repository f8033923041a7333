/* SPDX-License-Identifier: MIT */
/* The URL parser, fed with any text, as a list. It takes a text or points at a character of it.
 * What it takes must make sense, must not show its credentials, must not have a server twice, and
 * must survive being written down again: a list made of the parts, with every character of
 * credentials and paths as %XX, has the same parts. Whatever is one server in a list is the same by
 * itself.
 *
 * Input: the text, up to the first NUL. */
#include "core/url.h"
#include "fuzz.h"

#include <string.h>

enum { DATABASE_MAX = 1000000, TEXT_SIZE = 65536 };

/* "bad URL at character 12: why". */
static void check_refusal(const char *text, const hf_error *error)
{
    int position = 0;
    int end = 0;
    REQUIRE(error->status == HF_EINVAL);
    REQUIRE(memchr(error->text, '\0', sizeof(error->text)) != NULL);
    REQUIRE(sscanf(error->text, "bad URL at character %d: %n", &position, &end) == 1);
    REQUIRE(position >= 1 && (size_t)position <= strlen(text) + 1);
    REQUIRE(end > 0 && error->text[end] != '\0');
}

/* The display is made of the address alone, so no password can be in it. */
static void check_display(const hf__url *url)
{
    char expected[TEXT_SIZE];
    const char *host = url->host != NULL ? url->host : "";
    bool v6 = strchr(host, ':') != NULL;
    if (url->host != NULL)
        snprintf(expected, sizeof(expected), v6 ? "[%s]:%d" : "%s:%d", host, url->port);
    else
        snprintf(expected, sizeof(expected), "%s", url->path);
    for (char *at = expected; *at != '\0'; at++)
        if (*at < ' ' || *at > '~')
            *at = '?';
    expected[sizeof(url->display) - 1] = '\0';
    REQUIRE(strcmp(url->display, expected) == 0);
}

static void check_parts(const hf__url *url)
{
    REQUIRE((url->host != NULL) != (url->path != NULL));
    REQUIRE(url->host == NULL || (url->port >= 1 && url->port <= 65535));
    REQUIRE(url->host == NULL || url->host[0] != '\0');
    REQUIRE(url->path == NULL || url->path[0] == '/');
    REQUIRE(url->database >= 0 && url->database <= DATABASE_MAX);
    check_display(url);
}

static char *put_encoded(char *place, const char *text)
{
    for (; text != NULL && *text != '\0'; text++)
        place += sprintf(place, "%%%02X", (unsigned)(unsigned char)*text);
    return place;
}

static char *put_url(char *at, const hf__url *url)
{
    const char *tcp = url->tls ? "rediss" : "redis";
    at += sprintf(at, "%s://", url->host != NULL ? tcp : "unix");
    at = put_encoded(at, url->user);
    if (url->password != NULL) {
        *at++ = ':';
        at = put_encoded(at, url->password);
    }
    if (url->user != NULL || url->password != NULL)
        *at++ = '@';
    if (url->host != NULL)
        return at + sprintf(at, "[%s]:%d/%d", url->host, url->port, url->database);
    *at++ = '/';
    at = put_encoded(at, url->path + 1);
    return at + sprintf(at, "?db=%d", url->database);
}

static bool same(const char *a, const char *b)
{
    return a == NULL || b == NULL ? a == b : strcmp(a, b) == 0;
}

static void check_same(const hf__url *url, const hf__url *again)
{
    REQUIRE(same(url->host, again->host) && same(url->path, again->path));
    REQUIRE(same(url->user, again->user) && same(url->password, again->password));
    REQUIRE(url->tls == again->tls && url->port == again->port);
    REQUIRE(url->database == again->database);
    REQUIRE(strcmp(url->display, again->display) == 0);
}

static void free_all(hf__url *urls, int count)
{
    for (int i = 0; i < count; i++)
        hf__url_free(&urls[i]);
}

/* What was written down; each server may have all of the credentials. */
static char text_again[HF_SERVERS_MAX * TEXT_SIZE];

static void check_alone(const hf__url *url)
{
    hf__url again;
    hf_error error;
    *put_url(text_again, url) = '\0';
    REQUIRE(hf__url_parse(text_again, &again, &error) == HF_OK);
    check_same(url, &again);
    hf__url_free(&again);
}

/* With another separator between any two of them. */
static void check_round_trip(const hf__url *urls, int count)
{
    static const char *const separators[] = {",", " ", "\n", " , ", ",,", "\t", ", ", "\r\n"};
    hf__url again[HF_SERVERS_MAX];
    char *at = text_again;
    hf_error error;
    int found;
    for (int i = 0; i < count; i++) {
        if (i > 0)
            at = stpcpy(at, separators[i - 1]);
        at = put_url(at, &urls[i]);
    }
    *at = '\0';
    REQUIRE(hf__urls_parse(text_again, again, HF_SERVERS_MAX, &found, &error) == HF_OK);
    REQUIRE(found == count);
    for (int i = 0; i < count; i++)
        check_same(&urls[i], &again[i]);
    free_all(again, found);
}

static void check_differ(const hf__url *urls, int count)
{
    for (int i = 0; i < count; i++)
        for (int k = 0; k < i; k++)
            REQUIRE(!same(urls[i].host, urls[k].host) || !same(urls[i].path, urls[k].path) ||
                    urls[i].port != urls[k].port);
}

/* As one server it is the same, or it is refused because it is several. */
static void check_as_one(const char *text, const hf__url *urls, int count)
{
    hf__url one;
    hf_error error;
    if (hf__url_parse(text, &one, &error) == HF_OK) {
        REQUIRE(count == 1);
        check_same(&urls[0], &one);
    } else {
        REQUIRE(count > 1);
        check_refusal(text, &error);
    }
    hf__url_free(&one);
}

static void check_text(const char *text)
{
    hf__url urls[HF_SERVERS_MAX];
    hf_error error;
    int count;
    if (hf__urls_parse(text, urls, HF_SERVERS_MAX, &count, &error) != HF_OK) {
        check_refusal(text, &error);
        REQUIRE(count == 0);
        for (int i = 0; i < HF_SERVERS_MAX; i++)
            REQUIRE(urls[i].host == NULL && urls[i].path == NULL && urls[i].user == NULL &&
                    urls[i].password == NULL);
        return;
    }
    REQUIRE(count >= 1 && count <= HF_SERVERS_MAX);
    for (int i = 0; i < count; i++) {
        check_parts(&urls[i]);
        check_alone(&urls[i]);
    }
    check_differ(urls, count);
    check_round_trip(urls, count);
    check_as_one(text, urls, count);
    free_all(urls, count);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    if (count > TEXT_SIZE / 8) /* room to write it down with three characters for one */
        return 0;
    char *text = malloc(count + 1);
    REQUIRE(text != NULL);
    if (count > 0)
        memcpy(text, bytes, count);
    text[count] = '\0';
    check_text(text);
    free(text);
    return 0;
}
