/* SPDX-License-Identifier: MIT */
/* Names and texts of the statuses, from the map in the header. */
#include <holdfast.h>

#define STRING(x)   #x
#define VALUE_OF(x) STRING(x)

const char *hf_version(void)
{
    return VALUE_OF(HF_VERSION_MAJOR) "." VALUE_OF(HF_VERSION_MINOR) "." VALUE_OF(HF_VERSION_PATCH);
}

#define NAME_CASE(name, value, text) \
    case HF_##name:                  \
        return "HF_" #name;

const char *hf_status_name(hf_status status)
{
    switch (status) {
        HF_STATUS_MAP(NAME_CASE)
    }
    return "HF_?";
}

#define TEXT_CASE(name, value, text) \
    case HF_##name:                  \
        return text;

const char *hf_status_text(hf_status status)
{
    switch (status) {
        HF_STATUS_MAP(TEXT_CASE)
    }
    return "not a status of this library";
}
