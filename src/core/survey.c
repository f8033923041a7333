/* SPDX-License-Identifier: MIT */
/* A query that all servers of a quorum are asked, in parallel. It is decided as soon as the answers
 * that are in leave no doubt, whatever the others say, and at the latest when the time of its call
 * is over; then those that have not answered count as failed.
 *
 * A question is over when it is agreed who has the lock (agree.c). An order goes on from there: a
 * server has its own value and fence of the lock, so each of those that have it for the hold with
 * the majority gets the order with what it has said itself, and nobody else does. If it says that
 * this was not true any more, it is asked again: a vote may have been given a fresh number.
 *
 * An order is done when a majority has taken it. Failing that, when no more answers can come, what
 * it takes is less: one server, where the holder finds the request with its next renewal there, is
 * enough for revoke; for break the holder must not be left with a majority, so it counts as well
 * where it has none. The fence of a break is above all that were seen, at every server.
 *
 * An errand is done when a majority has said 1 before all else, or when no more answers can come.
 * Once a majority has said anything, the rest has only a while left.
 *
 * Nobody waits for the rest of an order, but it goes on: servers that answer later get the order as
 * well. What is lost with a connection from there on is not repeated, so that it comes to an end.
 */
#include "base/memory.h"
#include "core/agree.h"
#include "core/fail.h"
#include "core/state.h"

enum { PATIENCE = 4 };   /* a part of the time after which silence means that a server is gone */
enum { ORDERS_MAX = 3 }; /* to one server: then its lock changes faster than we can speak */

typedef enum voice_stage {
    ASKED,   /* who has it */
    HEARD,   /* it has said so, and there was no order for it yet */
    ORDERED, /* to do something about it */
    TAKEN,   /* it has done so */
    WITHOUT, /* it does not have the lock for the hold that is meant */
    FAILED   /* for the reason in `trouble` */
} voice_stage;

typedef struct voice { /* of one server */
    hf__part part;
    voice_stage stage;
    int orders;
    hf__answer said; /* its inspection is the one below */
    hf_inspection seen;
    hf_error trouble;
} voice;

struct hf__survey {
    hf__query *query;
    int count;
    uint64_t fence;     /* the highest that any has told */
    bool lingers;       /* its call is done, but servers that answer still get the order */
    bool has_target;    /* an order: the hold that it is meant for is known, */
    bool target_shared; /* or the owner */
    hf__buffer target;  /* by its value */
    voice voices[];
};

static void look(hf__survey *survey);

static voice *voice_of(hf__part *part)
{
    return HF__ENTRY(part, voice, part);
}

static bool is_errand(const hf__survey *survey)
{
    return survey->query->kind == HF__QUERY_ERRAND;
}

/* ---- Beginning and end ---- */

static void fail(voice *v, const hf_error *why)
{
    hf__link_withdraw(&v->part.request);
    v->stage = FAILED;
    v->trouble = *why;
}

static void submit(voice *v)
{
    hf_error full;
    if (!hf__link_full(v->part.link)) {
        hf__link_submit(&v->part.request);
        return;
    }
    hf__fail(&full, HF_EUNAVAILABLE, "%s: too many requests wait for it",
             v->part.link->server->url->display);
    fail(v, &full);
}

static void init_voice(hf__survey *survey, int index)
{
    hf__query *query = survey->query;
    voice *v = &survey->voices[index];
    v->part.request.kind = HF__REQUEST_QUERY;
    v->part.query = query;
    v->part.link = hf__server_link(&query->core->servers[index], query->slot);
    v->part.kind = is_errand(survey) ? HF__QUERY_ERRAND : HF__QUERY_INSPECT;
    v->said.inspection = &v->seen;
}

