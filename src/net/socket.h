/* SPDX-License-Identifier: MIT */
/* The transport that is used unless the application gives its own. */
#ifndef HF_NET_SOCKET_H
#define HF_NET_SOCKET_H

#include <holdfast.h>

extern const hf_transport hf__socket_transport;

#endif
