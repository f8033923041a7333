/* SPDX-License-Identifier: MIT */
/* Parses server URLs, one or a list. Errors name the character at which the text goes wrong, and
 * never show the text itself, which may hold a password. On any error everything that was copied is
 * freed.
 *
 * A new URL begins where commas or white space are followed by redis://, rediss:// or unix://, and
 * nowhere else; so the text is cut there first. What is left of commas stands between the hosts of
 * one URL. In credentials and paths there are none: a comma that was meant as one of the password
 * could as well be the border to a host, and then a part of the password would be sent there. */
#include "core/url.h"

#include <string.h>
#include <strings.h>

#include "base/memory.h"
#include "base/text.h"
#include "core/fail.h"

enum { HOST_MAX = 253, PATH_MAX_UNIX = 107, DATABASE_MAX = 1000000, PORT_DEFAULT = 6379 };

static const char separators[] = ", \t\r\n\v\f";

/* What is left to parse of a URL; `start` of the whole text gives positions. */
typedef struct parser {
    const char *start;
    const char *at;
    const char *end;
    hf__url *urls; /* those that are done */
    int count;
    int most;
    hf_error *error;
} parser;

static hf_status bad(const parser *cursor, const char *at, const char *why)
{
    return hf__fail(cursor->error, HF_EINVAL, "bad URL at character %lld: %s",
                    (long long)(at - cursor->start) + 1, why);
}

static bool begins(const char *at, const char *end, const char *literal)
{
    size_t length = strlen(literal);
    return (size_t)(end - at) >= length && memcmp(at, literal, length) == 0;
}

static bool skip(parser *cursor, const char *literal)
{
    if (!begins(cursor->at, cursor->end, literal))
        return false;
    cursor->at += strlen(literal);
    return true;
}

/* The first of these characters, or the end. */
static const char *find(const char *at, const char *end, const char *characters)
{
    while (at < end && strchr(characters, *at) == NULL)
        at++;
    return at;
}

static hf_status copy_range(const parser *cursor, const char *from, const char *to, char **copy)
{
    size_t length = (size_t)(to - from);
    *copy = hf__alloc(length + 1);
    if (*copy == NULL)
        return hf__fail(cursor->error, HF_ENOMEM, "out of memory");
    memcpy(*copy, from, length);
    return HF_OK;
}

/* Copies with %XX decoded. */
static hf_status copy_decoded(const parser *cursor, const char *from, const char *to, char **copy)
{
    hf_status status = copy_range(cursor, from, to, copy);
    if (status != HF_OK)
        return status;
    char *end = *copy;
    for (const char *at = from; at < to; at++) {
        if (*at != '%') {
            *end++ = *at;
            continue;
        }
        int code = hf__percent(at, (size_t)(to - at));
        if (code <= 0)
            return bad(cursor, at, "% must be followed by two hexadecimal digits, not 00");
        *end++ = (char)code;
        at += 2;
    }
    while (end < *copy + (to - from)) /* a rest of the undecoded text would escape the wiping */
        *end++ = '\0';
    return HF_OK;
}

static hf_status check_commas(const parser *cursor, const char *from, const char *to)
{
    const char *comma = find(from, to, ",");
    if (comma == to)
        return HF_OK;
    return bad(cursor, comma, "a comma in a user, a password or a path is written as %2C");
}

/* [user][:password]@, up to the last '@' of the authority. */
static hf_status parse_credentials(parser *cursor, const char *authority_end, hf__url *url)
{
    const char *at_sign = NULL;
    for (const char *c = cursor->at; c < authority_end; c++)
        if (*c == '@')
            at_sign = c;
    if (at_sign == NULL)
        return HF_OK;
    const char *colon = memchr(cursor->at, ':', (size_t)(at_sign - cursor->at));
    const char *user_end = colon != NULL ? colon : at_sign;
    hf_status status = check_commas(cursor, cursor->at, at_sign);
    if (status != HF_OK)
        return status;
    if (at_sign == cursor->at)
        return bad(cursor, at_sign,
                   "a user or a password belongs before '@', as in user:password@");
    if (user_end > cursor->at)
        status = copy_decoded(cursor, cursor->at, user_end, &url->user);
    if (status == HF_OK && url->user != NULL && strlen(url->user) > HF_USER_MAX)
        status = bad(cursor, cursor->at, "the user's name has more than 256 bytes");
    if (status == HF_OK && colon != NULL)
        status = copy_decoded(cursor, colon + 1, at_sign, &url->password);
    if (status == HF_OK && colon != NULL && strlen(url->password) > HF_PASSWORD_MAX)
        status = bad(cursor, colon + 1, "the password has more than 4096 bytes");
    cursor->at = at_sign + 1;
    return status;
}