void hf__survey_start(hf__query *query)
{
    int count = query->core->config.server_count;
    hf__survey *survey = hf__alloc(sizeof(*survey) + (size_t)count * sizeof(voice));
    if (survey == NULL) {
        hf__query_end(query, HF_ENOMEM, "out of memory");
        return;
    }
    query->survey = survey;
    survey->query = query;
    survey->count = count;
    for (int i = 0; i < count; i++)
        init_voice(survey, i);
    for (int i = 0; i < count && query->call != NULL; i++)
        submit(&survey->voices[i]);
    look(survey);
}

void hf__survey_withdraw(hf__survey *survey)
{
    survey->lingers = false;
    for (int i = 0; i < survey->count; i++)
        hf__link_withdraw(&survey->voices[i].part.request);
}

bool hf__survey_lingers(const hf__survey *survey)
{
    return survey->lingers;
}

bool hf__survey_idle(const hf__survey *survey)
{
    for (int i = 0; i < survey->count; i++)
        if (survey->voices[i].part.request.place != HF__IDLE)
            return false;
    return true;
}

void hf__survey_free(hf__survey *survey)
{
    for (int i = 0; survey != NULL && i < survey->count; i++)
        hf__buffer_free(&survey->voices[i].said.value);
    if (survey != NULL)
        hf__buffer_free(&survey->target);
    hf__free(survey);
}

/* ---- What is known ---- */

static bool is_pending(const voice *v)
{
    return v->stage == ASKED || v->stage == ORDERED;
}

static int count_pending(const hf__survey *survey, unsigned among)
{
    int pending = 0;
    for (int i = 0; i < survey->count; i++)
        pending += (among >> i & 1) != 0 && is_pending(&survey->voices[i]);
    return pending;
}

static int count_in(const hf__survey *survey, voice_stage stage)
{
    int count = 0;
    for (int i = 0; i < survey->count; i++)
        count += survey->voices[i].stage == stage;
    return count;
}

static hf__slice value_of(const voice *v)
{
    return (hf__slice){hf__buffer_front(&v->said.value), hf__buffer_length(&v->said.value)};
}

static hf__opinion opinion_of(const voice *v)
{
    if (v->stage == ASKED || v->stage == FAILED)
        return (hf__opinion){.seen = NULL};
    return (hf__opinion){&v->seen, value_of(v)};
}

static void collect(const hf__survey *survey, hf__opinion *opinions)
{
    for (int i = 0; i < survey->count; i++)
        opinions[i] = opinion_of(&survey->voices[i]);
}

/* Says what happened at the servers that failed. `in_part`: something was done at others. */
static void blame(hf__survey *survey, const char *what, int how_many, bool in_part)
{
    const hf_error *troubles[HF_SERVERS_MAX];
    hf_error why;
    int count = 0;
    for (int i = 0; i < survey->count; i++)
        if (survey->voices[i].stage == FAILED)
            troubles[count++] = &survey->voices[i].trouble;
    hf__fail_each(&why, troubles, count, "%d of %d %s", how_many, survey->count, what);
    hf__query_end(survey->query, in_part ? HF_EUNKNOWN : why.status, why.text);
}

static void blame_silence(hf__survey *survey)
{
    int failed = count_in(survey, FAILED);
    bool few = survey->count - failed < hf__majority(survey->count);
    blame(survey, few ? "did not answer" : "did not answer, and the others do not agree", failed,
          false);
}

static void end_with(hf__survey *survey, uint64_t number)
{
    survey->query->call->answer->number = number;
    survey->lingers = number > 0;
    hf__query_end(survey->query, HF_OK, "");
}

static bool is_over(const hf__survey *survey)
{
    return survey->query->call == NULL && !survey->lingers;
}

/* ---- Questions ---- */

static void note_who_answered(const hf__survey *survey, const hf__opinion *opinions)
{
    hf__answer *answer = survey->query->call->answer;
    for (int i = 0; i < survey->count; i++) {
        bool answered = opinions[i].seen != NULL;
        answer->answered |= (unsigned)answered << i;
        answer->knows |= (unsigned)(answered && opinions[i].seen->fence > 0) << i;
    }
}

