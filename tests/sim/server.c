/* SPDX-License-Identifier: MIT */
/* See server.h. This file is the server as the world sees it: connections, which collect bytes
 * until they make a command and keep what the server has to say; and what may happen to a whole
 * server.
 *
 * Servers are numbered, the lowest free number first, so that their run ids differ from each other
 * and yet are the same in every run of a seed that begins with no server.
 */
#include "server.h"

#include <stdlib.h>
#include <string.h>

#include "sandbox.h"
#include "state.h"

enum { SERVERS_MAX = 1024, BULK_MAX = 512 * 1024 * 1024 };

static bool numbers_taken[SERVERS_MAX];

static uint64_t take_number(void)
{
    uint64_t number = 0;
    while (number < SERVERS_MAX - 1 && numbers_taken[number])
        number++;
    numbers_taken[number] = true;
    return number;
}

sim_server *sim_server_new(void)
{
    sim_server *server = sim_alloc(sizeof(*server));
    server->number = take_number();
    sim_sandbox_seed(server->random);
    return server;
}

static void connections_close(sim_server *server)
{
    for (int i = 0; i < SIM_CONNECTIONS_MAX; i++) {
        sim_connection *connection = server->connections[i];
        if (connection == NULL)
            continue;
        sim_server_disconnect(server, i);
        sim_buffer_free(&connection->in);
        sim_buffer_free(&connection->out);
        free(connection);
        server->connections[i] = NULL;
    }
}

void sim_server_free(sim_server *server)
{
    if (server == NULL)
        return;
    numbers_taken[server->number] = false;
    connections_close(server);
    sim_keyspace_clear(&server->keys);
    sim_scripts_clear(server);
    sim_bytes_free(&server->trouble);
    sim_buffer_free(&server->reply);
    sim_buffer_free(&server->shown);
    free(server->subscriptions);
    free(server->scripts);
    free(server->words);
    free(server);
}

void sim_server_set_time(sim_server *server, int64_t wall_us)
{
    if (server->started_us == 0)
        server->started_us = wall_us;
    server->wall_us = wall_us;
    server->keys.now_ms = wall_us / 1000;
}

/* ---- Connections ---- */

void sim_server_connect(sim_server *server, int connection)
{
    sim_server_disconnect(server, connection);
    if (server->connections[connection] == NULL)
        server->connections[connection] = sim_alloc(sizeof(sim_connection));
    server->connections[connection]->open = true;
    server->connections[connection]->broken = false;
    server->connections[connection]->denied = SIM_ALLOWED;
    memset(server->connections[connection]->forbidden, 0,
           sizeof(server->connections[connection]->forbidden));
    server->connections[connection]->unnamed = false;
    server->connections[connection]->elder = false;
    server->connections[connection]->run = server->run;
    server->connections[connection]->id = ++server->last_connection_id;
}

void sim_server_disconnect(sim_server *server, int connection)
{
    sim_connection *ended = server->connections[connection];
    if (ended == NULL)
        return;
    sim_subscriptions_end(server, connection);
    sim_bytes_free(&ended->name);
    sim_buffer_clear(&ended->in);
    sim_buffer_clear(&ended->out);
    ended->open = false;
}

size_t sim_server_output(const sim_server *server, int connection, const char **bytes)
{
    const sim_connection *speaker = server->connections[connection];
    hf__slice output = {NULL, 0};
    if (speaker != NULL && speaker->out.end > speaker->out.start)
        output = sim_buffer_slice(&speaker->out);
    *bytes = output.bytes;
    return output.length;
}

void sim_server_taken(sim_server *server, int connection, size_t count)
{
    if (server->connections[connection] != NULL) /* a restart forgets them all */
        sim_buffer_take(&server->connections[connection]->out, count);
}

/* ---- Reading commands ---- */

typedef enum reading { READ_WHOLE, READ_MORE, READ_BROKEN } reading;

/* Reads "<kind><number>\r\n". */
static reading read_number(hf__slice bytes, size_t *at, char kind, int64_t *number)
{
    if (*at >= bytes.length)
        return READ_MORE;
    if (bytes.bytes[*at] != kind)
        return READ_BROKEN;
    const char *digits = bytes.bytes + *at + 1;
    const char *end = memchr(digits, '\r', bytes.length - *at - 1);
    if (end == NULL)
        return bytes.length - *at > 32 ? READ_BROKEN : READ_MORE;
    if (!sim_parse_integer((hf__slice){digits, (size_t)(end - digits)}, number))
        return READ_BROKEN;
    *at = (size_t)(end - bytes.bytes) + 2;
    return *at <= bytes.length ? READ_WHOLE : READ_MORE;
}