/* host, host:port, [v6] or [v6]:port, up to the end of the authority. */
static hf_status parse_host(parser *cursor, const char *end, hf__url *url)
{
    const char *host = cursor->at;
    const char *host_end;
    bool bracket = *host == '[';
    if (bracket) {
        host++;
        host_end = memchr(host, ']', (size_t)(end - host));
        if (host_end == NULL)
            return bad(cursor, cursor->at, "'[' without ']'");
        cursor->at = host_end + 1;
    } else {
        host_end = memchr(host, ':', (size_t)(end - host));
        host_end = host_end != NULL ? host_end : end;
        cursor->at = host_end;
    }
    if (host_end == host || host_end - host > HOST_MAX)
        return bad(cursor, host, "a host name of 1 to 253 characters belongs here");
    for (const char *c = host; c < host_end; c++)
        if (*c <= ' ' || *c > '~' || *c == '[' || *c == ']')
            return bad(cursor, c, "this character cannot be in a host name");
    return copy_range(cursor, host, host_end, &url->host);
}

static hf_status parse_port(parser *cursor, const char *end, hf__url *url)
{
    uint64_t port = 0;
    url->port = PORT_DEFAULT;
    if (cursor->at == end)
        return HF_OK;
    if (*cursor->at != ':')
        return bad(cursor, cursor->at, "only ':' and a port can follow the host");
    cursor->at++;
    if (!hf__parse_decimal(cursor->at, (size_t)(end - cursor->at), 65535, &port) || port == 0)
        return bad(cursor, cursor->at, "a port from 1 to 65535 belongs here");
    url->port = (int)port;
    cursor->at = end;
    return HF_OK;
}

/* ---- Places for servers ---- */

static hf_status take_place(parser *cursor, hf__url **url)
{
    if (cursor->count == cursor->most)
        return hf__fail(cursor->error, HF_EINVAL,
                        "bad URL at character %lld: there are more than %d servers",
                        (long long)(cursor->at - cursor->start) + 1, cursor->most);
    *url = &cursor->urls[cursor->count++];
    return HF_OK;
}

/* Names are compared as they are written: two of them for one machine cannot be seen here. */
static bool is_same(const hf__url *a, const hf__url *b)
{
    if (a->path != NULL || b->path != NULL)
        return a->path != NULL && b->path != NULL && strcmp(a->path, b->path) == 0;
    return a->port == b->port && strcasecmp(a->host, b->host) == 0;
}

/* A server that votes twice would be a majority of itself. */
static hf_status check_new(const parser *cursor, const char *at, const hf__url *url)
{
    for (const hf__url *other = cursor->urls; other < url; other++)
        if (is_same(other, url))
            return bad(cursor, at, "this server is listed twice");
    return HF_OK;
}

/* ---- The kinds ---- */

/* Of all servers of a URL, from the first one on. */
static hf_status parse_database(parser *cursor, hf__url *first)
{
    uint64_t database = 0;
    size_t length = (size_t)(cursor->end - cursor->at);
    if (!hf__parse_decimal(cursor->at, length, DATABASE_MAX, &database))
        return bad(cursor, cursor->at, "a database number belongs here");
    for (hf__url *url = first; url < cursor->urls + cursor->count; url++)
        url->database = (int)database;
    return HF_OK;
}

static hf_status parse_address(parser *cursor, const char *end, hf__url *url)
{
    const char *start = cursor->at;
    hf_status status = parse_host(cursor, end, url);
    if (status == HF_OK)
        status = parse_port(cursor, end, url);
    if (status == HF_OK)
        status = check_new(cursor, start, url);
    if (status != HF_OK)
        return status;
    bool v6 = strchr(url->host, ':') != NULL;
    hf__format(url->display, sizeof(url->display), "%s%s%s:%d", v6 ? "[" : "", url->host,
               v6 ? "]" : "", url->port);
    return HF_OK;
}

/* One more server of the same URL. */
static hf_status take_another(parser *cursor, const hf__url *first, hf__url **url)
{
    hf_status status = take_place(cursor, url);
    if (status != HF_OK)
        return status;
    (*url)->tls = first->tls;
    if (first->user != NULL)
        (*url)->user = hf__copy_text(first->user);
    if (first->password != NULL)
        (*url)->password = hf__copy_text(first->password);
    bool complete = (first->user == NULL || (*url)->user != NULL) &&
                    (first->password == NULL || (*url)->password != NULL);
    return complete ? HF_OK : hf__fail(cursor->error, HF_ENOMEM, "out of memory");
}