static void look_at_question(hf__survey *survey)
{
    hf__opinion opinions[HF_SERVERS_MAX];
    hf__answer *answer = survey->query->call->answer;
    int leader = -1;
    collect(survey, opinions);
    hf__agreement agreement = hf__agree(opinions, survey->count, &leader);
    bool open = agreement == HF__AGREE_OPEN;
    if (count_pending(survey, open ? ~0U : answer->awaits) > 0)
        return;
    note_who_answered(survey, opinions);
    if (open) {
        blame_silence(survey);
        return;
    }
    hf__agree_merge(opinions, survey->count, agreement == HF__AGREE_HELD ? leader : -1,
                    answer->inspection);
    hf__query_end(survey->query, HF_OK, "");
}

/* ---- Errands ---- */

static int count_agreeing(const hf__survey *survey)
{
    int count = 0;
    for (int i = 0; i < survey->count; i++) {
        const voice *v = &survey->voices[i];
        count += v->stage == HEARD && v->said.numbers.number[0] == 1;
    }
    return count;
}

/* Those who have not answered yet have little time: the errand can do without. */
static void hurry(const hf__survey *survey)
{
    hf__core *core = survey->query->core;
    hf__call *call = survey->query->call;
    hf__instant soon = hf__after(core->now, (hf__span){core->config.reply_timeout.ns / PATIENCE});
    if (!hf__before(soon, call->deadline))
        return;
    call->deadline = soon;
    hf__timer_set(&core->timers, &call->timer, soon);
}

static void look_at_errand(hf__survey *survey)
{
    hf__answer *answer = survey->query->call->answer;
    int heard = count_in(survey, HEARD), pending = count_pending(survey, ~0U);
    int agree = count_agreeing(survey), majority = hf__majority(survey->count);
    if (heard < majority) {
        if (pending == 0)
            blame(survey, "did not answer", count_in(survey, FAILED), heard > 0);
        return;
    }
    if (agree < majority && pending > 0) {
        hurry(survey);
        return;
    }
    for (int i = 0; i < survey->count; i++)
        if (survey->voices[i].stage == HEARD)
            answer->by_server[i] = survey->voices[i].said.numbers;
    hf__query_end(survey->query, HF_OK, "");
}

/* ---- Orders ---- */

/* The hold that has the lock now. */
static void find_target(hf__survey *survey)
{
    hf__opinion opinions[HF_SERVERS_MAX];
    int leader = -1;
    collect(survey, opinions);
    hf__agreement agreement = hf__agree(opinions, survey->count, &leader);
    if (agreement == HF__AGREE_FREE) {
        end_with(survey, 0);
    } else if (agreement == HF__AGREE_HELD) {
        hf__slice value = opinions[leader].value;
        if (!hf__buffer_reserve(&survey->target, value.length)) {
            hf__query_end(survey->query, HF_ENOMEM, "out of memory");
            return;
        }
        hf__buffer_append(&survey->target, value.bytes, value.length);
        survey->target_shared = opinions[leader].seen->shared;
        survey->has_target = true;
    } else if (count_pending(survey, ~0U) == 0) {
        blame_silence(survey);
    }
}

/* A majority was asked, and one of it has the highest fence. */
static uint64_t propose(const hf__survey *survey)
{
    return hf__is_fence(survey->fence + 1) ? survey->fence + 1 : 0;
}

static void give_order(hf__survey *survey, voice *v)
{
    hf__query *query = survey->query;
    bool breaks = query->kind == HF__QUERY_BREAK;
    hf_error restless;
    if (v->orders++ == ORDERS_MAX) {
        hf__fail(&restless, HF_EUNKNOWN, "%s: the lock changes all the time",
                 v->part.link->server->url->display);
        fail(v, &restless);
        return;
    }
    v->part.kind = query->kind;
    v->part.text = breaks ? value_of(v) : hf__query_text(query);
    v->part.number = v->seen.fence;
    v->part.proposal = breaks ? propose(survey) : 0;
    v->part.request.unanswered = false; /* a question that was lost has done nothing */
    v->stage = ORDERED;
    submit(v);
}

