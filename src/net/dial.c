/* SPDX-License-Identifier: MIT */
/* The life of a port, that is a link's connection: opened, asked until it is up, introduced,
 * closed.
 *
 * Once it is up, our credentials are fetched, which runs code of the application without the mutex.
 * Until the core has been told, nobody reads from the port: a server that speaks first would not be
 * understood. */
#include "net/engine.h"

#include <errno.h>
#include <string.h>

#include "base/memory.h"
#include "net/clock.h"

/* What the transport has to say about a connection, if it has; NULL: nothing. */
static const char *describe(const hf__driver *d, int link)
{
    const hf__port *port = &d->ports[link];
    if (port->connection == NULL || port->target->transport.describe == NULL)
        return NULL;
    const char *text = port->target->transport.describe(port->connection);
    return text != NULL && text[0] != '\0' ? text : NULL;
}

hf_status hf__port_verdict(int failure)
{
    if (failure == -HF_PEER_UNSAFE)
        return HF_EUNSAFE;
    return failure == -HF_PEER_DENIES ? HF_EDENIED : HF_OK;
}

static const char *plain_reason(int failure, char *place, size_t capacity)
{
    if (failure == 0)
        return "closed the connection";
    if (failure == ENXIO)
        return "the host name cannot be resolved";
    if (hf__port_verdict(failure) != HF_OK)
        return hf_status_text(hf__port_verdict(failure));
    return strerror_r(failure, place, capacity);
}

void hf__port_lost(hf__driver *d, int link, int failure)
{
    char text[128];
    const char *reason = failure != 0 ? describe(d, link) : NULL;
    if (reason == NULL)
        reason = plain_reason(failure, text, sizeof(text));
    hf__event event = {.kind = HF__EVENT_DISCONNECTED,
                       .link = link,
                       .reason = reason,
                       .status = hf__port_verdict(failure)};
    hf__engine_step(d, &event);
}

void hf__port_close(hf__driver *d, int link)
{
    hf__port *port = &d->ports[link];
    if (port->connection != NULL) {
        hf__loop_forget(d, link);
        port->target->transport.close(port->connection);
    }
    *port = (hf__port){.target = port->target};
    d->ports_changed = true;
}

/* Introduces us, unless the connection is closed by the time that we know who we are. */
static void introduce(hf__driver *d, int link)
{
    uint64_t number = d->ports[link].number;
    hf_credentials credentials;
    hf_error why;
    bool given;
    d->ports[link].introducing = true;
    hf_status status =
        hf__engine_fetch_credentials(d, d->ports[link].target->url, &credentials, &given, &why);
    hf__event event = {.kind = status == HF_OK ? HF__EVENT_CONNECTED : HF__EVENT_DISCONNECTED,
                       .link = link,
                       .status = status,
                       .wall = hf__clock_wall(),
                       .credentials = given ? &credentials : NULL};
    if (d->ports[link].number == number && !hf__fork_is_child(&d->fork_guard)) {
        d->ports[link].introducing = false;
        d->ports_changed = true; /* it was left out by whoever sleeps */
        event.reason = status == HF_OK ? describe(d, link) : why.text;
        hf__engine_step(d, &event);
    }
    hf__wipe(&credentials, sizeof(credentials));
}

void hf__port_check(hf__driver *d, int link)
{
    hf__port *port = &d->ports[link];
    hf__loop_forget(d, link);
    int status = port->target->transport.connected(port->connection);
    if (status < 0) {
        hf__port_lost(d, link, -status);
        return;
    }
    port->wait = status;
    port->connected = status == 0;
    hf__loop_watch(d, link);
    if (port->connected)
        introduce(d, link);
}

void hf__port_open(hf__driver *d, int link)
{
    hf__port *port = &d->ports[link];
    const hf__target *target = port->target;
    int status =
        target->transport.open(target->transport.arg, &target->endpoint, &port->connection);
    d->ports_changed = true;
    port->number = ++d->last_port;
    if (status < 0) {
        port->connection = NULL;
        hf__port_lost(d, link, -status);
    } else {
        hf__port_check(d, link);
    }
}