static hf_status parse_tcp(parser *cursor, hf__url *first)
{
    const char *end = find(cursor->at, cursor->end, "/?#");
    hf__url *url = first;
    hf_status status = parse_credentials(cursor, end, first);
    if (status == HF_OK)
        status = parse_address(cursor, find(cursor->at, end, ","), first);
    while (status == HF_OK && cursor->at < end) {
        cursor->at++; /* the comma */
        status = take_another(cursor, first, &url);
        if (status == HF_OK)
            status = parse_address(cursor, find(cursor->at, end, ","), url);
    }
    if (status != HF_OK || end == cursor->end)
        return status;
    if (*end != '/')
        return bad(cursor, end, "nothing of the kind is known here");
    cursor->at = end + 1;
    return cursor->at == cursor->end ? HF_OK : parse_database(cursor, first);
}

static hf_status parse_path(parser *cursor, const char *end, hf__url *url)
{
    const char *start = cursor->at;
    hf_status status = check_commas(cursor, start, end);
    if (status == HF_OK)
        status = copy_decoded(cursor, start, end, &url->path);
    if (status == HF_OK && strlen(url->path) > PATH_MAX_UNIX)
        status = bad(cursor, start, "the path of a unix socket has at most 107 characters");
    if (status == HF_OK)
        status = check_new(cursor, start, url);
    if (status == HF_OK)
        hf__printable(url->display, sizeof(url->display), url->path, strlen(url->path));
    cursor->at = end;
    return status;
}

static hf_status parse_unix(parser *cursor, hf__url *url)
{
    const char *slash = find(cursor->at, cursor->end, "/");
    if (slash == cursor->end)
        return bad(cursor, cursor->at,
                   "an absolute path belongs here, as in unix:///run/redis.sock");
    hf_status status = parse_credentials(cursor, slash, url);
    if (status != HF_OK)
        return status;
    if (cursor->at != slash)
        return bad(cursor, cursor->at, "a unix socket has no host: three slashes, then the path");
    status = parse_path(cursor, find(slash, cursor->end, "?"), url);
    if (status != HF_OK || cursor->at == cursor->end)
        return status;
    const char *question = cursor->at;
    if (!skip(cursor, "?db="))
        return bad(cursor, question, "only ?db=NUMBER can follow the path");
    return parse_database(cursor, url);
}

/* ---- One and several ---- */

static hf_status parse_url(parser *cursor)
{
    hf__url *url = NULL;
    hf_status status = take_place(cursor, &url);
    if (status != HF_OK)
        return status;
    if (skip(cursor, "redis://"))
        return parse_tcp(cursor, url);
    if (skip(cursor, "unix://"))
        return parse_unix(cursor, url);
    if ((url->tls = skip(cursor, "rediss://")))
        return parse_tcp(cursor, url);
    return bad(cursor, cursor->at, "a server URL begins with redis://, rediss:// or unix://");
}

static bool begins_url(const char *at)
{
    return strncmp(at, "redis://", 8) == 0 || strncmp(at, "rediss://", 9) == 0 ||
           strncmp(at, "unix://", 7) == 0;
}

/* Where what separates the next one begins, or the end of the text. */
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

hf_status hf__urls_parse(const char *text, hf__url *urls, int most, int *count, hf_error *error)
{
    parser cursor = {.start = text, .at = text, .urls = urls, .most = most, .error = error};
    hf_status status = HF_OK;
    memset(urls, 0, (size_t)most * sizeof(*urls));
    do {
        cursor.end = end_of_url(cursor.at);
        status = parse_url(&cursor);
        cursor.at = cursor.end + strspn(cursor.end, separators);
    } while (status == HF_OK && *cursor.end != '\0');
    for (int i = 0; i < cursor.count && status != HF_OK; i++)
        hf__url_free(&urls[i]);
    *count = status == HF_OK ? cursor.count : 0;
    return status;
}

hf_status hf__url_parse(const char *text, hf__url *url, hf_error *error)
{
    int count;
    return hf__urls_parse(text, url, 1, &count, error);
}

void hf__url_free(hf__url *url)
{
    if (url->password != NULL)
        hf__wipe(url->password, strlen(url->password));
    hf__free(url->host);
    hf__free(url->path);
    hf__free(url->user);
    hf__free(url->password);
    *url = (hf__url){0};
}
