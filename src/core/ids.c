/* SPDX-License-Identifier: MIT */
/* How blocks of ids are reserved. At a single server one script does it all (src/lua/ids.lua). On a
 * quorum the servers only keep what they are told, in order of fences, and what comes next is
 * decided here: behind the highest block of all, if a majority answers that has forgotten nothing;
 * otherwise behind every block that the others can have forgotten, by their clocks. Those whose
 * answers count are named, and nobody else may keep the block: a server that was restarted since,
 * or was asked too late, has perhaps given its promise to somebody newer and does not know it. */
#include "core/ids.h"

#include "base/mutant.h"
#include "core/agree.h"
#include "core/fail.h"
#include "core/words.h"

enum { OTHER_EPOCH = -1, USED_UP = -2, UNNAMED = -3 };
enum { KNOWS = 1, FORGETS = 2 }; /* a server of a quorum, what its name was given */

static const int64_t sequences = INT64_C(1) << HF__IDS_SEQUENCE_BITS;
static const int64_t parts = INT64_C(1) << HF__IDS_PART_BITS;

static hf__query *ask(const hf__ids_config *config, hf__script_id script, const hf__words *w)
{
    return hf__query_new_errand(&(hf__errand){.script = script,
                                              .prefix = config->prefix,
                                              .name = config->name,
                                              .letters = "n",
                                              .words = w->all,
                                              .word_count = w->count});
}

/* Ahead of a process that we know nothing of: its clock may have been ahead of ours by the skew,
 * and its ids ahead of its clock by the same, if it has followed another one just before. */
static int64_t jump(const hf__ids_config *config)
{
    return HF__MUTANT(IDS_SHORT_JUMP) ? config->skew_s / 2 : 2 * config->skew_s + 1;
}

static hf_status say_epoch(const hf__ids_config *config, int64_t other, hf_error *error)
{
    return hf__fail(error, HF_EINVAL, "others use these ids with epoch_s %lld, not %lld",
                    (long long)other, (long long)config->epoch_s);
}

static hf_status say_nonsense(hf_error *error)
{
    return hf__fail(error, HF_ESERVER, "the server's answer about ids makes no sense");
}

/* The last second is left out: the id behind the last one must be a number too. */
static hf_status take_block(int64_t part, int64_t sequence, int64_t count, hf__ids_block *block,
                            hf_error *error)
{
    if (part < 0 || part >= parts - 1)
        return hf__fail(error, HF_ESERVER, "the epoch of these ids is used up, or is yet to come");
    *block = (hf__ids_block){hf__ids_make(part, sequence), count};
    return hf__ok(error);
}

/* ---- One server ---- */

hf__query *hf__ids_ask(const hf__ids_config *config, int64_t seen, int64_t count)
{
    hf__words w;
    hf__words_begin(&w);
    hf__words_put_number(&w, config->epoch_s);
    hf__words_put_number(&w, jump(config));
    hf__words_put_number(&w, count);
    hf__words_put_number(&w, hf__ids_part(seen));
    hf__words_put_number(&w, hf__ids_sequence(seen));
    return ask(config, HF__SCRIPT_IDS, &w);
}

hf_status hf__ids_ask_outcome(const hf__ids_config *config, const hf__numbers *said, int64_t count,
                              hf__ids_block *block, hf_error *error)
{
    int64_t part = said->number[0], sequence = said->number[1];
    if (part == OTHER_EPOCH && said->count == 2)
        return say_epoch(config, sequence, error);
    if (part == USED_UP && said->count == 1)
        return take_block(-1, 0, 0, block, error);
    if (part == UNNAMED && said->count == 1)
        return hf__fail(error, HF_EUNSAFE,
                        "the server does not tell its run_id (INFO server): after a restart ids "
                        "could be given out twice; connect without what hides it");
    if (said->count != 2 || part < 0 || sequence < 0 || sequence + count > sequences)
        return say_nonsense(error);
    return take_block(part, sequence, count, block, error);
}

/* ---- A quorum ---- */

size_t hf__ids_lock_name(char *place, hf__slice name)
{
    return (size_t)(hf__slice_put(hf__slice_put(place, HF__SLICE("hf:ids:")), name) - place);
}

hf__query *hf__ids_ask_votes(const hf__ids_config *config, uint64_t fence)
{
    hf__words w;
    hf__words_begin(&w);
    hf__words_put_number(&w, config->epoch_s);
    hf__words_put_number(&w, (int64_t)fence);
    return ask(config, HF__SCRIPT_IDS_VOTE, &w);
}

hf__query *hf__ids_keep(const hf__ids_config *config, uint64_t fence, const hf__ids_choice *choice)
{
    const hf__ids_block *block = &choice->block;
    int64_t behind = block->first + block->count;
    bool whole = hf__ids_sequence(behind) == 0; /* the second's last id is in it */
    hf__words w;
    hf__words_begin(&w);
    hf__words_put_number(&w, config->epoch_s);
    hf__words_put_number(&w, (int64_t)fence);
    hf__words_put_number(&w, hf__ids_part(block->first));
    hf__words_put_number(&w, whole ? sequences : hf__ids_sequence(behind));
    for (int i = 0; i < choice->asked; i++)
        hf__words_put_number(&w, choice->processes[i]);
    return ask(config, HF__SCRIPT_IDS_VOTE, &w);
}