static reading read_words(sim_server *server, hf__slice bytes, int64_t count, size_t *at)
{
    for (int64_t i = 0; i < count; i++) {
        int64_t length = 0;
        reading result = read_number(bytes, at, '$', &length);
        if (result != READ_WHOLE)
            return result;
        if (length < 0 || length > BULK_MAX)
            return READ_BROKEN;
        if (bytes.length - *at < (size_t)length + 2)
            return READ_MORE;
        server->words[i] = (hf__slice){bytes.bytes + *at, (size_t)length};
        *at += (size_t)length + 2;
    }
    return READ_WHOLE;
}

static reading read_command(sim_server *server, hf__slice bytes, int *count, size_t *used)
{
    int64_t words = 0;
    *used = 0;
    reading result = read_number(bytes, used, '*', &words);
    if (result != READ_WHOLE)
        return result;
    if (words > SIM_WORDS_MAX)
        return READ_BROKEN;
    if (words > 0 && (size_t)words > server->word_capacity) {
        server->word_capacity = (size_t)words * 2;
        server->words = sim_resize(server->words, server->word_capacity * sizeof(hf__slice));
    }
    *count = words > 0 ? (int)words : 0;
    return read_words(server, bytes, words, used);
}

static void run(sim_server *server, int connection, const hf__slice *words, int count,
                sim_buffer *out)
{
    sim_call call = {.server = server,
                     .keys = &server->keys,
                     .connection = connection,
                     .words = words,
                     .count = count,
                     .out = out};
    server->commands++;
    sim_call_run(&call);
}

void sim_server_receive(sim_server *server, int connection, const char *bytes, size_t count)
{
    sim_connection *speaker = server->connections[connection];
    if (speaker == NULL || !speaker->open || speaker->broken)
        return;
    sim_buffer_append(&speaker->in, bytes, count);
    while (speaker->in.end > speaker->in.start) {
        int words = 0;
        size_t used = 0;
        reading result = read_command(server, sim_buffer_slice(&speaker->in), &words, &used);
        if (result == READ_BROKEN) {
            sim_reply_error(&speaker->out, "ERR Protocol error");
            speaker->broken = true;
        }
        if (result != READ_WHOLE)
            break;
        if (words > 0)
            run(server, connection, server->words, words, &speaker->out);
        sim_buffer_take(&speaker->in, used);
    }
}

/* ---- What happens to servers ---- */

sim_image *sim_server_copy(const sim_server *server)
{
    sim_image *image = sim_alloc(sizeof(*image));
    sim_keyspace_copy(&image->keys, &server->keys);
    return image;
}

void sim_image_free(sim_image *image)
{
    if (image == NULL)
        return;
    sim_keyspace_clear(&image->keys);
    free(image);
}

void sim_server_restart(sim_server *server, const sim_image *image)
{
    connections_close(server);
    sim_scripts_clear(server);
    sim_keyspace_clear(&server->keys);
    if (image != NULL)
        sim_keyspace_copy(&server->keys, &image->keys);
    sim_sandbox_seed(server->random);
    server->run++;
    server->started_us = server->wall_us;
}

/* The image is the replica's. Whoever is subscribed stays where he is, and hears by replication. */
void sim_server_fail_over(sim_server *server)
{
    for (int i = 0; i < SIM_CONNECTIONS_MAX; i++)
        if (server->connections[i] != NULL && server->connections[i]->subscriptions == 0)
            sim_server_disconnect(server, i);
    sim_scripts_clear(server);
    sim_sandbox_seed(server->random);
    server->run++;
}

void sim_server_deny(sim_server *server, int connection, sim_denial what)
{
    server->connections[connection]->denied = what;
}

void sim_server_forbid(sim_server *server, int connection,
                       const char *const keys[SIM_FORBIDDEN_MAX])
{
    for (int i = 0; i < SIM_FORBIDDEN_MAX; i++)
        server->connections[connection]->forbidden[i] = keys[i];
}

void sim_server_set_elder(sim_server *server, int connection)
{
    server->connections[connection]->elder = true;
}

void sim_server_limit_memory(sim_server *server, int64_t bytes)
{
    server->memory_limit = bytes;
}

int64_t sim_server_memory(const sim_server *server)
{
    enum { EACH = 56 }; /* what a key or an element costs beside its bytes */
    size_t bytes = 0;
    for (const sim_key *key = server->keys.oldest; key != NULL; key = key->newer) {
        bytes += EACH + key->name.length + key->value.length;
        for (size_t i = 0; i < key->count; i++)
            bytes += EACH + key->items[i].name.length + key->items[i].value.length;
    }
    return (int64_t)bytes;
}

bool sim_server_ran_full(const sim_server *server)
{
    return server->full_call;
}

