/* SPDX-License-Identifier: MIT */
/* How the command ends: the codes that scripts may rely on. The map feeds the enum, the help and a
 * test of the manual. */
#ifndef CLI_EXIT_H
#define CLI_EXIT_H

#include <holdfast.h>

#define EXIT_MAP(X)                                                    \
    X(NO, 1, "the answer is no: nobody holds it, or it is sold out")   \
    X(USAGE, 64, "wrong usage")                                        \
    X(MISSING, 66, "there is no such thing")                           \
    X(NO_SERVER, 69, "no server, or it cannot serve")                  \
    X(BUSY, 75, "somebody else holds it, also after waiting")          \
    X(DENIED, 77, "the server refuses our credentials or permissions") \
    X(UNSAFE, 78, "the server was refused: it is not safe")            \
    X(LOST, 122, "the lock was lost")                                  \
    X(REVOKED, 123, "somebody asked for the lock")                     \
    X(OWN, 125, "holdfast itself failed")                              \
    X(CANNOT_RUN, 126, "the command cannot be run")                    \
    X(NOT_FOUND, 127, "the command was not found")

#define EXIT_ENUM(name, value, text) EXIT_##name = (value),
enum { EXIT_OK = 0, EXIT_MAP(EXIT_ENUM) EXIT_SIGNALLED = 128 /* and the number of the signal */ };

int exit_code_of(hf_status status);

#endif
