/* SPDX-License-Identifier: MIT */
/* Takes lists of URLs apart in the same way as the library does (see hf_open): a URL begins at a
 * scheme that has commas or white space before it, and may have several hosts with commas between
 * them. The library keeps what it finds to itself, and a command that hides passwords, and looks at
 * each server by itself, needs no more than these borders. */
#include "urls.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char separators[] = ", \t\r\n\v\f";

/* ---- Borders ---- */

static bool begins_url(const char *at)
{
    return strncmp(at, "redis://", 8) == 0 || strncmp(at, "rediss://", 9) == 0 ||
           strncmp(at, "unix://", 7) == 0;
}

static const char *end_of_url(const char *at)
{
    while (*at != '\0') {
        size_t gap = strspn(at, separators);
        if (gap > 0 && begins_url(at + gap))
            return at;
        at += gap > 0 ? gap : 1;
    }
    return at;
}

struct url { /* parts of a text, one behind the other */
    const char *start;
    const char *authority;
    const char *hosts; /* behind user:password@ */
    const char *rest;  /* behind the hosts: path and database */
    const char *end;
};

static const char *find(const char *at, const char *end, const char *characters)
{
    while (at < end && strchr(characters, *at) == NULL)
        at++;
    return at;
}

static struct url take_apart(const char *start)
{
    struct url url = {start, start, start, start, end_of_url(start)};
    const char *scheme = strstr(start, "://");
    if (scheme != NULL && scheme < url.end)
        url.authority = scheme + 3;
    url.hosts = url.authority;
    url.rest = find(url.authority, url.end, "/?#");
    for (const char *at = url.authority; at < url.rest; at++)
        if (*at == '@')
            url.hosts = at + 1;
    return url;
}

/* The first one of a text, or the one behind; false: there is none. */
static bool next_url(const char *text, struct url *url)
{
    if (url->end != NULL && *url->end == '\0')
        return false;
    *url = take_apart(url->end == NULL ? text : url->end + strspn(url->end, separators));
    return true;
}

/* ---- What they say ---- */

bool urls_have_password(const struct option_list *texts)
{
    for (size_t i = 0; i < texts->count; i++) {
        struct url url = {0};
        while (next_url(texts->texts[i], &url))
            if (find(url.authority, url.hosts, ":") < url.hosts)
                return true;
    }
    return false;
}

bool urls_lack_password(const struct option_list *texts)
{
    for (size_t i = 0; i < texts->count; i++) {
        struct url url = {0};
        while (next_url(texts->texts[i], &url))
            if (url.authority < url.hosts && find(url.authority, url.hosts, ":") == url.hosts)
                return true;
    }
    return false;
}

bool urls_are_protected(const char *text)
{
    struct url url = {0};
    while (next_url(text, &url))
        if (strncmp(url.start, "rediss:", 7) == 0)
            return true;
    return false;
}

void urls_hide(const char *text, char *place, size_t capacity)
{
    struct url url = {0};
    size_t used = 0;
    while (used < capacity && next_url(text, &url))
        used += (size_t)snprintf(place + used, capacity - used, "%s%.*s%.*s", used > 0 ? " " : "",
                                 (int)(url.authority - url.start), url.start,
                                 (int)(url.end - url.hosts), url.hosts);
    if (used >= capacity)
        (void)snprintf(place, capacity, "a very long URL");
}

/* ---- Others made of them ---- */

char *urls_join(const struct option_list *texts)
{
    size_t size = 1;
    for (size_t i = 0; i < texts->count; i++)
        size += strlen(texts->texts[i]) + 1;
    char *joined = calloc(1, size), *at = joined;
    for (size_t i = 0; i < texts->count && joined != NULL; i++) {
        if (i > 0)
            *at++ = ' ';
        at = stpcpy(at, texts->texts[i]);
    }
    return joined;
}

/* A URL with one of its hosts. */
static char *with_host(const struct url *url, const char *host, const char *host_end)
{
    char *made = calloc(1, (size_t)(url->end - url->start) + 1), *at = made;
    if (made == NULL)
        return NULL;
    at = mempcpy(at, url->start, (size_t)(url->hosts - url->start));
    at = mempcpy(at, host, (size_t)(host_end - host));
    mempcpy(at, url->rest, (size_t)(url->end - url->rest));
    return made;
}

char *urls_server(const struct option_list *texts, size_t index)
{
    for (size_t i = 0; i < texts->count; i++) {
        struct url url = {0};
        while (next_url(texts->texts[i], &url)) {
            const char *host = url.hosts;
            const char *host_end = find(host, url.rest, ",");
            for (; index > 0 && host_end < url.rest; index--) {
                host = host_end + 1;
                host_end = find(host, url.rest, ",");
            }
            if (index == 0)
                return with_host(&url, host, host_end);
            index--;
        }
    }
    return NULL;
}

size_t urls_count(const struct option_list *texts)
{
    size_t count = 0;
    for (size_t i = 0; i < texts->count; i++) {
        struct url url = {0};
        while (next_url(texts->texts[i], &url)) {
            count++;
            for (const char *at = url.hosts; at < url.rest; at++)
                count += *at == ',';
        }
    }
    return count;
}
