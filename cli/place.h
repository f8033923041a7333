/* SPDX-License-Identifier: MIT */
/* Where the private server lives: its folder. */
#ifndef CLI_PLACE_H
#define CLI_PLACE_H

#include "local.h"

/* Each: false if it cannot be, and it has been said why. */
bool place_name(struct local_status *place);                      /* fills in folder and socket */
bool place_trust(const struct local_status *place, bool *exists); /* not to exist is fine */
bool place_make(const struct local_status *place);

#endif
