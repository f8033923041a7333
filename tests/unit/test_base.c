/* SPDX-License-Identifier: MIT */
/* The room `base`: what everything else stands on. Timers and buffers are played against models
 * that are too simple to be wrong, with random operations from a fixed seed; a failure replays. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buffer.h"
#include "base/instant.h"
#include "base/list.h"
#include "base/random.h"
#include "base/text.h"
#include "base/timers.h"
#include "gate.h"

#define AT(number) ((hf__instant){number})

/* ---- Timers ---- */

enum { TIMERS = 64, TIMER_OPERATIONS = 100000, DUE_RANGE = 500 };

static hf__timer all_timers[TIMERS];
static int64_t model[TIMERS]; /* when due; 0: unset */

static int64_t earliest_in_model(void)
{
    int64_t earliest = INT64_MAX;
    for (int i = 0; i < TIMERS; i++)
        if (model[i] != 0 && model[i] < earliest)
            earliest = model[i];
    return earliest;
}

static void take_and_compare(hf__timers *timers, int64_t now)
{
    int64_t earliest = earliest_in_model();
    hf__timer *taken = hf__timers_take_due(timers, AT(now));
    if (earliest > now) {
        assert_null(taken);
        return;
    }
    assert_non_null(taken);
    assert_int_equal(model[taken - all_timers], earliest);
    assert_false(taken->set);
    model[taken - all_timers] = 0;
}

static void timers_agree_with_a_model(void **state)
{
    (void)state;
    hf__timers timers = {0};
    uint64_t random = 1;
    for (int i = 0; i < TIMERS; i++)
        all_timers[i].kind = (unsigned char)(i + 1);
    for (int operation = 0; operation < TIMER_OPERATIONS; operation++) {
        size_t chosen = hf__random_below(&random, TIMERS);
        int64_t time = 1 + (int64_t)hf__random_below(&random, DUE_RANGE);
        switch (hf__random_below(&random, 4)) {
        case 0:
        case 1:
            hf__timer_set(&timers, &all_timers[chosen], AT(time));
            model[chosen] = time;
            break;
        case 2:
            hf__timer_clear(&timers, &all_timers[chosen]);
            model[chosen] = 0;
            break;
        case 3:
            take_and_compare(&timers, time);
            break;
        }
        assert_int_equal(all_timers[chosen].set, model[chosen] != 0);
        assert_int_equal(hf__timers_next(&timers).ns, earliest_in_model());
    }
    while (earliest_in_model() != INT64_MAX)
        take_and_compare(&timers, DUE_RANGE);
    assert_null(hf__timers_take_due(&timers, HF__NEVER));
    for (int i = 0; i < TIMERS; i++)
        assert_int_equal(all_timers[i].kind, i + 1);
}

static void setting_again_moves_a_timer(void **state)
{
    (void)state;
    hf__timers timers = {0};
    hf__timer a = {.kind = 7}, b = {0};
    hf__timer_set(&timers, &a, AT(10));
    hf__timer_set(&timers, &b, AT(20));
    hf__timer_set(&timers, &a, AT(30)); /* later */
    assert_int_equal(hf__timers_next(&timers).ns, 20);
    hf__timer_set(&timers, &a, AT(5)); /* earlier */
    assert_ptr_equal(hf__timers_take_due(&timers, AT(100)), &a);
    assert_ptr_equal(hf__timers_take_due(&timers, AT(100)), &b);
    assert_null(hf__timers_take_due(&timers, AT(100)));
    assert_int_equal(a.kind, 7);
}

static void clearing_an_unset_timer_changes_nothing(void **state)
{
    (void)state;
    hf__timers timers = {0};
    hf__timer a = {.kind = 3}, b = {0};
    hf__timer_clear(&timers, &a);
    hf__timer_set(&timers, &b, AT(10));
    hf__timer_clear(&timers, &a);
    assert_int_equal(a.kind, 3);
    assert_int_equal(hf__timers_next(&timers).ns, 10);
    hf__timer_clear(&timers, &b);
    hf__timer_clear(&timers, &b);
    assert_true(hf__is_never(hf__timers_next(&timers)));
}

static void a_timer_is_due_at_its_time_and_not_before(void **state)
{
    (void)state;
    hf__timers timers = {0};
    hf__timer a = {0};
    hf__timer_set(&timers, &a, AT(10));
    assert_null(hf__timers_take_due(&timers, AT(9)));
    assert_ptr_equal(hf__timers_take_due(&timers, AT(10)), &a);
}

/* ---- Buffers ---- */