bool sim_server_is_full(const sim_server *server)
{
    return server->memory_limit > 0 && sim_server_memory(server) > server->memory_limit;
}

void sim_server_hide(sim_server *server, unsigned gaps)
{
    server->hides = gaps;
}

bool sim_server_hides(const sim_server *server, unsigned gaps)
{
    return (server->hides & gaps) != 0;
}

bool sim_server_ran_unnamed(const sim_server *server)
{
    return server->unnamed_call;
}

void sim_server_set_watch(sim_server *server, const sim_watch *watch)
{
    server->watch = watch;
}

int sim_server_subscribers(const sim_server *server, const char *channel)
{
    return sim_subscriptions_here(server, hf__slice_text(channel));
}

bool sim_server_is_subscribed(const sim_server *server, int connection)
{
    const sim_connection *listener = server->connections[connection];
    return listener != NULL && listener->open && listener->subscriptions > 0;
}

void sim_server_flush_scripts(sim_server *server)
{
    sim_scripts_clear(server);
}

void sim_server_set_role(sim_server *server, bool replica)
{
    server->replica = replica;
    server->keys.keeps_expired = replica;
}

void sim_server_set_trouble(sim_server *server, const char *error)
{
    sim_bytes_free(&server->trouble);
    if (error != NULL)
        server->trouble = sim_bytes_copy(hf__slice_text(error));
}

/* ---- Looking in ---- */

const char *sim_server_run(sim_server *server, int count, const char *const *words)
{
    hf__slice *slices = sim_alloc((size_t)count * sizeof(*slices));
    for (int i = 0; i < count; i++)
        slices[i] = hf__slice_text(words[i]);
    sim_buffer_clear(&server->reply);
    run(server, SIM_NO_CONNECTION, slices, count, &server->reply);
    free(slices);
    sim_buffer_append(&server->reply, "", 1);
    sim_buffer_clear(&server->shown);
    (void)sim_reply_show(server->reply.bytes, &server->shown);
    sim_buffer_append(&server->shown, "", 1);
    return server->shown.bytes;
}

void sim_server_keys(sim_server *server, sim_see_key *see, void *arg)
{
    for (const sim_key *key = server->keys.oldest; key != NULL; key = key->newer) {
        if (sim_key_expired(&server->keys, key))
            continue;
        int64_t remaining_ms =
            key->expiry_ms == SIM_NO_EXPIRY ? -1 : key->expiry_ms - server->keys.now_ms;
        see(arg, key->name.bytes, key->name.length, sim_type_name(key->type), remaining_ms);
    }
}

const char *sim_server_get(sim_server *server, const char *key, size_t length)
{
    const sim_key *found = sim_key_find(&server->keys, (hf__slice){key, length});
    return found != NULL && found->type == SIM_STRING ? found->value.bytes : NULL;
}

const char *sim_server_field(sim_server *server, const char *key, size_t length, const char *field)
{
    const sim_key *hash = sim_key_find(&server->keys, (hf__slice){key, length});
    size_t at = hash != NULL && hash->type == SIM_HASH ? sim_item_find(hash, hf__slice_text(field))
                                                       : SIM_NOWHERE;
    return at != SIM_NOWHERE ? hash->items[at].value.bytes : NULL;
}

static const sim_key *sorted_set(sim_server *server, const char *key, size_t length)
{
    const sim_key *found = sim_key_find(&server->keys, (hf__slice){key, length});
    return found != NULL && found->type == SIM_ZSET ? found : NULL;
}

bool sim_server_score(sim_server *server, const char *key, size_t length, const char *member,
                      double *score)
{
    const sim_key *set = sorted_set(server, key, length);
    size_t at = set != NULL ? sim_item_find(set, hf__slice_text(member)) : SIM_NOWHERE;
    if (at != SIM_NOWHERE)
        *score = set->items[at].score;
    return at != SIM_NOWHERE;
}

void sim_server_members(sim_server *server, const char *key, size_t length, sim_see_member *see,
                        void *arg)
{
    const sim_key *set = sorted_set(server, key, length);
    for (size_t i = 0; set != NULL && i < set->count; i++)
        see(arg, set->items[i].name.bytes, set->items[i].score);
}

void sim_server_evict(sim_server *server, const char *key, size_t length)
{
    sim_key *found = sim_key_find(&server->keys, (hf__slice){key, length});
    if (found != NULL)
        sim_key_remove(&server->keys, found);
}

void sim_server_set_change(sim_server *server, sim_change_script *change)
{
    server->change = change;
    sim_scripts_changed(server);
}

int64_t sim_server_commands(const sim_server *server)
{
    return server->commands;
}
