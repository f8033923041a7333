/* SPDX-License-Identifier: MIT */
/* Goal: an operator sees who holds what, exactly: every field of hf_inspect(), and with hf_list()
 * every lock that matches and no other, whatever bytes names and prefixes are made of.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "fixture.h"

static hf_client *client;
static hf_client *looker;
static hf_hold *hold;
static hf_error error;
static hf_inspection seen;

static int begin(void **state)
{
    (void)state;
    empty_server();
    open_client(&client);
    open_client(&looker);
    return 0;
}

/* ---- Verbs ----------------------------------------------------------------------------------- */

static void look(const char *name)
{
    memset(&seen, 0xee, sizeof(seen)); /* everything has to be filled */
    EXPECT(HF_OK, hf_inspect(looker, name, 0, &seen, &error));
}

struct list {
    size_t count;
    size_t stop_after; /* 0: never */
    size_t lengths[16];
    char names[16][HF_NAME_MAX + 1];
};

static struct list list;

static bool write_down(void *arg, const hf_inspection *inspection)
{
    struct list *kept = arg;
    if (kept->count < 16) {
        kept->lengths[kept->count] = inspection->name_length;
        memcpy(kept->names[kept->count], inspection->name, HF_NAME_MAX + 1);
    }
    kept->count++;
    return kept->count != kept->stop_after;
}

static size_t list_locks(hf_client *by, const char *pattern)
{
    list = (struct list){0};
    EXPECT(HF_OK, hf_list(by, pattern, write_down, &list, &error));
    return list.count;
}

static bool listed(const char *name, size_t length)
{
    for (size_t i = 0; i < list.count && i < 16; i++)
        if (list.lengths[i] == length && memcmp(list.names[i], name, length + 1) == 0)
            return true;
    return false;
}

/* ---- One lock -------------------------------------------------------------------------------- */

static void nobody_holds_it(void **state)
{
    (void)state;
    look("lock");
    assert_false(seen.held);
    assert_string_equal(seen.name, "lock");
    assert_int_equal(seen.name_length, 4);
    assert_string_equal(seen.owner, "");
    assert_int_equal(seen.fence, 0);
    assert_int_equal(seen.hold_count, 0);
    assert_int_equal(seen.holder_count, 0);
}

static void every_field_of_a_hold(void **state)
{
    (void)state;
    char host[65] = "";
    char value[256];
    assert_int_equal(gethostname(host, sizeof(host) - 1), 0);
    EXPECT(HF_OK,
           hf_acquire(client, "lock", HF_ACQUIRE(.lease_ms = 30000, .label = "import/nightly #3"),
                      &hold, &error));
    (void)snprintf(value, sizeof(value), "%s", raw(server, "GET lock"));
    look("lock");
    assert_true(seen.held);
    assert_false(seen.shared);
    assert_string_equal(seen.owner, value);
    assert_true(seen.fence == hf_fence(hold));
    assert_in_range(seen.remaining_ms, 20000, 30000);
    assert_int_equal(seen.hold_count, 1);
    assert_int_equal(seen.holder_count, 1);
    const hf_holder *holder = &seen.holders[0];
    assert_int_equal(strlen(holder->client_id), 32);
    assert_true(strncmp(value, holder->client_id, 32) == 0);
    assert_string_equal(holder->host, host);
    assert_string_equal(holder->label, "import/nightly #3");
    assert_int_equal(holder->pid, getpid());
    assert_true(holder->thread > 0);
    assert_int_equal(holder->number, 1);
    assert_in_range(holder->remaining_ms, 20000, 30000);
    EXPECT(HF_OK, hf_release(&hold, &error));
    look("lock");
    assert_false(seen.held);
    assert_true(seen.fence == 0); /* the slot has it now */
}

static void holders_of_an_owner(void **state)
{
    (void)state;
    hf_hold *second;
    EXPECT(HF_OK, hf_acquire(client, "lock",
                             HF_ACQUIRE(.lease_ms = 20000, .owner = "order 7", .label = "one"),
                             &hold, &error));
    EXPECT(HF_OK, hf_acquire(client, "lock",
                             HF_ACQUIRE(.lease_ms = 50000, .owner = "order 7", .label = "two"),
                             &second, &error));
    look("lock");
    assert_true(seen.held && seen.shared);
    assert_string_equal(seen.owner, "order 7");
    assert_int_equal(seen.hold_count, 2);
    assert_int_equal(seen.holder_count, 2);
    assert_string_equal(seen.holders[0].label, "two"); /* it lasts longer */
    assert_string_equal(seen.holders[1].label, "one");
    assert_in_range(seen.holders[0].remaining_ms, 40000, 50000);
    assert_in_range(seen.holders[1].remaining_ms, 10000, 20000);
    assert_in_range(seen.remaining_ms, 40000, 50000);
    assert_int_equal(seen.holders[0].number + seen.holders[1].number, 3);
    EXPECT(HF_OK, hf_release(&hold, &error));
    EXPECT(HF_OK, hf_release(&second, &error));
}

