/* SPDX-License-Identifier: MIT */
/* An observer, shared by observe.c (asking and hearing) and sight.c (what is known, and told). */
#ifndef HF_CORE_OBSERVER_H
#define HF_CORE_OBSERVER_H

#include "core/state.h"

struct hf_observer {
    void *client; /* of the api room */
    hf__core *core;
    hf__node node; /* in core->observers */
    hf__node seen; /* in core->seen, while there are news */
    hf_sight_function *function;
    void *arg;
    hf__list news;
    bool missed;          /* some could not be kept */
    bool ended;           /* in core->ended_observers, until its call is done */
    bool asking;          /* its call is under way, */
    bool asked_free;      /* begun when nobody was known to have it */
    uint64_t asked_fence; /* and what was known then */
    bool subscribed;
    unsigned denials;            /* tries to subscribe without success, */
    hf__instant subscribe_again; /* and when to try again, if a timer looks then */
    bool knows;                  /* has looked: what is known is in the next three */
    bool held;
    uint64_t fence;
    hf_holder holder;
    bool suspected;      /* another program has it, and not that holder: to be looked at again */
    hf_sight granted;    /* the last that was heard before the first look; no fence: none */
    hf_sight ended_last; /* the same */
    uint64_t pending;    /* number of the PING after which to believe the last look; 0: none */
    hf__instant repeat;  /* when to ask for messages */
    hf__instant look;    /* when to look */
    hf__timer timer;
    hf__call call;
    hf__answer answer;
    hf_inspection inspection;
    size_t key_length;
    size_t channel_length;
    char text[]; /* key, channel */
};

/* sight.c */
void hf__sight_heard(hf_observer *observer, const hf_sight *sight);
void hf__sight_looked(hf_observer *observer);    /* its inspection is filled */
void hf__sight_confirmed(hf_observer *observer); /* the messages from before are in */
void hf__sight_drop(hf_observer *observer);      /* what has not been told */

#endif
