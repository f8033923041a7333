/* SPDX-License-Identifier: MIT */
/* What the library tells a worker about its hold, and what it must never tell: anything after LOST
 * or after the release has returned, and LOST of a hold that is still valid. */
#include "client.h"

void listen_to(void *arg, const hf_event *event)
{
    struct listener *listener = arg;
    struct board *board = listener->board;
    if (atomic_load(&listener->released))
        complain(board, "told after the release: %s", hf_reason_text(event->reason));
    if (atomic_load(&listener->lost) && event->state != HF_LOST)
        complain(board, "told %s after LOST", hf_state_name(event->state));
    if (event->state == HF_LOST) {
        if (hf_is_valid(event->hold) || event->remaining_ms != 0)
            complain(board, "told LOST of a hold that is valid");
        atomic_store(&listener->lost, true);
    }
    (void)atomic_fetch_add(&board->told[event->state][event->reason], 1);
}
