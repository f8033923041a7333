-- SPDX-License-Identifier: MIT
--
-- The fence guard in SQL, for MariaDB and MySQL. docs/fencing.md explains it, tests/sql/test_fence.c runs it: each
-- statement goes by the name in front of it. Parameters are in the order of the question marks.

-- ---- One row: it keeps the largest fence that it has seen ----

-- name: create_account
CREATE TABLE account (id BIGINT PRIMARY KEY, balance BIGINT NOT NULL, fence BIGINT NOT NULL DEFAULT 0);

-- Before anything is read that the write depends on. No row: somebody newer was there, stop.
-- name: raise_row (fence, id, fence)
UPDATE account SET fence = ? WHERE id = ? AND fence <= ?;

-- No row: the same. The session must have been opened with CLIENT_FOUND_ROWS, or
-- an UPDATE that changes nothing, because the same values are there, counts no row either.
-- name: write_row (balance, fence, id, fence)
UPDATE account SET balance = ?, fence = ? WHERE id = ? AND fence <= ?;

-- ---- Several rows or tables: a guard of their own, first thing in the transaction ----

-- name: create_guard
CREATE TABLE fence_guard (thing BIGINT PRIMARY KEY, fence BIGINT NOT NULL);

-- name: raise_guard (thing, fence)
INSERT INTO fence_guard (thing, fence) VALUES (?, ?)
    ON DUPLICATE KEY UPDATE fence = GREATEST(fence, VALUES(fence));

-- Not the fence that was given: somebody newer was there, roll back.
-- name: read_guard (thing)
SELECT fence FROM fence_guard WHERE thing = ? FOR UPDATE;

-- ---- Insert only: nothing is refused, but who was late is never the latest ----

-- name: create_history
CREATE TABLE history (thing BIGINT NOT NULL, fence BIGINT NOT NULL, number BIGINT NOT NULL,
    value BIGINT NOT NULL, PRIMARY KEY (thing, fence, number));

-- name: add_history (thing, fence, number within the hold, value)
INSERT INTO history (thing, fence, number, value) VALUES (?, ?, ?, ?);

-- name: latest (thing)
SELECT value FROM history WHERE thing = ? ORDER BY fence DESC, number DESC LIMIT 1;
