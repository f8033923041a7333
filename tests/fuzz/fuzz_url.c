/* SPDX-License-Identifier: MIT */
/* The URL parser, fed with any text. It takes a text or points at a character of it. What it takes
 * must make sense, must not show its credentials, and must survive being written down again: a URL
 * made of the parts, with every character of the credentials as %XX, has the same parts.
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

static void write_down(const hf__url *url, char *text)
{
    const char *tcp = url->tls ? "rediss" : "redis";
    char *at = text + sprintf(text, "%s://", url->host != NULL ? tcp : "unix");
    at = put_encoded(at, url->user);
    if (url->password != NULL) {
        *at++ = ':';
        at = put_encoded(at, url->password);
    }
    if (url->user != NULL || url->password != NULL)
        *at++ = '@';
    if (url->host != NULL)
        sprintf(at, "[%s]:%d/%d", url->host, url->port, url->database);
    else
        sprintf(at, "%s?db=%d", url->path, url->database);
}

static bool same(const char *a, const char *b)
{
    return a == NULL || b == NULL ? a == b : strcmp(a, b) == 0;
}

static void check_round_trip(const hf__url *url)
{
    char text[TEXT_SIZE];
    hf__url again;
    hf_error error;
    write_down(url, text);
    REQUIRE(hf__url_parse(text, &again, &error) == HF_OK);
    REQUIRE(same(url->host, again.host) && same(url->path, again.path));
    REQUIRE(same(url->user, again.user) && same(url->password, again.password));
    REQUIRE(url->tls == again.tls && url->port == again.port && url->database == again.database);
    REQUIRE(strcmp(url->display, again.display) == 0);
    hf__url_free(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    hf__url url;
    hf_error error;
    if (count > TEXT_SIZE / 8) /* room to write it down with three characters for one */
        return 0;
    char *text = malloc(count + 1);
    REQUIRE(text != NULL);
    if (count > 0)
        memcpy(text, bytes, count);
    text[count] = '\0';
    if (hf__url_parse(text, &url, &error) == HF_OK) {
        check_parts(&url);
        check_round_trip(&url);
    } else {
        check_refusal(text, &error);
        REQUIRE(url.host == NULL && url.path == NULL && url.user == NULL && url.password == NULL);
    }
    hf__url_free(&url);
    free(text);
    return 0;
}
