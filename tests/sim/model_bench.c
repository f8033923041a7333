/* SPDX-License-Identifier: MIT */
/* How many script calls a second the model server does. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/text.h"
#include "honesty.h"
#include "lua/scripts.h"
#include "server.h"

static double seconds_now(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void say_and_forget(sim_server *server, const char *bytes)
{
    const char *reply = NULL;
    sim_server_receive(server, 0, bytes, strlen(bytes));
    sim_server_taken(server, 0, sim_server_output(server, 0, &reply));
}

int model_bench(void)
{
    enum { ROUNDS = 500000 };
    char acquire[256];
    char release[256];
    hf__format(acquire, sizeof(acquire),
               "*13\r\n$7\r\nEVALSHA\r\n$40\r\n%s\r\n$1\r\n5\r\n$4\r\nlock\r\n$5\r\nqueue\r\n"
               "$5\r\nfence\r\n$5\r\nnotes\r\n$1\r\nh\r\n$7\r\nme@host\r\n$5\r\n30000\r\n"
               "$7\r\n3600000\r\n$1\r\n1\r\n$1\r\n0\r\n",
               hf__scripts[HF__SCRIPT_ACQUIRE].sha1);
    hf__format(release, sizeof(release),
               "*11\r\n$7\r\nEVALSHA\r\n$40\r\n%s\r\n$1\r\n5\r\n$4\r\nlock\r\n"
               "$5\r\nqueue\r\n$5\r\nfence\r\n$5\r\nnotes\r\n$1\r\nh\r\n$7\r\nme@host\r\n"
               "$1\r\n0\r\n$7\r\n3600000\r\n",
               hf__scripts[HF__SCRIPT_RELEASE].sha1);
    sim_server *server = sim_server_new();
    sim_server_set_time(server, 1700000000000000);
    sim_server_connect(server, 0);
    for (size_t i = 0; i < HF__SCRIPT_COUNT; i++)
        (void)sim_server_run(server, 3, (const char *[]){"SCRIPT", "LOAD", hf__scripts[i].body});
    double start = seconds_now();
    for (int i = 0; i < ROUNDS; i++) {
        say_and_forget(server, acquire);
        say_and_forget(server, release);
    }
    double taken = seconds_now() - start;
    (void)printf("acquire and release: %.0f script calls a second\n", 2 * ROUNDS / taken);
    sim_server_free(server);
    return 0;
}
