/* SPDX-License-Identifier: MIT
 *
 * The SQL of examples/flashsale/fence_*.sql, by name, so that what is tested is what is shown. */
#ifndef HOLDFAST_TESTS_STATEMENTS_H
#define HOLDFAST_TESTS_STATEMENTS_H

/* Reads the file for this URL's database. Fails the test if there is none. */
void statements_load(const char *url);

/* The statement of that name. Fails the test if there is none. */
const char *statement(const char *name);

#endif
