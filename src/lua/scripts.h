/* SPDX-License-Identifier: MIT */
/* The scripts that run at the server, src/lua/NAME.lua without its comments, with the SHA-1 by
 * which the server knows them. The definitions are made at build time by cmake/embed_lua.cmake. */
#ifndef HF_LUA_SCRIPTS_H
#define HF_LUA_SCRIPTS_H

#include <stddef.h>

typedef enum hf__script_id {
    HF__SCRIPT_ACQUIRE,
    HF__SCRIPT_RELEASE,
    HF__SCRIPT_RENEW,
    HF__SCRIPT_REVOKE,
    HF__SCRIPT_BREAK,
    HF__SCRIPT_INSPECT,
    HF__SCRIPT_REFRESH,
    HF__SCRIPT_OBSERVE,
    HF__SCRIPT_LOADED, /* those before are loaded on each connection; the others are sent whole */
    HF__SCRIPT_PERMISSIONS = HF__SCRIPT_LOADED,
    HF__SCRIPT_JOIN,
    HF__SCRIPT_CONFIRM,
    HF__SCRIPT_IDS, /* from here on: errands, loaded when they are first needed */
    HF__SCRIPT_IDS_VOTE,
    HF__SCRIPT_STOCK_SET,
    HF__SCRIPT_STOCK_LOOK,
    HF__SCRIPT_STOCK_TAKE,
    HF__SCRIPT_STOCK_PUT,
    HF__SCRIPT_STOCK_SETTLE,
    HF__SCRIPT_STOCK_DELETE,
    HF__SCRIPT_WRITE_HELD,
    HF__SCRIPT_WRITE_FENCED,
    HF__SCRIPT_VALUE,
    HF__SCRIPT_COUNT
} hf__script_id;

typedef struct hf__script {
    const char *name;
    const char *body;
    size_t length;
    char sha1[41];
} hf__script;

extern const hf__script hf__scripts[HF__SCRIPT_COUNT];

#endif
