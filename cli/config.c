/* SPDX-License-Identifier: MIT */
/* The configuration file: one option per line, named as on the command line,
 *
 *     # comment
 *     url = rediss://locks.example
 *     strict
 *
 * What cannot be understood is an error and not skipped: a setting that is not heeded could be the
 * one that keeps two machines apart. */
#include "config.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "say.h"

enum { LINE_MAX_BYTES = 8192, CONFIG_TEXTS = 16 * 1024, PATH_MAX_BYTES = 4096 };

const char *config_environment(const char *name)
{
    const char *text = getenv(name);
    return text != NULL && text[0] != '\0' ? text : NULL;
}

/* What options point to must last. */
static const char *keep(const char *text)
{
    static char texts[CONFIG_TEXTS];
    static size_t used;
    size_t size = strlen(text) + 1;
    if (used + size > sizeof(texts))
        return NULL;
    memcpy(texts + used, text, size);
    used += size;
    return texts + used - size;
}

static char *trim(char *text)
{
    text += strspn(text, " \t\r\n");
    for (size_t length = strlen(text); length > 0 && isspace((unsigned char)text[length - 1]);)
        text[--length] = '\0';
    return text;
}

static bool is_name(const char *text)
{
    return *text != '\0' && text[strspn(text, "abcdefghijklmnopqrstuvwxyz-")] == '\0';
}

/* "name = value", "name" for a flag, or a comment. Words that are no names are not repeated: there
 * could be a password in them. */
static bool read_line(const struct option_table *table, void *place, char *line, const char *where)
{
    char *name = trim(line), *value = strchr(name, '=');
    if (*name == '\0' || *name == '#')
        return true;
    if (value != NULL)
        *value++ = '\0';
    name = trim(name);
    const char *kept = keep(value != NULL ? trim(value) : "");
    if (kept == NULL)
        say_error("%stoo much text in a configuration file", where);
    else if (!is_name(name))
        say_error("%s\"name = value\" is expected", where);
    else if (strcmp(name, "json") == 0 || strcmp(name, "config") == 0)
        say_error("%s%s belongs on the command line", where, name);
    else
        return options_set(table, place, name, kept, where);
    return false;
}

static bool read_lines(const struct option_table *table, void *place, FILE *file, const char *path)
{
    char line[LINE_MAX_BYTES], where[PATH_MAX_BYTES + 16];
    for (int number = 1; fgets(line, sizeof(line), file) != NULL; number++) {
        (void)snprintf(where, sizeof(where), "%s:%d: ", path, number);
        if (strchr(line, '\n') == NULL && !feof(file)) {
            say_error("%sthe line is too long, or is no text", where);
            return false;
        }
        if (!read_line(table, place, line, where))
            return false;
    }
    if (ferror(file))
        say_error("cannot read the configuration %s: %s", path, strerror(errno));
    return !ferror(file);
}

/* True also if there is no such file: *exists. */
static bool read_file(const struct option_table *table, void *place, const char *path, bool *exists)
{
    FILE *file = fopen(path, "re");
    *exists = file != NULL || (errno != ENOENT && errno != ENOTDIR);
    if (file == NULL && *exists)
        say_error("cannot read the configuration %s: %s", path, strerror(errno));
    if (file == NULL)
        return !*exists;
    bool good = read_lines(table, place, file, path);
    (void)fclose(file);
    return good;
}

/* The user's own, or else that of the machine. */
static bool read_usual(const struct option_table *table, void *place)
{
    char path[PATH_MAX_BYTES];
    const char *folder = config_environment("XDG_CONFIG_HOME"), *home = config_environment("HOME");
    int length = 0;
    bool exists = false, good = true;
    if (folder != NULL && folder[0] == '/')
        length = snprintf(path, sizeof(path), "%s/holdfast/config", folder);
    else if (home != NULL)
        length = snprintf(path, sizeof(path), "%s/.config/holdfast/config", home);
    if (length > 0 && (size_t)length < sizeof(path))
        good = read_file(table, place, path, &exists);
    return exists ? good : read_file(table, place, "/etc/holdfast/config", &exists);
}

bool config_read(const struct option_table *table, void *place, const char *path)
{
    bool exists;
    if (path == NULL)
        path = config_environment("HOLDFAST_CONFIG");
    if (path == NULL)
        return read_usual(table, place);
    bool good = read_file(table, place, path, &exists);
    if (!exists)
        say_error("there is no configuration %s", path);
    return good && exists;
}
