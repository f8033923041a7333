/* SPDX-License-Identifier: MIT */
/* Giving a majority back. Each vote is released at its own server; what the release comes to is
 * certain as soon as a majority has said so, and the others go on by themselves. A hold that was
 * given back while it was valid is lost only if so many servers did not have it any more that it
 * cannot have had a majority. Where only servers can decide that were asked twice, and had nothing
 * the second time, the outcome is unknown. */
#include "core/fail.h"
#include "core/quorum.h"

static void finish_release(hf_hold *main, hf_status status, const char *text)
{
    for (int i = 0; i < hf__servers_of(main); i++)
        if (main->ballot->votes[i] != NULL)
            hf__vote_drop(main->ballot->votes[i]); /* goes on by itself */
    if (status == HF_OK || status == HF_ELOST)
        hf__stats_released(main, status == HF_OK, HF_REASON_GONE);
    hf__release_end_call(main, status, text);
    hf__hold_over(main);
    hf__hold_settle(main);
}

/* What is certain once each server has been heard, or cannot be. With a majority that is free of
 * it, others can have the lock, whatever the rest has. Servers that granted it when it was decided
 * stand in for those that are silent, but not for one that had lost it. */
static void check_release(hf_hold *main)
{
    int n = hf__servers_of(main), quorum = hf__quorum_size(main->core);
    int count[HF__RELEASE_WORDS] = {0};
    for (int i = 0; i < n; i++)
        count[main->ballot->words[i]]++;
    int unheard = count[HF__UNHEARD] + count[HF__UNANSWERED];
    int perhaps = count[HF__PERHAPS_RELEASED];
    int free = n - count[HF__NO_WORD] - unheard - count[HF__NOT_RELEASED] - perhaps;
    int late = count[HF__NOT_RELEASED] == 0 ? count[HF__RELEASED_LATE] : 0;
    if (count[HF__RELEASED] + late >= quorum)
        finish_release(main, HF_OK, "");
    else if (count[HF__NOT_RELEASED] > 0 &&
             count[HF__RELEASED] + count[HF__NO_WORD] + unheard + perhaps < quorum)
        finish_release(main, HF_ELOST, "the lock was taken away before the release");
    else if (count[HF__NO_WORD] == 0 && free >= quorum)
        finish_release(main, HF_OK, "");
    else if (count[HF__NO_WORD] == 0 && perhaps > 0 &&
             free + count[HF__UNANSWERED] + perhaps >= quorum)
        finish_release(main, HF_EUNKNOWN,
                       "answers to the release were lost, and the lock was gone when it was sent "
                       "again: released by the first copies, or lost before");
    else if (count[HF__NO_WORD] == 0 && free + count[HF__UNANSWERED] >= quorum)
        finish_release(main, HF_EUNKNOWN, "too few of the servers can be reached to tell");
    else if (count[HF__NO_WORD] == 0)
        finish_release(main, HF_EUNAVAILABLE, "too few of the servers can be reached");
}

/* It cannot be heard for now. What it has is given back in the background. */
void hf__handback_unheard(hf_hold *main, int server, bool was_asked)
{
    main->ballot->words[server] = was_asked ? HF__UNANSWERED : HF__UNHEARD;
    check_release(main);
}

void hf__handback_released(hf_hold *main, int server, hf__outcome outcome)
{
    static const unsigned char words[] = {[HF__RELEASE_DONE] = HF__RELEASED,
                                          [HF__RELEASE_LOST] = HF__NOT_RELEASED,
                                          [HF__RELEASE_UNKNOWN] = HF__PERHAPS_RELEASED};
    unsigned char *word = &main->ballot->words[server];
    if (*word == HF__ASKED_FOR)
        *word = outcome == HF__RELEASE_DONE ? HF__RELEASED_LATE : HF__NEVER_HELD;
    else
        *word = words[outcome];
    check_release(main);
}

static hf__release_word expected_word(const hf_hold *vote)
{
    if (hf__vote_is_held(vote))
        return HF__NO_WORD;
    return vote != NULL && vote->stage == HF__HOLD_TRYING ? HF__ASKED_FOR : HF__NEVER_HELD;
}

/* One that is still being asked for, or that lost its copy, has nothing to give back that counted.
 */
void hf__handback_start(hf_hold *main)
{
    hf__ballot *ballot = main->ballot;
    hf__takeover_stop(main);
    for (int i = 0; i < hf__servers_of(main); i++) {
        hf_hold *vote = ballot->votes[i];
        ballot->words[i] = (unsigned char)expected_word(vote);
        if (vote != NULL && ballot->words[i] == HF__NEVER_HELD)
            hf__vote_drop(vote);
    }
    for (int i = 0; i < hf__servers_of(main); i++) {
        if (ballot->votes[i] == NULL || hf__vote_release(ballot->votes[i]))
            continue;
        ballot->words[i] = HF__NEVER_HELD;
        hf__vote_drop(ballot->votes[i]);
    }
    check_release(main);
}

/* The caller does not wait any longer. */
void hf__handback_late(const hf_hold *main, hf_error *error)
{
    int silent = 0;
    for (int i = 0; i < hf__servers_of(main); i++)
        silent += main->ballot->words[i] == HF__NO_WORD;
    hf__fail(error, HF_EUNKNOWN,
             "%d of %d servers gave no answer in time; the release goes on in the background",
             silent, hf__servers_of(main));
}

/* The leases are over: its votes, if they still have something to give back, do so by themselves.
 */
void hf__handback_over(hf_hold *main)
{
    hf_error late;
    hf__handback_late(main, &late);
    finish_release(main, late.status, late.text);
}