/* Re-entry is known to its process only: the server sees one hold. */
static void re_entry_is_one_hold(void **state)
{
    (void)state;
    hf_hold *inner;
    EXPECT(HF_OK, hf_acquire(client, "lock", NULL, &hold, &error));
    EXPECT(HF_OK, hf_acquire(client, "lock", NULL, &inner, &error));
    look("lock");
    assert_int_equal(seen.hold_count, 1);
    EXPECT(HF_OK, hf_release(&inner, &error));
    EXPECT(HF_OK, hf_release(&hold, &error));
}

static void a_foreign_lock(void **state)
{
    (void)state;
    char longer[HF_OWNER_MAX + 100];
    assert_string_equal(raw(server, "SET lock foreign"), "OK");
    look("lock");
    assert_true(seen.held);
    assert_false(seen.shared);
    assert_string_equal(seen.owner, "foreign");
    assert_int_equal(seen.remaining_ms, -1);
    assert_int_equal(seen.fence, 0);
    assert_int_equal(seen.hold_count, 1);
    assert_int_equal(seen.holder_count, 1);
    assert_string_equal(seen.holders[0].client_id, "");
    assert_int_equal(seen.holders[0].remaining_ms, -1);

    memset(longer, 'f', sizeof(longer) - 1);
    longer[sizeof(longer) - 1] = '\0';
    assert_string_equal(raw(server, "SET lock %s PX 20000", longer), "OK");
    look("lock");
    assert_true(strncmp(seen.owner, longer, 100) == 0);
    assert_true(strlen(seen.owner) <= HF_OWNER_MAX);
    assert_in_range(seen.remaining_ms, 10000, 20000);
}

static void another_type_of_key(void **state)
{
    (void)state;
    assert_string_equal(raw(server, "RPUSH lock a"), "1");
    EXPECT(HF_ESERVER, hf_inspect(looker, "lock", 0, &seen, &error));
    assert_non_null(strstr(error.text, "WRONGTYPE"));
}

/* ---- Names ----------------------------------------------------------------------------------- */

static char longest[HF_NAME_MAX + 1];

static const struct {
    const char *bytes;
    size_t length;
} names[] = {
    {"two words", 9},
    {"line\nbreak", 10},
    {"nul\0inside", 10},
    {"\xff\xfe\x80", 3},
    {"a*b?[c]\\d", 9},
    {"{x}", 3},
    {"hf", 2},
    {"}{", 2},
    {"锁", 3},
    {"x", 1},
    {longest, HF_NAME_MAX},
};

enum { NAMES = sizeof(names) / sizeof(names[0]) };

static void names_of_any_bytes(void **state)
{
    (void)state;
    hf_hold *holds[NAMES];
    memset(longest, 'n', HF_NAME_MAX);
    for (int i = 0; i < NAMES; i++) {
        EXPECT(HF_OK, hf_acquire(client, names[i].bytes, HF_ACQUIRE(.name_length = names[i].length),
                                 &holds[i], &error));
        EXPECT(HF_OK, hf_inspect(looker, names[i].bytes, names[i].length, &seen, &error));
        assert_true(seen.held);
        assert_true(seen.fence == hf_fence(holds[i]));
        assert_int_equal(seen.name_length, names[i].length);
        assert_memory_equal(seen.name, names[i].bytes, names[i].length);
        assert_int_equal(seen.name[names[i].length], '\0');
    }
    assert_int_equal(list_locks(looker, NULL), NAMES);
    for (int i = 0; i < NAMES; i++) {
        assert_true(listed(names[i].bytes, names[i].length));
        EXPECT(HF_OK, hf_release(&holds[i], &error));
    }
    assert_int_equal(list_locks(looker, NULL), 0);
}

/* ---- Lists ----------------------------------------------------------------------------------- */

static void patterns_choose(void **state)
{
    (void)state;
    static const char *const locks[] = {"order:1", "order:2", "order:13", "user:1", "x*y"};
    hf_hold *holds[5];
    for (int i = 0; i < 5; i++)
        EXPECT(HF_OK, hf_acquire(client, locks[i], NULL, &holds[i], &error));
    assert_int_equal(list_locks(looker, "order:?"), 2);
    assert_true(listed("order:1", 7) && listed("order:2", 7));
    assert_int_equal(list_locks(looker, "order:*"), 3);
    assert_int_equal(list_locks(looker, "*:1"), 2);
    assert_int_equal(list_locks(looker, "order:[23]"), 1);
    assert_int_equal(list_locks(looker, "x\\*y"), 1);
    assert_int_equal(list_locks(looker, "order"), 0);
    assert_int_equal(list_locks(looker, ""), 0);
    list = (struct list){.stop_after = 2};
    EXPECT(HF_OK, hf_list(looker, "*", write_down, &list, &error));
    assert_int_equal(list.count, 2);
    for (int i = 0; i < 5; i++)
        EXPECT(HF_OK, hf_release(&holds[i], &error));
}

