/* SPDX-License-Identifier: MIT */
/* The server's part in the fuzz target of the core: what it says, chosen by the input, on any link
 * that is open. Nothing of it needs to fit to what was asked. */
#ifndef HF_TESTS_FUZZ_SERVER_H
#define HF_TESTS_FUZZ_SERVER_H

void say_anything(void);     /* bytes of the input */
void say_greeting(void);     /* to all of it */
void say_integer(void);      /* milliseconds, in the form that is expected next */
void say_batch(void);        /* to a call of renewals */
void say_to_query(void);     /* inspections and scans */
void say_bare_integer(void); /* in the form of a release's answer */
void say_busy(void);         /* held by a stranger, or by one of our own holds */
void say_error(void);        /* of any kind */
/* About waiting, and on the link of messages. */
void say_queued(void);  /* busy, and at some place in the queue */
void say_granted(void); /* to an acquire, and others wait */
void say_push_greeting(void);
void say_message(void); /* of a grant and so on, mostly well made */
void say_sight(void);   /* to observers: confirmations and messages */
void say_pong(void);
void say_push_anything(void); /* bytes of the input */

#endif
