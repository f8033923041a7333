/* SPDX-License-Identifier: MIT */
/* See crowd.h. Every member hears wishes on its line, and starts so many threads for each; a thread
 * says what it got on the same line. A thread that gets no lock says fence 0. */
#include "crowd.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MEMBERS_MAX = 256, STACK = 256 * 1024 };

static struct process members[MEMBERS_MAX];
static int member_count;

/* ---- In a member ----------------------------------------------------------------------------- */

static hf_client *client;
static int own_line;
static hf_acquire_options options;

static void *take_a_turn(void *arg)
{
    (void)arg;
    hf_hold *hold = NULL;
    hf_status status = hf_acquire(client, "lock", &options, &hold, NULL);
    int64_t granted_ms = now_ms();
    uint64_t fence = hf_fence(hold);
    if (status != HF_OK || hf_release(&hold, NULL) != HF_OK)
        fence = 0;
    line_say(own_line, "%" PRIu64 " %" PRId64, fence, granted_ms);
    return NULL;
}

static void obey(const char *order)
{
    int threads = 0;
    int fair = 0;
    pthread_attr_t small;
    pthread_t thread;
    options = *HF_ACQUIRE(.wait_ms = -1);
    if (sscanf(order, "%d %" SCNd64 " %d", &threads, &options.lease_ms, &fair) != 3)
        _exit(1);
    options.fair = fair != 0;
    (void)pthread_attr_init(&small);
    (void)pthread_attr_setstacksize(&small, STACK);
    (void)pthread_attr_setdetachstate(&small, PTHREAD_CREATE_DETACHED);
    while (threads-- > 0)
        if (pthread_create(&thread, &small, take_a_turn, NULL) != 0)
            _exit(1);
    (void)pthread_attr_destroy(&small);
}

static void be_a_member(const struct redis_server *server, int line)
{
    char order[LINE_MAX_TEXT];
    own_line = line;
    if (hf_open(server->url, NULL, &client, NULL) != HF_OK)
        _exit(1);
    while (line_hear(line, order, 120000))
        obey(order);
    _exit(0);
}

/* ---- In the test ----------------------------------------------------------------------------- */

void crowd_start(const struct redis_server *server, int count)
{
    assert_true(member_count == 0 && count <= MEMBERS_MAX);
    while (member_count < count) {
        int ends[2];
        assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
        pid_t parent = getpid();
        pid_t pid = fork();
        if (pid == 0) {
            die_with_parent(parent);
            for (int i = 0; i < member_count; i++)
                (void)close(members[i].line);
            (void)close(ends[0]);
            be_a_member(server, ends[1]);
        }
        (void)close(ends[1]);
        assert_true(pid > 0);
        members[member_count++] = (struct process){.pid = pid, .line = ends[0]};
    }
}

void crowd_join(int member, const struct crowd_wish *wish)
{
    line_say(members[member].line, "%d %" PRId64 " %d", wish->threads, wish->lease_ms, wish->fair);
}

struct crowd_turn crowd_hear(int member)
{
    char heard[LINE_MAX_TEXT] = "";
    struct crowd_turn turn = {0};
    if (!line_hear(members[member].line, heard, 60000))
        fail_msg("member %d of the crowd has not had the lock", member);
    assert_int_equal(sscanf(heard, "%" SCNu64 " %" SCNd64, &turn.fence, &turn.granted_ms), 2);
    assert_true(turn.fence > 0);
    return turn;
}

void crowd_kill(int member)
{
    int status;
    if (members[member].pid == 0)
        return;
    (void)kill(members[member].pid, SIGKILL);
    (void)waitpid(members[member].pid, &status, 0);
    members[member].pid = 0;
}

pid_t crowd_pid(int member)
{
    return members[member].pid;
}

void crowd_end(void)
{
    for (int i = 0; i < member_count; i++) {
        crowd_kill(i);
        (void)close(members[i].line);
    }
    member_count = 0;
}