/* Byte number i of an endless stream; not periodic in any power of two. */
static char stream_byte(size_t i)
{
    return (char)(i * 31 + i / 251);
}

static void append_stream(hf__buffer *buffer, size_t from, size_t count)
{
    char *bytes = malloc(count + 1); /* of this size, so that reading beyond is seen */
    assert_non_null(bytes);
    for (size_t i = 0; i < count; i++)
        bytes[i] = stream_byte(from + i);
    hf__buffer_append(buffer, bytes, count);
    free(bytes);
}

static void expect_stream(const hf__buffer *buffer, size_t from, size_t to)
{
    assert_int_equal(hf__buffer_length(buffer), to - from);
    for (size_t i = from; i < to; i++)
        if (hf__buffer_front(buffer)[i - from] != stream_byte(i))
            fail_msg("byte %zu of the stream is wrong", i);
}

static void a_buffer_agrees_with_a_stream(void **state)
{
    (void)state;
    hf__buffer buffer = {0};
    uint64_t random = 2;
    size_t taken = 0, appended = 0;
    for (int operation = 0; operation < 20000; operation++) {
        size_t count = hf__random_below(&random, operation % 100 == 0 ? 9000 : 300);
        if (hf__random_below(&random, 2) == 0) {
            assert_true(hf__buffer_reserve(&buffer, count));
            assert_true(buffer.capacity - buffer.end >= count);
            append_stream(&buffer, appended, count);
            appended += count;
        } else {
            size_t most = appended - taken;
            count = count < most ? count : most;
            hf__buffer_take(&buffer, count);
            taken += count;
        }
        if (operation % 50 == 0)
            expect_stream(&buffer, taken, appended);
        assert_int_equal(hf__buffer_length(&buffer), appended - taken);
    }
    expect_stream(&buffer, taken, appended);
    hf__buffer_free(&buffer);
}

static void a_failed_reserve_leaves_the_content(void **state)
{
    (void)state;
    hf__buffer buffer = {0};
    gate_fail_at(0);
    assert_false(hf__buffer_reserve(&buffer, 1));
    assert_true(gate_open());
    assert_int_equal(hf__buffer_length(&buffer), 0);

    assert_true(hf__buffer_reserve(&buffer, 1000));
    append_stream(&buffer, 0, 1000);
    hf__buffer_take(&buffer, 100);
    gate_fail_at(0);
    assert_false(hf__buffer_reserve(&buffer, 100000));
    assert_true(gate_open());
    expect_stream(&buffer, 100, 1000);
    assert_true(hf__buffer_reserve(&buffer, 100000));
    append_stream(&buffer, 1000, 100000);
    expect_stream(&buffer, 100, 101000);
    hf__buffer_free(&buffer);
}

static void taken_space_is_used_again_without_memory(void **state)
{
    (void)state;
    hf__buffer buffer = {0};
    assert_true(hf__buffer_reserve(&buffer, 1));
    size_t capacity = buffer.capacity;
    append_stream(&buffer, 0, 1);
    assert_true(hf__buffer_reserve(&buffer, capacity - 1));
    append_stream(&buffer, 1, capacity - 1);
    hf__buffer_take(&buffer, capacity - 10);
    gate_fail_at(0);
    assert_true(hf__buffer_reserve(&buffer, capacity - 10));
    assert_false(gate_open());
    append_stream(&buffer, capacity, capacity - 10);
    expect_stream(&buffer, capacity - 10, 2 * capacity - 10);
    hf__buffer_free(&buffer);
}

static void a_buffer_shrinks_after_a_burst(void **state)
{
    (void)state;
    enum { BURST = 1024 * 1024, SMALL = 64 * 1024 };
    hf__buffer buffer = {0};
    assert_true(hf__buffer_reserve(&buffer, BURST));
    append_stream(&buffer, 0, BURST);
    assert_true(buffer.capacity >= BURST);
    hf__buffer_take(&buffer, BURST - 1);
    expect_stream(&buffer, BURST - 1, BURST);
    hf__buffer_take(&buffer, 1);
    assert_true(buffer.capacity <= SMALL);

    assert_true(hf__buffer_reserve(&buffer, 100)); /* and goes on working */
    append_stream(&buffer, 0, 100);
    hf__buffer_clear(&buffer);
    assert_int_equal(hf__buffer_length(&buffer), 0);
    assert_true(buffer.capacity >= 100); /* what is small is kept */
    hf__buffer_free(&buffer);
    assert_int_equal(buffer.capacity, 0);
}

/* ---- Lists ---- */

typedef struct letter {
    char name;
    hf__node node;
} letter;

