/* SPDX-License-Identifier: MIT */
/* The table of base: every entry is found again, however it has grown since; chains stay short; and
 * without memory it goes on as it is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/random.h"
#include "base/table.h"
#include "gate.h"

enum { ENTRIES = 50000, CHAIN_MAX = 16, STEP = 1 << 24 };

typedef struct entry {
    uint64_t number;
    hf__node node;
} entry;

static entry entries[ENTRIES];
static hf__table table;
static int dropped;

static uint64_t hash_of(const hf__node *node)
{
    return HF__ENTRY(node, entry, node)->number;
}

static void drop(hf__node *node)
{
    (void)node;
    dropped++;
}

static entry *find(uint64_t number, int *steps)
{
    *steps = 0;
    for (hf__node *n = hf__table_first(&table, number); n != NULL; n = hf__table_next(&table, n)) {
        ++*steps;
        if (HF__ENTRY(n, entry, node)->number == number)
            return HF__ENTRY(n, entry, node);
    }
    return NULL;
}

/* Numbers as they are given to votes: their last bits are all the same. */
static void fill(uint64_t step)
{
    hf__table_init(&table, hash_of);
    memset(entries, 0, sizeof(entries));
    for (int i = 0; i < ENTRIES; i++) {
        entries[i].number = (uint64_t)i * step;
        hf__table_add(&table, &entries[i].node);
    }
}

static void every_entry_is_found_in_a_few_steps(void **state)
{
    (void)state;
    int steps;
    for (uint64_t step = 1; step <= STEP; step *= STEP) {
        fill(step);
        for (int i = 0; i < ENTRIES; i++) {
            assert_ptr_equal(find((uint64_t)i * step, &steps), &entries[i]);
            assert_in_range(steps, 1, CHAIN_MAX);
        }
        assert_null(find(ENTRIES * step, &steps));
        hf__table_free(&table, NULL);
    }
}

static void what_comes_and_goes_agrees_with_a_model(void **state)
{
    (void)state;
    uint64_t random = 7;
    int steps, inside = ENTRIES;
    fill(3);
    for (int i = 0; i < 4 * ENTRIES; i++) {
        entry *e = &entries[hf__random_below(&random, ENTRIES)];
        bool was_inside = hf__node_linked(&e->node);
        assert_true((find(e->number, &steps) == e) == was_inside);
        if (was_inside)
            hf__table_remove(&table, &e->node);
        else
            hf__table_add(&table, &e->node);
        inside += was_inside ? -1 : 1;
        assert_int_equal(table.count, inside);
    }
    dropped = 0;
    hf__table_free(&table, drop);
    assert_int_equal(dropped, inside);
}

static void without_memory_it_goes_on(void **state)
{
    (void)state;
    int steps;
    for (long refused = 0; refused < 4; refused++) {
        gate_fail_at(refused);
        fill(1);
        assert_true(gate_open());
        for (int i = 0; i < ENTRIES; i += 7)
            assert_ptr_equal(find((uint64_t)i, &steps), &entries[i]);
        hf__table_free(&table, NULL);
    }
}

static void names_that_differ_a_little_have_other_hashes(void **state)
{
    (void)state;
    char name[32];
    uint64_t seen[1000];
    for (int i = 0; i < 1000; i++) {
        int length = snprintf(name, sizeof(name), "order:%d", i);
        seen[i] = hf__hash(name, (size_t)length);
        for (int k = 0; k < i; k++)
            assert_true(seen[k] != seen[i]);
    }
    assert_true(hf__hash("", 0) != hf__hash("\0", 1));
    assert_true(hf__hash("\0", 1) != hf__hash("\0\0", 2));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_entry_is_found_in_a_few_steps),
        cmocka_unit_test(what_comes_and_goes_agrees_with_a_model),
        cmocka_unit_test(without_memory_it_goes_on),
        cmocka_unit_test(names_that_differ_a_little_have_other_hashes),
    };
    gate_install();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