/* The prefix stands for itself, and names are told without it. */
static void prefixes_stand_for_themselves(void **state)
{
    (void)state;
    static const char *const prefixes[] = {"a*b:", "axb:", "a?[x]\\^:", "{tag}:", "a*b:c"};
    hf_client *clients[5];
    hf_hold *holds[5];
    for (int i = 0; i < 5; i++) {
        EXPECT(HF_OK, hf_open(server->url, HF_CLIENT(.prefix = prefixes[i]), &clients[i], &error));
        EXPECT(HF_OK, hf_acquire(clients[i], "lock", NULL, &holds[i], &error));
    }
    for (int i = 0; i < 5; i++) {
        size_t expected = i == 0 ? 2 : 1; /* "a*b:" is also the beginning of "a*b:clock" */
        assert_int_equal(list_locks(clients[i], NULL), expected);
        assert_true(listed("lock", 4));
        assert_int_equal(list_locks(clients[i], "loc?"), 1);
        EXPECT(HF_OK, hf_inspect(clients[i], "lock", 0, &seen, &error));
        assert_true(seen.held && seen.fence == hf_fence(holds[i]));
        assert_string_equal(seen.name, "lock");
    }
    assert_int_equal(list_locks(looker, NULL), 5);
    for (int i = 0; i < 5; i++) {
        EXPECT(HF_OK, hf_release(&holds[i], &error));
        EXPECT_STATUS(HF_OK, hf_close(clients[i]));
    }
}

enum { MANY = 500 };

static bool count_once(void *arg, const hf_inspection *inspection)
{
    unsigned char *times = arg;
    int number = -1;
    if (sscanf(inspection->name, "lock %d", &number) == 1 && number >= 0 && number < MANY)
        times[number]++;
    return true;
}

/* Among other keys, which are not ours to list. One may be seen twice, none may be missed. */
static void five_hundred_locks(void **state)
{
    (void)state;
    static hf_hold *holds[MANY];
    static unsigned char times[MANY];
    memset(times, 0, sizeof(times));
    assert_string_equal(
        raw(server, "EVAL %s 0",
            "for i = 1, 1000 do redis.call('SET', 'noise' .. i, i) end return 'done'"),
        "done");
    for (int i = 0; i < MANY; i++) {
        char name[24];
        (void)snprintf(name, sizeof(name), "lock %d", i);
        EXPECT(HF_OK, hf_acquire(client, name, HF_ACQUIRE(.lease_ms = 30000), &holds[i], &error));
    }
    EXPECT(HF_OK, hf_list(looker, "lock *", count_once, times, &error));
    for (int i = 0; i < MANY; i++)
        assert_in_range(times[i], 1, 2);
    for (int i = 0; i < MANY; i++)
        EXPECT_STATUS(HF_OK, hf_release_nowait(&holds[i]));
    WAIT_UNTIL(list_locks(looker, NULL) == 0, 10000);
}

/* `see` may use the client, also to take the lock that it is told of. */
static bool look_inside(void *arg, const hf_inspection *inspection)
{
    hf_inspection inside;
    *(hf_status *)arg = hf_inspect(looker, inspection->name, 0, &inside, NULL);
    return false;
}

static void the_client_may_be_used_inside(void **state)
{
    (void)state;
    hf_status inside = HF_EINTERNAL;
    EXPECT(HF_OK, hf_acquire(client, "lock", NULL, &hold, &error));
    EXPECT(HF_OK, hf_list(looker, NULL, look_inside, &inside, &error));
    assert_int_equal(inside, HF_OK);
    EXPECT(HF_OK, hf_release(&hold, &error));
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, begin, close_clients)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(nobody_holds_it),
        TEST(every_field_of_a_hold),
        TEST(holders_of_an_owner),
        TEST(re_entry_is_one_hold),
        TEST(a_foreign_lock),
        TEST(another_type_of_key),
        TEST(names_of_any_bytes),
        TEST(patterns_choose),
        TEST(prefixes_stand_for_themselves),
        TEST(five_hundred_locks),
        TEST(the_client_may_be_used_inside),
    };
    return cmocka_run_group_tests_name("inspect", tests, start_server, end_server);
}
