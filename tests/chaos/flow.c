/* SPDX-License-Identifier: MIT */
/* See flow.h. Pieces keep their order, as TCP does: a piece is never due before the one ahead of
 * it. What has been read is delivered even if its sender has closed meanwhile; this is how requests
 * arrive that their client has long given up. If the receiver is gone, the bytes are forgotten and
 * the other direction goes on.
 *
 * The queue is bounded: a full flow does not read, and the sender feels it.
 */
#include "flow.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

enum { PIECE_BYTES = 4096, PIECES_MAX = 64 };

struct piece {
    struct piece *next;
    int64_t due_ns;
    size_t length;
    size_t sent;
    char bytes[PIECE_BYTES];
};

void flow_begin(struct flow *flow, int from, int to)
{
    *flow = (struct flow){.from = from, .to = to, .cut_after = -1};
}

bool flow_wants_bytes(const struct flow *flow)
{
    return !flow->ended && flow->cut_after != 0 && flow->pieces < PIECES_MAX;
}

static int64_t due(struct flow *flow, struct chance *chance, struct board *board)
{
    int64_t now = now_ns();
    int64_t when = now;
    if (flow->delay_ns > 0 && now < flow->delay_until_ns) {
        int most_ms = (int)(flow->delay_ns / MS_NS);
        when += flow->jitter ? chance_between(chance, 0, most_ms) * MS_NS : flow->delay_ns;
        (void)atomic_fetch_add(&board->faults[FAULT_DELAYED], 1);
    }
    return when > flow->last_due_ns ? when : flow->last_due_ns;
}

static void append(struct flow *flow, struct piece *piece)
{
    if (flow->last != NULL)
        flow->last->next = piece;
    else
        flow->first = piece;
    flow->last = piece;
    flow->last_due_ns = piece->due_ns;
    flow->pieces++;
}

static void drop_first(struct flow *flow)
{
    struct piece *piece = flow->first;
    flow->first = piece->next;
    if (flow->first == NULL)
        flow->last = NULL;
    flow->pieces--;
    free(piece);
}

void flow_read(struct flow *flow, struct chance *chance, struct board *board)
{
    struct piece *piece = malloc(sizeof(*piece));
    if (piece == NULL)
        return;
    size_t most = PIECE_BYTES;
    if (flow->cut_after > 0 && (size_t)flow->cut_after < most)
        most = (size_t)flow->cut_after;
    ssize_t got = recv(flow->from, piece->bytes, most, MSG_DONTWAIT);
    bool nothing_now = got < 0 && (errno == EAGAIN || errno == EINTR);
    if (got <= 0 || flow->swallow) {
        flow->ended = flow->ended || (got <= 0 && !nothing_now);
        flow->swallowed = flow->swallowed || got > 0;
        free(piece);
        return;
    }
    if (flow->cut_after > 0)
        flow->cut_after -= got;
    flow->subscribes =
        flow->subscribes || memmem(piece->bytes, (size_t)got, "SUBSCRIBE", 9) != NULL;
    piece->next = NULL;
    piece->length = (size_t)got;
    piece->sent = 0;
    piece->due_ns = due(flow, chance, board);
    append(flow, piece);
}

/* false: the receiver takes no more now. */
static bool send_first(struct flow *flow)
{
    struct piece *piece = flow->first;
    ssize_t sent = send(flow->to, piece->bytes + piece->sent, piece->length - piece->sent,
                        MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0 && (errno == EAGAIN || errno == EINTR))
        return false;
    piece->sent = sent < 0 ? piece->length : piece->sent + (size_t)sent;
    if (piece->sent == piece->length)
        drop_first(flow);
    return true;
}

void flow_deliver(struct flow *flow, int64_t now)
{
    while (flow->first != NULL && flow->first->due_ns <= now)
        if (!send_first(flow))
            return;
    if (flow->ended && flow->first == NULL && !flow->closed) {
        (void)shutdown(flow->to, SHUT_WR);
        flow->closed = true;
    }
}

void flow_hurry(struct flow *flow)
{
    for (struct piece *piece = flow->first; piece != NULL; piece = piece->next)
        piece->due_ns = 0;
    flow->last_due_ns = 0;
    flow->delay_ns = 0;
    flow->cut_after = flow->cut_after == 0 ? 0 : -1;
}

bool flow_is_cut(const struct flow *flow)
{
    return flow->cut_after == 0 && flow->first == NULL;
}

void flow_end(struct flow *flow)
{
    while (flow->first != NULL)
        drop_first(flow);
}
