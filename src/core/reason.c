/* SPDX-License-Identifier: MIT */
/* Names and texts of states and reasons, from the map in the header. */
#include <holdfast.h>

const char *hf_state_name(hf_state state)
{
    switch (state) {
    case HF_SAFE:
        return "SAFE";
    case HF_JEOPARDY:
        return "JEOPARDY";
    case HF_LOST:
        return "LOST";
    }
    return "?";
}

#define REASON_TEXT(name, value, text) text,

const char *hf_reason_text(hf_reason reason)
{
    static const char *const texts[HF_REASONS] = {HF_REASON_MAP(REASON_TEXT)};
    return (unsigned)reason < HF_REASONS ? texts[reason] : "not a reason of this library";
}