static void give_orders(hf__survey *survey)
{
    hf__slice target = {hf__buffer_front(&survey->target), hf__buffer_length(&survey->target)};
    for (int i = 0; i < survey->count && !is_over(survey); i++) {
        voice *v = &survey->voices[i];
        hf__opinion opinion = opinion_of(v);
        if (v->stage != HEARD)
            continue;
        if (hf__agree_is(&opinion, survey->target_shared, target))
            give_order(survey, v);
        else
            v->stage = WITHOUT;
    }
}

/* Revoke: 1. Break: the highest of the new fences. */
static uint64_t result_of(const hf__survey *survey)
{
    uint64_t highest = 0;
    for (int i = 0; i < survey->count; i++)
        if (survey->voices[i].stage == TAKEN && survey->voices[i].said.number > highest)
            highest = survey->voices[i].said.number;
    return highest;
}

static void look_at_order(hf__survey *survey)
{
    bool breaks = survey->query->kind == HF__QUERY_BREAK;
    int majority = hf__majority(survey->count), taken = count_in(survey, TAKEN);
    int gone = taken + count_in(survey, WITHOUT);
    if (taken < majority && count_pending(survey, ~0U) > 0)
        return;
    if (breaks ? gone >= majority : taken > 0 || count_in(survey, FAILED) == 0)
        end_with(survey, result_of(survey));
    else
        blame(survey, breaks ? "broken, no majority" : "took the request", taken, taken > 0);
}

/* ---- What happens ---- */

/* Giving orders may fail a link, and so bring us here again: each voice has its stage before. */
static void look(hf__survey *survey)
{
    const hf__query *query = survey->query;
    if (is_over(survey))
        return;
    if (is_errand(survey)) {
        look_at_errand(survey);
        return;
    }
    if (query->kind == HF__QUERY_INSPECT) {
        look_at_question(survey);
        return;
    }
    if (!survey->has_target)
        find_target(survey);
    if (survey->has_target)
        give_orders(survey);
    if (survey->has_target && query->call != NULL)
        look_at_order(survey);
}

/* An order is answered with 0 if the lock is not what the server had said it was. */
static void take_answer(hf__survey *survey, voice *v)
{
    if (is_errand(survey)) {
        v->stage = HEARD;
    } else if (v->part.kind == HF__QUERY_INSPECT) { /* perhaps late, of one that has failed */
        v->stage = HEARD;
        if (v->seen.fence > survey->fence)
            survey->fence = v->seen.fence;
    } else if (v->said.number > 0) {
        v->stage = TAKEN;
    } else {
        v->stage = ASKED;
        v->part.kind = HF__QUERY_INSPECT;
        submit(v);
    }
}

bool hf__survey_answered(hf__part *part, const hf__reply *reply)
{
    voice *v = voice_of(part);
    hf__survey *survey = part->query->survey;
    hf__read_answer result = hf__question_read(part, reply, &v->said);
    static const hf_error no_memory = {.status = HF_ENOMEM, .text = "out of memory"};
    if (result == HF__ANSWER_MALFORMED)
        return false;
    if (result == HF__ANSWER_READ)
        take_answer(survey, v);
    else
        fail(v, &no_memory);
    look(survey);
    return true;
}

void hf__survey_failed(hf__part *part, const hf_error *why)
{
    fail(voice_of(part), why);
    look(part->query->survey);
}

void hf__survey_timer(hf__query *query)
{
    hf__survey *survey = query->survey;
    hf_error why;
    for (int i = 0; i < survey->count; i++) {
        if (!is_pending(&survey->voices[i]))
            continue;
        hf__query_part_trouble(&survey->voices[i].part, &why);
        fail(&survey->voices[i], &why);
    }
    look(survey);
}
