/* SPDX-License-Identifier: MIT */
/* Parses server URLs. Errors name the character at which the text goes wrong, and never show the
 * text itself, which may hold a password. On any error everything that was copied is freed. */
#include "core/url.h"

#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "core/fail.h"

enum { HOST_MAX = 253, PATH_MAX_UNIX = 107, DATABASE_MAX = 1000000, PORT_DEFAULT = 6379 };

/* What is left to parse; `start` of the whole text gives positions. */
typedef struct parser {
    const char *start;
    const char *at;
    hf_error *error;
} parser;

static hf_status bad(const parser *cursor, const char *at, const char *why)
{
    return hf__fail(cursor->error, HF_EINVAL, "bad URL at character %lld: %s",
                    (long long)(at - cursor->start) + 1, why);
}

static bool skip(parser *cursor, const char *literal)
{
    size_t length = strlen(literal);
    if (strncmp(cursor->at, literal, length) != 0)
        return false;
    cursor->at += length;
    return true;
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
    hf_status status = HF_OK;
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

static hf_status parse_database(parser *cursor, hf__url *url)
{
    uint64_t database = 0;
    size_t length = strlen(cursor->at);
    if (!hf__parse_decimal(cursor->at, length, DATABASE_MAX, &database))
        return bad(cursor, cursor->at, "a database number belongs here");
    url->database = (int)database;
    return HF_OK;
}

static hf_status parse_tcp(parser *cursor, hf__url *url)
{
    const char *end = cursor->at + strcspn(cursor->at, "/?#");
    hf_status status = parse_credentials(cursor, end, url);
    if (status == HF_OK)
        status = parse_host(cursor, end, url);
    if (status == HF_OK)
        status = parse_port(cursor, end, url);
    if (status != HF_OK)
        return status;
    bool v6 = strchr(url->host, ':') != NULL;
    hf__format(url->display, sizeof(url->display), "%s%s%s:%d", v6 ? "[" : "", url->host,
               v6 ? "]" : "", url->port);
    cursor->at = end;
    if (*cursor->at == '?' || *cursor->at == '#')
        return bad(cursor, cursor->at, "nothing of the kind is known here");
    if (!skip(cursor, "/") || *cursor->at == '\0')
        return HF_OK;
    return parse_database(cursor, url);
}

static hf_status parse_unix(parser *cursor, hf__url *url)
{
    const char *slash = strchr(cursor->at, '/');
    if (slash == NULL)
        return bad(cursor, cursor->at,
                   "an absolute path belongs here, as in unix:///run/redis.sock");
    hf_status status = parse_credentials(cursor, slash, url);
    if (status != HF_OK)
        return status;
    if (cursor->at != slash)
        return bad(cursor, cursor->at, "a unix socket has no host: three slashes, then the path");
    const char *end = slash + strcspn(slash, "?");
    if (end - slash > PATH_MAX_UNIX)
        return bad(cursor, slash, "the path of a unix socket has at most 107 characters");
    status = copy_range(cursor, slash, end, &url->path);
    if (status != HF_OK)
        return status;
    hf__printable(url->display, sizeof(url->display), url->path, strlen(url->path));
    cursor->at = end;
    if (*end == '\0')
        return HF_OK;
    if (!skip(cursor, "?db="))
        return bad(cursor, end, "only ?db=NUMBER can follow the path");
    return parse_database(cursor, url);
}

hf_status hf__url_parse(const char *text, hf__url *url, hf_error *error)
{
    parser cursor = {text, text, error};
    hf_status status;
    *url = (hf__url){0};
    if (skip(&cursor, "redis://"))
        status = parse_tcp(&cursor, url);
    else if (skip(&cursor, "unix://"))
        status = parse_unix(&cursor, url);
    else if ((url->tls = skip(&cursor, "rediss://")))
        status = parse_tcp(&cursor, url);
    else
        status = bad(&cursor, text, "a server URL begins with redis://, rediss:// or unix://");
    if (status != HF_OK)
        hf__url_free(url);
    return status;
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
