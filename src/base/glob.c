/* SPDX-License-Identifier: MIT */
/* A star is remembered, and taken back to when what follows it does not fit; only the last one
 * needs to be, so the time is at most the product of the two lengths. */
#include "base/glob.h"

typedef struct rest { /* of the pattern or of the text */
    const char *at;
    const char *end;
} rest;

/* Takes "[...]" off the pattern, which is behind the '['; whether the character is in it. */
static bool takes_class(rest *pattern, unsigned char c)
{
    bool inverted = pattern->at < pattern->end && *pattern->at == '^';
    bool found = false;
    pattern->at += inverted;
    while (pattern->at < pattern->end && *pattern->at != ']') {
        bool escaped = *pattern->at == '\\' && pattern->at + 1 < pattern->end;
        pattern->at += escaped;
        unsigned char low = (unsigned char)*pattern->at++, high = low;
        if (!escaped && pattern->at + 1 < pattern->end && pattern->at[0] == '-') {
            high = (unsigned char)pattern->at[1];
            pattern->at += 2;
        }
        found = found || (low <= high ? low <= c && c <= high : high <= c && c <= low);
    }
    pattern->at += pattern->at < pattern->end; /* the ']', which may be missing */
    return found != inverted;
}

/* Takes what stands for one character off the pattern, which is not at its end nor at a star. */
static bool takes_one(rest *pattern, char c)
{
    char first = *pattern->at++;
    if (first == '?')
        return true;
    if (first == '[')
        return takes_class(pattern, (unsigned char)c);
    if (first == '\\' && pattern->at < pattern->end)
        first = *pattern->at++;
    return first == c;
}

bool hf__glob_matches(const char *pattern, size_t pattern_length, const char *text,
                      size_t text_length)
{
    rest p = {pattern, pattern + pattern_length};
    rest t = {text, text + text_length};
    const char *behind_star = NULL, *star_ends = NULL;
    while (t.at < t.end) {
        rest tried = p;
        if (p.at < p.end && *p.at == '*') {
            behind_star = ++p.at;
            star_ends = t.at;
        } else if (p.at < p.end && takes_one(&tried, *t.at)) {
            p = tried;
            t.at++;
        } else if (behind_star != NULL) {
            p.at = behind_star;
            t.at = ++star_ends;
        } else {
            return false;
        }
    }
    while (p.at < p.end && *p.at == '*')
        p.at++;
    return p.at == p.end;
}
