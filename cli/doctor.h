/* SPDX-License-Identifier: MIT */
/* What the doctor finds out about one server. */
#ifndef CLI_DOCTOR_H
#define CLI_DOCTOR_H

#include "session.h"

typedef enum finding_result { FINDING_OK, FINDING_WARNING, FINDING_BAD } finding_result;

enum { FINDINGS_MAX = 20, FINDING_TEXT_MAX = 400 };

struct finding {
    const char *name;
    finding_result result;
    char text[FINDING_TEXT_MAX];
};

struct findings {
    char url[SESSION_URL_MAX]; /* without its password */
    int code;                  /* how the command should end because of it */
    size_t count;
    struct finding list[FINDINGS_MAX];
};

void findings_add(struct findings *findings, finding_result result, const char *name,
                  const char *format, ...) __attribute__((format(printf, 4, 5)));
/* A call has failed in a way that says something about the server. */
void findings_add_failure(struct findings *findings, const char *name, const hf_error *error);

/* doctor_address.c: what the URL says by itself. `typed`: it stands on the command line. */
void doctor_look_at_address(const struct session_options *options, const char *url, bool typed,
                            struct findings *findings);

/* doctor_server.c: what the server says about itself. */
void doctor_judge(const hf_examination *server, struct findings *findings);
/* Two looks at its clock, so many ms apart. */
void doctor_judge_clock(const hf_examination *first, const hf_examination *last, int64_t apart_ms,
                        struct findings *findings);

/* doctor_try.c: what it lets us do. */
struct doctor_log; /* keeps the first warning of the client */
struct doctor_log *doctor_log_new(void);
void doctor_log_free(struct doctor_log *log);
hf_log_function doctor_log_line;
void doctor_try(hf_client *client, struct doctor_log *log, struct findings *findings);

#endif
