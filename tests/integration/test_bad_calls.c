/* SPDX-License-Identifier: MIT */
/* Goal: like test_bad_input.c, for renewal, owners, labels and the calls that look at locks: a bad
 * argument gets HF_EINVAL and a text that names it, and no byte is sent.
 */
#include <string.h>

#include "fixture.h"

static long long connections_before;
static hf_client *client;
static hf_error error;
static hf_inspection inspection;

static int begin(void **state)
{
    (void)state;
    connections_before = connections_seen();
    open_client(&client);
    return 0;
}

/* ---- Verbs ----------------------------------------------------------------------------------- */

static void expect_refused_for(const char *word)
{
    expect_says(error.text, word);
    assert_int_equal(connections_seen(), connections_before);
}

#define REFUSED(word, ...) refuse(HF_ACQUIRE(__VA_ARGS__), (word))

static void refuse(const hf_acquire_options *options, const char *word)
{
    hf_hold *hold = (hf_hold *)&error; /* anything but NULL: the call has to clear it */
    EXPECT(HF_EINVAL, hf_acquire(client, "lock", options, &hold, &error));
    assert_null(hold);
    expect_refused_for(word);
}

static void *letters(char *place, size_t count)
{
    memset(place, 'x', count);
    place[count] = '\0';
    return place;
}

static bool see(void *arg, const hf_inspection *seen)
{
    (void)arg;
    return seen == NULL;
}

/* ---- Options --------------------------------------------------------------------------------- */

static void renewals_that_are_refused(void **state)
{
    (void)state;
    REFUSED("renew_interval_ms", .lease_ms = 1000, .renew_interval_ms = 1000);
    REFUSED("renew_interval_ms", .lease_ms = 1000, .renew_interval_ms = 5000);
    REFUSED("renew_interval_ms", .renew_interval_ms = 10000); /* the default lease */
    REFUSED("renew_interval_ms", .renew_interval_ms = -1);
    REFUSED("renew_interval_ms", .renew_interval_ms = INT64_MIN);
    REFUSED("renew_interval_ms", .renew_interval_ms = 1);
    REFUSED("no_renewal", .renew_interval_ms = 100, .no_renewal = true);
    REFUSED("renew_timeout_ms", .renew_timeout_ms = -1);
    REFUSED("renew_timeout_ms", .renew_timeout_ms = HF_MS_MAX + 1ll);
    REFUSED("max_hold_ms", .max_hold_ms = -1);
    REFUSED("max_hold_ms", .max_hold_ms = HF_MS_MAX + 1ll);
    REFUSED("warn_ms", .warn_ms = -1);
    REFUSED("warn_ms", .lease_ms = 1000, .warn_ms = 1000);
    REFUSED("warn_ms", .warn_ms = INT64_MAX);
}

static void owners_and_labels_that_are_refused(void **state)
{
    (void)state;
    char words[HF_OWNER_MAX + 2];
    REFUSED("owner", .owner = "");
    REFUSED("owner", .owner = letters(words, HF_OWNER_MAX + 1));
    REFUSED("label", .label = letters(words, HF_LABEL_MAX + 1));
    REFUSED("label", .label = "line\nbreak");
    REFUSED("label", .label = "\x7f");
    REFUSED("label", .label = "Übung");
}

/* ---- Calls ----------------------------------------------------------------------------------- */

static void null_where_something_is_needed(void **state)
{
    (void)state;
    EXPECT(HF_EINVAL, hf_inspect(NULL, "lock", 0, &inspection, &error));
    expect_refused_for("client");
    EXPECT(HF_EINVAL, hf_inspect(client, NULL, 0, &inspection, &error));
    expect_refused_for("name");
    EXPECT(HF_EINVAL, hf_inspect(client, "lock", 0, NULL, &error));
    expect_refused_for("inspection");
    EXPECT(HF_EINVAL, hf_list(NULL, NULL, see, NULL, &error));
    expect_refused_for("client");
    EXPECT(HF_EINVAL, hf_list(client, NULL, NULL, NULL, &error));
    expect_refused_for("see");
    EXPECT(HF_EINVAL, hf_revoke(NULL, "lock", 0, NULL, &error));
    expect_refused_for("client");
    EXPECT(HF_EINVAL, hf_revoke(client, NULL, 0, NULL, &error));
    expect_refused_for("name");
    EXPECT(HF_EINVAL, hf_break(NULL, "lock", 0, NULL, &error));
    expect_refused_for("client");
    EXPECT(HF_EINVAL, hf_break(client, NULL, 0, NULL, &error));
    expect_refused_for("name");
    EXPECT_STATUS(HF_EINVAL, hf_stats_read(NULL, &(hf_stats){0}));
    EXPECT_STATUS(HF_EINVAL, hf_stats_read(client, NULL));
}

static void null_where_nothing_is_fine(void **state)
{
    (void)state;
    assert_int_equal(hf_hold_state(NULL), HF_LOST);
    assert_int_equal(hf_fence(NULL), 0);
    assert_int_equal(hf_descriptor(NULL), -1);
    EXPECT_STATUS(HF_EINVAL, hf_inspect(client, NULL, 0, &inspection, NULL));
    EXPECT_STATUS(HF_EINVAL, hf_list(client, NULL, NULL, NULL, NULL));
}

static void names_that_are_refused(void **state)
{
    (void)state;
    char name[HF_NAME_MAX + 2];
    const char *const names[] = {"", "hf:x", letters(name, HF_NAME_MAX + 1)};
    for (int i = 0; i < 3; i++) {
        EXPECT(HF_EINVAL, hf_inspect(client, names[i], 0, &inspection, &error));
        EXPECT(HF_EINVAL, hf_revoke(client, names[i], 0, NULL, &error));
        EXPECT(HF_EINVAL, hf_break(client, names[i], 0, NULL, &error));
    }
    EXPECT(HF_EINVAL, hf_inspect(client, name, SIZE_MAX, &inspection, &error));
    expect_refused_for("name");
}

static void texts_that_are_refused(void **state)
{
    (void)state;
    char words[4096];
    EXPECT(HF_EINVAL, hf_revoke(client, "lock", 0, letters(words, HF_REASON_MAX + 1), &error));
    expect_refused_for("why");
    EXPECT(HF_EINVAL, hf_list(client, letters(words, 4000), see, NULL, &error));
    expect_refused_for("pattern");
}

static void unknown_states_and_reasons_have_a_name(void **state)
{
    (void)state;
    assert_string_equal(hf_state_name(HF_SAFE), "SAFE");
    assert_string_equal(hf_state_name(HF_JEOPARDY), "JEOPARDY");
    assert_string_equal(hf_state_name(HF_LOST), "LOST");
    assert_non_null(hf_state_name((hf_state)77));
    assert_non_null(hf_reason_text((hf_reason)77));
    for (int i = 0; i < HF_REASONS; i++)
        assert_true(strlen(hf_reason_text((hf_reason)i)) > 0);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, begin, close_clients)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(renewals_that_are_refused),
        TEST(owners_and_labels_that_are_refused),
        TEST(null_where_something_is_needed),
        TEST(null_where_nothing_is_fine),
        TEST(names_that_are_refused),
        TEST(texts_that_are_refused),
        TEST(unknown_states_and_reasons_have_a_name),
    };
    return cmocka_run_group_tests_name("bad calls", tests, start_server, end_server);
}
