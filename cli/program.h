/* SPDX-License-Identifier: MIT */
/* What the file of a command says about it before it is started. */
#ifndef CLI_PROGRAM_H
#define CLI_PROGRAM_H

/* Warns if the program may become another user, whom we cannot signal: it is set-user-ID (sudo, su,
 * pkexec, doas) and we are not root. `word` is looked up in PATH as execvp(3) does it. */
void program_warn_of_other_user(const char *word);

#endif
