/* SPDX-License-Identifier: MIT */
#include "local.h"

#include "say.h"

bool local_start(char *url, size_t capacity)
{
    (void)url;
    (void)capacity;
    say_error("not written yet");
    return false;
}

bool local_look(struct local_status *status)
{
    (void)status;
    return false;
}

bool local_stop(void)
{
    return false;
}
