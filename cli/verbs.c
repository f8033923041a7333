/* SPDX-License-Identifier: MIT */
#include "verb.h"

const struct verb *const verbs[] = {
    &verb_run, &verb_acquire, &verb_renew, &verb_release, &verb_check,  &verb_wait,   &verb_status,
    &verb_ls,  &verb_revoke,  &verb_id,    &verb_stock,   &verb_doctor, &verb_server, 0};