/* What any of them objects to: HF_OK, HF_EBUSY, HF_EINVAL. */
static hf_status objection(const hf__ids_config *config, const hf__numbers *said, hf_error *error)
{
    if (said->count == 2 && said->number[0] == OTHER_EPOCH)
        return say_epoch(config, said->number[1], error);
    if (said->count == 2 && said->number[0] == 0)
        return hf__fail(error, HF_EBUSY, "somebody else has the lock of these ids by now");
    return HF_OK;
}

/* What those who answered come to. */
typedef struct votes {
    int heard, knowing;
    int64_t highest; /* the id behind all blocks that any of them knows of */
    int64_t latest;  /* clock of those that may have forgotten something */
    int64_t clocks[HF_SERVERS_MAX];
} votes;

static bool makes_sense(const hf__numbers *said)
{
    const int64_t *number = said->number;
    return said->count == 5 && (number[0] == KNOWS || number[0] == FORGETS) && number[2] >= 0 &&
           number[2] < parts && number[3] >= 0 && number[3] <= sequences && number[4] >= 0;
}

static void count_vote(votes *v, const int64_t *number)
{
    int64_t known = hf__ids_make(number[2], number[3]);
    v->highest = known > v->highest ? known : v->highest;
    v->knowing += number[0] == KNOWS;
    if (number[0] == FORGETS && number[1] > v->latest)
        v->latest = number[1];
    v->clocks[v->heard++] = number[1];
}

static hf_status count_votes(const hf__ids_config *config, const hf__numbers *said, int servers,
                             votes *v, hf_error *error)
{
    for (int i = 0; i < servers; i++) {
        if (said[i].count == 0)
            continue;
        hf_status status = objection(config, &said[i], error);
        if (status != HF_OK)
            return status;
        if (!makes_sense(&said[i]))
            return say_nonsense(error);
        count_vote(v, said[i].number);
    }
    return v->heard >= hf__majority(servers) ? HF_OK : say_nonsense(error);
}

/* The clock in the middle, of two the earlier: one that is ahead of its time does not count. */
static int64_t middle(votes *v)
{
    int64_t *clocks = v->clocks;
    for (int i = 1; i < v->heard; i++)
        for (int j = i; j > 0 && clocks[j] < clocks[j - 1]; j--) {
            int64_t other = clocks[j];
            clocks[j] = clocks[j - 1];
            clocks[j - 1] = other;
        }
    return clocks[(v->heard - 1) / 2];
}

/* If enough of them know all, the others have no say: what they promised may be forgotten. */
static void name_voters(const hf__numbers *said, int servers, bool forgets, hf__ids_choice *choice)
{
    choice->asked = 0;
    for (int i = 0; i < servers; i++)
        if (said[i].count > 0 && (forgets || said[i].number[0] == KNOWS))
            choice->processes[choice->asked++] = said[i].number[4];
}

/* Behind a jump, the clock of one that forgot counts from its answer on, which came after it did:
 * the others' answers may be older. A jump is from the time and not from the last jump, so that ids
 * are never further ahead than one of them. */
hf_status hf__ids_choose(const hf__ids_config *config, const hf__numbers *said, int servers,
                         int64_t seen, int64_t count, hf__ids_choice *choice, hf_error *error)
{
    votes v = {.highest = seen};
    hf_status status = count_votes(config, said, servers, &v, error);
    if (status != HF_OK)
        return status;
    int64_t now = middle(&v), part = hf__ids_part(v.highest);
    int64_t sequence = hf__ids_sequence(v.highest);
    bool few_know = v.knowing < hf__majority(servers);
    bool forgets = few_know && !HF__MUTANT(IDS_NO_JUMP);
    if (now < 0)
        return take_block(-1, 0, 0, &choice->block, error);
    if (forgets) {
        now = (now > v.latest ? now : v.latest) + jump(config);
        part++;
        sequence = 0;
    }
    if (now > part) {
        part = now;
        sequence = 0;
    }
    if (sequence + count > sequences) {
        part++;
        sequence = 0;
    }
    name_voters(said, servers, few_know, choice);
    return take_block(part, sequence, count, &choice->block, error);
}

hf_status hf__ids_keep_outcome(const hf__ids_config *config, const hf__numbers *said, int servers,
                               hf_error *error)
{
    int kept = 0;
    hf_status status = HF_OK;
    for (int i = 0; i < servers; i++) {
        if (said[i].count == 1 && said[i].number[0] == 1)
            kept++;
        else if (said[i].count > 0 && status == HF_OK)
            status = objection(config, &said[i], error);
    }
    if (kept >= (HF__MUTANT(IDS_MINORITY) ? 1 : hf__majority(servers)) || HF__MUTANT(IDS_UNKEPT))
        return hf__ok(error);
    return status != HF_OK ? status : say_nonsense(error);
}
