/* SPDX-License-Identifier: MIT */
/* Goal: eight processes work on one thing under a lock on five servers, while two of the servers,
 * any two, are killed or stopped in the middle of it; nothing is lost, nobody is stuck, and fences
 * grow from each to the next.
 *
 * The counter is a number in a file that is read, parsed, increased and written, with a yield in
 * the middle that invites everybody else in. A number in shared memory says how many are inside, so
 * that a meeting is seen even if no update happened to get lost by it. Whoever is inside writes its
 * fence behind those before it.
 *
 * A release that is under way when servers die may be one that nobody can confirm any more. That is
 * not for this test to judge, as long as the work goes on.
 *
 * The servers keep what they know, for they are killed and started again faster than any lease
 * ends; what becomes of those that forget is for test_quorum_restart.c.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "quorum.h"

enum { SERVERS = 5, PROCESSES = 8, LEASE_MS = 5000 };

struct shared {
    atomic_bool stop;
    atomic_int inside;
    atomic_int meetings;
    atomic_int unconfirmed;
    atomic_int counts[PROCESSES]; /* what each has added by now */
};

static struct shared *shared;
static char counter_path[96], fences_path[96];
static struct process *processes[PROCESSES];

/* ---- In the children ------------------------------------------------------------------------- */

static bool increment(int file)
{
    char text[16] = "";
    if (pread(file, text, sizeof(text) - 1, 0) <= 0)
        return false;
    long value = strtol(text, NULL, 10);
    (void)sched_yield();
    int length = snprintf(text, sizeof(text), "%ld\n", value + 1);
    return pwrite(file, text, (size_t)length, 0) == length;
}

static bool write_fence(int file, uint64_t fence)
{
    char text[24];
    int length = snprintf(text, sizeof(text), "%" PRIu64 "\n", fence);
    return write(file, text, (size_t)length) == length;
}

/* False: it makes no sense to go on. */
static bool work(hf_client *client, int counter, int fences, hf_error *why)
{
    hf_hold *hold;
    if (hf_acquire(client, "lock", HF_ACQUIRE(.wait_ms = -1, .lease_ms = LEASE_MS), &hold, why) !=
        HF_OK)
        return false;
    if (atomic_fetch_add(&shared->inside, 1) != 0)
        atomic_fetch_add(&shared->meetings, 1);
    bool written = increment(counter) && write_fence(fences, hf_fence(hold));
    atomic_fetch_sub(&shared->inside, 1);
    hf_status released = hf_release(&hold, why);
    atomic_fetch_add(&shared->unconfirmed, released == HF_EUNKNOWN);
    return written && (released == HF_OK || released == HF_EUNKNOWN);
}

/* Says what went wrong, or how closing went. */
static void be_a_worker(int line, void *arg)
{
    const int *number = arg;
    hf_client *client;
    hf_error why = {.text = "cannot open"};
    int counter = open(counter_path, O_RDWR | O_CLOEXEC);
    int fences = open(fences_path, O_WRONLY | O_APPEND | O_CLOEXEC);
    if (hf_open(quorum_urls(SERVERS), HF_CLIENT(.durable_servers = true, .call_timeout_ms = 500),
                &client, &why) == HF_OK) {
        while (!atomic_load(&shared->stop) && work(client, counter, fences, &why))
            atomic_fetch_add(&shared->counts[*number], 1);
        if (atomic_load(&shared->stop))
            (void)snprintf(why.text, sizeof(why.text), "closed: %s",
                           hf_status_name(hf_close(client)));
    }
    line_say(line, "%s", why.text);
}

/* ---- In the test ----------------------------------------------------------------------------- */

static void make_file(char *path, size_t capacity, const char *name, const char *text)
{
    (void)snprintf(path, capacity, "%s/%s", quorum.servers[0]->folder, name);
    FILE *file = fopen(path, "we");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static int begin(void **state)
{
    (void)state;
    quorum_start_durable(SERVERS);
    shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(shared != MAP_FAILED);
    make_file(counter_path, sizeof(counter_path), "counter", "0\n");
    make_file(fences_path, sizeof(fences_path), "fences", "");
    for (int i = 0; i < PROCESSES; i++)
        processes[i] = process_start(be_a_worker, &i);
    return 0;
}

static int end(void **state)
{
    int result = quorum_end(state);
    (void)munmap(shared, sizeof(*shared));
    return result;
}

static bool all_beyond(const int *before)
{
    for (int i = 0; i < PROCESSES; i++)
        if (atomic_load(&shared->counts[i]) <= before[i] + 1) /* one may have been under way */
            return false;
    return true;
}

static void show_who_is_stuck(const int *before)
{
    char said[LINE_MAX_TEXT];
    for (int i = 0; i < PROCESSES; i++) {
        bool over = line_hear(processes[i]->line, said, 0);
        print_error("process %d: %d, then %d; %s\n", i, before[i], atomic_load(&shared->counts[i]),
                    over ? said : "at work");
    }
}

static void expect_everybody_gets_on(void)
{
    int before[PROCESSES];
    int64_t give_up = now_ms() + QUORUM_PATIENCE_MS;
    for (int i = 0; i < PROCESSES; i++)
        before[i] = atomic_load(&shared->counts[i]);
    while (!all_beyond(before) && now_ms() < give_up)
        sleep_ms(2);
    if (!all_beyond(before)) {
        show_who_is_stuck(before);
        fail_msg("somebody is stuck");
    }
}

static int expect_all_done(void)
{
    int done = 0;
    atomic_store(&shared->stop, true);
    for (int i = 0; i < PROCESSES; i++) {
        EXPECT_HEARD(processes[i], "closed: HF_OK");
        assert_true(process_finish(processes[i], QUORUM_PATIENCE_MS));
        done += atomic_load(&shared->counts[i]);
    }
    return done;
}

static int count_in_file(void)
{
    int count = -1;
    FILE *file = fopen(counter_path, "re");
    assert_non_null(file);
    assert_int_equal(fscanf(file, "%d", &count), 1);
    (void)fclose(file);
    return count;
}

static int expect_fences_grow(void)
{
    uint64_t last = 0, fence;
    int count = 0;
    FILE *file = fopen(fences_path, "re");
    assert_non_null(file);
    for (; fscanf(file, "%" SCNu64, &fence) == 1; count++, last = fence)
        if (fence <= last)
            fail_msg("fence %" PRIu64 " follows %" PRIu64, fence, last);
    (void)fclose(file);
    return count;
}

typedef void trouble(int server_number);

/* Each pair in turn, and the next one as soon as these are back. */
static void survive(trouble *begin_trouble, trouble *end_trouble)
{
    expect_everybody_gets_on();
    for (int i = 0; i < SERVERS; i++)
        for (int j = i + 1; j < SERVERS; j++) {
            begin_trouble(i);
            begin_trouble(j);
            expect_everybody_gets_on();
            end_trouble(i);
            end_trouble(j);
        }
    expect_everybody_gets_on();
    int done = expect_all_done();
    assert_int_equal(count_in_file(), done);
    assert_int_equal(expect_fences_grow(), done);
    assert_int_equal(atomic_load(&shared->meetings), 0);
    print_message("%d done, %d releases unconfirmed\n", done, atomic_load(&shared->unconfirmed));
}

static void any_two_servers_may_be_killed(void **state)
{
    (void)state;
    survive(quorum_kill, quorum_restart);
}

static void any_two_servers_may_stand_still(void **state)
{
    (void)state;
    survive(quorum_freeze, quorum_thaw);
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(any_two_servers_may_be_killed),
        TEST(any_two_servers_may_stand_still),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
