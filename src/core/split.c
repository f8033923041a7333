/* SPDX-License-Identifier: MIT */
/* A call of renewals that the server refused as a whole, such as for a key that this user may not
 * access any more. The error does not say which of its holds it is about, and the others must not
 * suffer for it: so the call is sent again in two halves, at once, until the culprit is alone.
 * That takes two calls for each halving, fourteen for one culprit among seventy.
 *
 * A hold that was refused alone shares no call with others until a renewal of its own has been
 * answered; the watchdog tries it again one by one (watch.c). Errors that are about the server, and
 * not about what it was asked, are not split: each hold hears of them, and tries again later. */
#include "base/mutant.h"
#include "core/state.h"

static bool is_about_one(const hf__link *link, const hf__reply *reply)
{
    hf_error why;
    hf__verdict verdict = hf__judge(reply, link->server->url->display, &why);
    return verdict == HF__VERDICT_KEY || verdict == HF__VERDICT_COMMAND ||
           verdict == HF__VERDICT_FINAL;
}

bool hf__split_refused(const hf__link *link, const hf__reply *reply, hf__request *const *group,
                       unsigned count)
{
    if (count < 2 || !hf__reply_refuses(reply) || !is_about_one(link, reply) ||
        HF__MUTANT(REFUSED_TOGETHER))
        return false;
    for (unsigned i = 0; i < count; i++) {
        hf__request_hold(group[i])->shares_call = (unsigned char)((count + 1) / 2);
        if (hf__request_wanted(group[i]))
            hf__link_enqueue(group[i]);
        hf__request_settle(group[i]);
    }
    return true;
}