/* The names in order, forwards; the links backwards must say the same. */
static void expect_letters(const hf__list *list, const char *names)
{
    size_t count = 0;
    for (hf__node *node = hf__list_first(list); node != NULL; node = hf__list_next(list, node)) {
        assert_int_equal(HF__ENTRY(node, letter, node)->name, names[count]);
        assert_ptr_equal(node->prev->next, node);
        assert_ptr_equal(node->next->prev, node);
        count++;
    }
    assert_int_equal(count, strlen(names));
    assert_int_equal(list->count, count);
    if (count > 0)
        assert_int_equal(HF__ENTRY(hf__list_last(list), letter, node)->name, names[count - 1]);
    else
        assert_null(hf__list_last(list));
}

static void a_list_keeps_its_order(void **state)
{
    (void)state;
    hf__list list;
    letter a = {.name = 'a'}, b = {.name = 'b'}, c = {.name = 'c'}, d = {.name = 'd'};
    hf__list_init(&list);
    expect_letters(&list, "");
    assert_null(hf__list_first(&list));
    hf__list_append(&list, &b.node);
    hf__list_append(&list, &c.node);
    hf__list_prepend(&list, &a.node);
    hf__list_append(&list, &d.node);
    expect_letters(&list, "abcd");
    hf__list_remove(&list, &b.node); /* in the middle */
    expect_letters(&list, "acd");
    assert_false(hf__node_linked(&b.node));
    hf__list_insert_before(&list, &d.node, &b.node);
    expect_letters(&list, "acbd");
    hf__list_remove(&list, &a.node); /* at the start */
    hf__list_remove(&list, &d.node); /* at the end */
    expect_letters(&list, "cb");
    hf__list_remove(&list, &b.node);
    hf__list_remove(&list, &c.node);
    expect_letters(&list, "");
    hf__list_prepend(&list, &a.node);
    expect_letters(&list, "a");
    assert_true(hf__node_linked(&a.node)); /* also when it is the only one */
}

/* ---- Text ---- */

static void expect_digits(uint64_t number, const char *expected)
{
    char digits[20];
    size_t count = hf__digits(digits, number);
    assert_int_equal(count, strlen(expected));
    assert_memory_equal(digits, expected, count);
}

static void digits_are_decimal(void **state)
{
    (void)state;
    expect_digits(0, "0");
    expect_digits(9, "9");
    expect_digits(10, "10");
    expect_digits(99, "99");
    expect_digits(100, "100");
    expect_digits(1005, "1005");
    expect_digits(604800000, "604800000");
    expect_digits(INT64_MAX, "9223372036854775807");
    expect_digits(UINT64_MAX, "18446744073709551615");
}

static bool parses(const char *text, uint64_t max, uint64_t expected)
{
    uint64_t number = 12345;
    return hf__parse_decimal(text, strlen(text), max, &number) && number == expected;
}

static bool refuses(const char *text, uint64_t max)
{
    uint64_t number = 12345;
    return !hf__parse_decimal(text, strlen(text), max, &number) && number == 12345;
}

static void decimals_parse_up_to_their_limit(void **state)
{
    (void)state;
    assert_true(parses("0", 65535, 0));
    assert_true(parses("007", 65535, 7));
    assert_true(parses("65535", 65535, 65535));
    assert_true(refuses("65536", 65535));
    assert_true(refuses("655350", 65535));
    assert_true(parses("18446744073709551615", UINT64_MAX, UINT64_MAX));
    assert_true(refuses("18446744073709551616", UINT64_MAX));
    assert_true(refuses("18446744073709551620", UINT64_MAX));
    assert_true(refuses("99999999999999999999999", UINT64_MAX));
    assert_true(parses("10", 10, 10));
    assert_true(refuses("11", 10));
}

static void a_limit_of_one_digit_is_a_limit(void **state)
{
    (void)state;
    assert_true(parses("5", 5, 5));
    assert_true(parses("0", 0, 0));
    assert_true(refuses("10", 5));
    assert_true(refuses("6", 5));
    assert_true(refuses("1", 0));
}

static void junk_is_no_decimal(void **state)
{
    static const char *const junk[] = {"",   "-1",  "+1",  " 1",   "1 ",  "1a", "a",
                                       "0x", "1.0", "1e3", "1\n2", "1,0", "/",  ":"};
    (void)state;
    for (size_t i = 0; i < sizeof(junk) / sizeof(junk[0]); i++)
        assert_true(refuses(junk[i], UINT64_MAX));
    uint64_t number = 0;
    assert_false(hf__parse_decimal("1\0", 2, 100, &number)); /* a NUL is junk, too */
    assert_true(hf__parse_decimal("123", 2, 100, &number));  /* the length counts, not a NUL */
    assert_int_equal(number, 12);
}

