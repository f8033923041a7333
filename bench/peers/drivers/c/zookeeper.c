/* SPDX-License-Identifier: MIT
 *
 * A lock on ZooKeeper by its own recipe: each who wants it makes an ephemeral node with a number
 * under the node of the lock; who has the lowest number has the lock, and everybody else watches
 * the node just before its own, so that a release wakes one. One session for the process.
 *
 * A watch may fire after the call that set it has seen that it is not needed: its signal is then
 * found by the next wait, which looks again and waits on: a signal is a reason to look, never a
 * grant. For the same reason places live as long as the session.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zookeeper/zookeeper.h>

#include "driver.h"

#define CONNECT_MS    10000
#define SEQUENCE_SIZE 10 /* digits that the server appends */

struct place;

struct session {
    const struct settings *settings;
    zhandle_t *handle;
    struct place *places;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    bool connected;
};

struct place {
    struct session *session;
    struct place *next;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    bool woken; /* by the watch */
    char lock[LOCK_NAME_SIZE];
    char node[LOCK_NAME_SIZE + 32]; /* ours, empty: none */
};

static void see_session(zhandle_t *handle, int type, int state, const char *path, void *arg)
{
    struct session *session = arg;
    (void)handle;
    (void)path;
    pthread_mutex_lock(&session->mutex);
    session->connected = type == ZOO_SESSION_EVENT && state == ZOO_CONNECTED_STATE;
    pthread_cond_broadcast(&session->changed);
    pthread_mutex_unlock(&session->mutex);
}

static bool wait_connected(struct session *session)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += CONNECT_MS / 1000;
    int failed = 0;
    pthread_mutex_lock(&session->mutex);
    while (!session->connected && failed == 0)
        failed = pthread_cond_timedwait(&session->changed, &session->mutex, &until);
    bool connected = session->connected;
    pthread_mutex_unlock(&session->mutex);
    return connected;
}

static void session_close(void *arg)
{
    struct session *session = arg;
    if (session->handle != NULL)
        zookeeper_close(session->handle);
    while (session->places != NULL) {
        struct place *place = session->places;
        session->places = place->next;
        free(place);
    }
    free(session);
}

static void *session_open(const struct settings *settings, char *problem)
{
    static const char scheme[] = "zookeeper://";
    struct session *session = calloc(1, sizeof *session);
    if (session == NULL)
        return NULL;
    session->settings = settings;
    pthread_mutex_init(&session->mutex, NULL);
    pthread_cond_init(&session->changed, NULL);
    zoo_set_debug_level(ZOO_LOG_LEVEL_ERROR);
    if (strncmp(settings->url, scheme, strlen(scheme)) == 0)
        session->handle = zookeeper_init(settings->url + strlen(scheme), see_session,
                                         (int)settings->lease_ms, NULL, session, 0);
    if (session->handle != NULL && wait_connected(session))
        return session;
    problem_set(problem, "cannot connect to %s", settings->url);
    session_close(session);
    return NULL;
}

/* Places are opened by the main thread alone. */
static void *place_open(void *arg, const char *lock, char *problem)
{
    struct place *place = calloc(1, sizeof *place);
    if (place == NULL) {
        problem_set(problem, "out of memory");
        return NULL;
    }
    place->session = arg;
    pthread_mutex_init(&place->mutex, NULL);
    pthread_cond_init(&place->changed, NULL);
    snprintf(place->lock, sizeof place->lock, "/%s", lock);
    int code =
        zoo_create(place->session->handle, place->lock, NULL, -1, &ZOO_OPEN_ACL_UNSAFE, 0, NULL, 0);
    if (code == ZOK || code == ZNODEEXISTS) {
        place->next = place->session->places;
        place->session->places = place;
        return place;
    }
    problem_set(problem, "zoo_create: %s", zerror(code));
    free(place);
    return NULL;
}

static void place_close(void *arg)
{
    (void)arg;
}

static bool release(void *arg, char *problem)
{
    struct place *place = arg;
    int code = zoo_delete(place->session->handle, place->node, -1);
    if (code != ZOK)
        problem_set(problem, "zoo_delete: %s", zerror(code));
    place->node[0] = '\0';
    return code == ZOK;
}

static const char *sequence_of(const char *node)
{
    size_t length = strlen(node);
    return length > SEQUENCE_SIZE ? node + length - SEQUENCE_SIZE : node;
}

/* The node before ours, into `before`; empty: ours is the first. A number that has run over is
 * beyond a benchmark. */
static int look(struct place *place, char *before, size_t size)
{
    struct String_vector children = {0};
    int code = zoo_get_children(place->session->handle, place->lock, 0, &children);
    const char *ours = sequence_of(place->node), *best = NULL;
    for (int i = 0; code == ZOK && i < children.count; i++) {
        const char *other = sequence_of(children.data[i]);
        if (strcmp(other, ours) < 0 && (best == NULL || strcmp(other, sequence_of(best)) > 0))
            best = children.data[i];
    }
    before[0] = '\0';
    if (best != NULL)
        snprintf(before, size, "%s/%s", place->lock, best);
    if (code == ZOK)
        deallocate_String_vector(&children);
    return code;
}

static void wake(zhandle_t *handle, int type, int state, const char *path, void *arg)
{
    struct place *place = arg;
    (void)handle;
    (void)type;
    (void)state;
    (void)path;
    pthread_mutex_lock(&place->mutex);
    place->woken = true;
    pthread_cond_signal(&place->changed);
    pthread_mutex_unlock(&place->mutex);
}

static int wait_for_end_of(struct place *place, const char *before)
{
    pthread_mutex_lock(&place->mutex);
    place->woken = false;
    pthread_mutex_unlock(&place->mutex);
    int code = zoo_wexists(place->session->handle, before, wake, place, NULL);
    pthread_mutex_lock(&place->mutex);
    while (code == ZOK && !place->woken)
        pthread_cond_wait(&place->changed, &place->mutex);
    pthread_mutex_unlock(&place->mutex);
    return code == ZNONODE ? ZOK : code;
}

static enum outcome acquire(void *arg, char *problem)
{
    struct place *place = arg;
    char path[LOCK_NAME_SIZE + 8], before[2 * LOCK_NAME_SIZE];
    snprintf(path, sizeof path, "%s/lock-", place->lock);
    int code = zoo_create(place->session->handle, path, NULL, -1, &ZOO_OPEN_ACL_UNSAFE,
                          ZOO_EPHEMERAL | ZOO_SEQUENCE, place->node, sizeof place->node);
    while (code == ZOK) {
        code = look(place, before, sizeof before);
        if (code == ZOK && before[0] == '\0')
            return GOT;
        if (code == ZOK && !place->session->settings->wait)
            return release(place, problem) ? REFUSED : FAILED;
        if (code == ZOK)
            code = wait_for_end_of(place, before);
    }
    problem_set(problem, "zookeeper: %s", zerror(code));
    return FAILED;
}

static const char *const peers[] = {"zookeeper", NULL};

const struct backend backend = {.peers = peers,
                                .open = session_open,
                                .close = session_close,
                                .place_open = place_open,
                                .place_close = place_close,
                                .acquire = acquire,
                                .release = release,
                                .lasts = true,
                                .refusal = "it has numbers for nodes, but no ids"};
