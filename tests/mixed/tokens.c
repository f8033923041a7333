/* SPDX-License-Identifier: MIT */
/* Tokens on their way from process to process. Each lock has one place for a token, a file; a newer
 * token replaces an older one, whose lock then ends with its lease. Whoever wants the token renames
 * the file, which only one can do. The file also tells the fence and the party of the hold, so that
 * the one who takes it up can compare.
 *
 * The detacher's belief ends before it lets go, and the next one begins when the attach has
 * returned: in between nobody believes anything. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "worker.h"

struct token {
    uint64_t fence;
    uint64_t party;
    uint32_t side;
    char text[HF_TOKEN_MAX];
};

static void place_of(const struct worker *worker, uint32_t lock, char path[128])
{
    (void)snprintf(path, 128, "%s/token-%u", worker->party->folder, lock);
}

static void own_place(const struct worker *worker, char path[128])
{
    (void)snprintf(path, 128, "%s/token-of-%u", worker->party->folder, worker->number);
}

static void leave_in_place(struct worker *worker, uint32_t lock, const struct token *token)
{
    char own[128];
    char place[128];
    own_place(worker, own);
    place_of(worker, lock, place);
    FILE *file = fopen(own, "we");
    bool written = file != NULL && fwrite(token, sizeof(*token), 1, file) == 1;
    if (file != NULL && fclose(file) != 0)
        written = false;
    if (!written || rename(own, place) != 0)
        complain(worker->party->board, "a token cannot be written");
}

void token_leave(struct worker *worker, struct tenure *tenure)
{
    struct party *party = worker->party;
    struct token token = {
        .fence = hf_fence(tenure->hold), .party = tenure->record.belief.party, .side = party->side};
    hf_error error;
    note_release(worker, tenure);
    tenure->record.released_ns = 0; /* the lock is not free: nothing is handed over */
    hf_status status = hf_detach(&tenure->hold, token.text, &error);
    note(worker, &tenure->record);
    note_status(party, "hf_detach", status, &error);
    if (status == HF_OK) {
        count_one(party, COUNT_DETACHED);
        leave_in_place(worker, tenure->record.belief.lock, &token);
    }
}

static bool claim(struct worker *worker, uint32_t lock, struct token *token)
{
    char own[128];
    char place[128];
    own_place(worker, own);
    place_of(worker, lock, place);
    if (rename(place, own) != 0)
        return false;
    FILE *file = fopen(own, "re");
    bool read = file != NULL && fread(token, sizeof(*token), 1, file) == 1;
    if (file != NULL)
        (void)fclose(file);
    (void)unlink(own);
    return read;
}

bool token_take(struct worker *worker, struct tenure *tenure, uint32_t lock)
{
    struct party *party = worker->party;
    struct token token;
    hf_error error;
    char name[16];
    if (!claim(worker, lock, &token))
        return false;
    lock_name(name, lock);
    int64_t asked_ns = now_ns();
    hf_status status = hf_attach(party->client, name, token.text, NULL, &tenure->hold, &error);
    note_status(party, "hf_attach", status, &error);
    if (status != HF_OK)
        return false;
    tenure->record = note_begin(worker, lock, HOW_ATTACHED, asked_ns);
    tenure->record.belief.party = token.party;
    tenure->lease_ms = LEASE_USUAL_MS;
    note_granted(worker, tenure);
    count_one(party, token.side == SIDE_OLD ? COUNT_TOKENS_OF_OLD : COUNT_TOKENS_OF_NEW);
    if (hf_fence(tenure->hold) != token.fence)
        complain(party->board, "the %s side attached a token of the %s side with another fence",
                 side_name(party->side), side_name((enum side)token.side));
    return true;
}