static void every_byte_becomes_printable(void **state)
{
    (void)state;
    char all[256], shown[257];
    for (int i = 0; i < 256; i++)
        all[i] = (char)i;
    hf__printable(shown, sizeof(shown), all, sizeof(all));
    assert_int_equal(strlen(shown), 256);
    for (int i = 0; i < 256; i++)
        assert_int_equal(shown[i], i >= 0x20 && i < 0x7f ? i : '?');
}

static void printable_text_is_cut_to_its_place(void **state)
{
    (void)state;
    char place[6] = "......";
    hf__printable(place, 4, "a\nbcdef", 7);
    assert_memory_equal(place, "a?b\0..", 6);
    hf__printable(place, 1, "abc", 3);
    assert_memory_equal(place, "\0?b\0..", 6);
    hf__printable(place, 0, "abc", 3); /* no room, not even for a NUL */
    assert_memory_equal(place, "\0?b\0..", 6);
    hf__printable(place, 6, NULL, 0);
    assert_string_equal(place, "");
}

static void formatted_text_is_cut_to_its_place(void **state)
{
    (void)state;
    char place[6] = "......";
    hf__format(place, 5, "%s %d", "hello", 7);
    assert_memory_equal(place, "hell\0.", 6);
    hf__format(place, 6, "%d", 12345);
    assert_string_equal(place, "12345");
    hf__format(place, 1, "%s", "abc");
    assert_memory_equal(place, "\0002345", 6);
    hf__format(place, 0, "%s", "xyz");
    assert_memory_equal(place, "\0002345", 6);
}

/* ---- Instants ---- */

static void never_stays_never(void **state)
{
    (void)state;
    assert_true(hf__is_never(hf__after(HF__NEVER, hf__span_ms(604800000))));
    assert_true(hf__is_never(hf__after(HF__NEVER, hf__span_ms(-1))));
    assert_false(hf__is_never(hf__after(AT(0), hf__span_ms(604800000))));
    assert_true(hf__before(AT(INT64_MAX - 1), HF__NEVER));
    assert_false(hf__before(HF__NEVER, HF__NEVER));
    assert_int_equal(hf__earlier(HF__NEVER, AT(5)).ns, 5);
    assert_int_equal(hf__earlier(AT(5), HF__NEVER).ns, 5);
    assert_true(hf__is_never(hf__later(HF__NEVER, AT(5))));
    assert_true(hf__is_never(hf__later(AT(5), HF__NEVER)));
}

static void instants_and_spans_add_up(void **state)
{
    (void)state;
    hf__instant start = AT(1000);
    assert_int_equal(hf__after(start, hf__span_ms(2)).ns, 2001000);
    assert_int_equal(hf__between(start, hf__after(start, hf__span_ms(7))).ns, 7000000);
    assert_int_equal(hf__between(AT(7), AT(5)).ns, -2);
    assert_int_equal(hf__span_to_ms((hf__span){1999999}), 1); /* never overstated */
    assert_int_equal(hf__span_to_ms((hf__span){-1}), 0);
    assert_int_equal(hf__span_to_ms(hf__span_ms(604800000)), 604800000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(timers_agree_with_a_model),
        cmocka_unit_test(setting_again_moves_a_timer),
        cmocka_unit_test(clearing_an_unset_timer_changes_nothing),
        cmocka_unit_test(a_timer_is_due_at_its_time_and_not_before),
        cmocka_unit_test(a_buffer_agrees_with_a_stream),
        cmocka_unit_test(a_failed_reserve_leaves_the_content),
        cmocka_unit_test(taken_space_is_used_again_without_memory),
        cmocka_unit_test(a_buffer_shrinks_after_a_burst),
        cmocka_unit_test(a_list_keeps_its_order),
        cmocka_unit_test(digits_are_decimal),
        cmocka_unit_test(decimals_parse_up_to_their_limit),
        cmocka_unit_test(a_limit_of_one_digit_is_a_limit),
        cmocka_unit_test(junk_is_no_decimal),
        cmocka_unit_test(every_byte_becomes_printable),
        cmocka_unit_test(printable_text_is_cut_to_its_place),
        cmocka_unit_test(formatted_text_is_cut_to_its_place),
        cmocka_unit_test(never_stays_never),
        cmocka_unit_test(instants_and_spans_add_up),
    };
    gate_install();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
