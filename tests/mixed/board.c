/* SPDX-License-Identifier: MIT */
/* See mixed.h. The board is a file that every process maps. */
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "mixed.h"

struct board *board_map(const char *folder, bool make)
{
    char path[128];
    (void)snprintf(path, sizeof(path), "%s/board", folder);
    int file = open(path, O_RDWR | O_CLOEXEC | (make ? O_CREAT | O_EXCL : 0), 0600);
    if (file < 0)
        return NULL;
    void *board = MAP_FAILED;
    if (!make || ftruncate(file, sizeof(struct board)) == 0)
        board = mmap(NULL, sizeof(struct board), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    (void)close(file);
    return board != MAP_FAILED ? board : NULL;
}

void complain(struct board *board, const char *format, ...)
{
    if (atomic_fetch_add(&board->complaints, 1) != 0)
        return;
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(board->complaint, sizeof(board->complaint), format, arguments);
    va_end(arguments);
}
