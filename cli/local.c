/* SPDX-License-Identifier: MIT */
/* The private server. Who finds one that accepts connections takes it: that is the usual case, and
 * costs one connect(). Otherwise there is a lock file (flock), and who has it looks again, starts a
 * server and waits until that answers. One that hangs still accepts, so no second one is started
 * beside it; timeouts tell. Nor is one started beside a server that lives and cannot be reached,
 * for somebody has removed its socket: it has the folder locked (flock again) until its end, which
 * also tells systemd-tmpfiles to leave the folder alone. It lives until it is told to stop. A file
 * says that it was: those who are at work would start it anew if it just died.
 *
 * It writes down everything (appendonly) but does not wait for the disk (appendfsync no): what it
 * has handed to the kernel before it answers survives its own death, and that is the only death
 * that a holder on the same machine survives too. Fences do not need more: they grow with the
 * clock. */
#include "local.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "daemon.h"
#include "place.h"
#include "say.h"

enum {
    START_BOUND_MS = 5000,
    STOP_BOUND_MS = 5000,
    FOLDER_BOUND_MS = 2000,
    TURN_BOUND_MS = START_BOUND_MS + FOLDER_BOUND_MS + 1000,
    NAP_MS = 2
};

static int64_t now_ms(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void nap(void)
{
    (void)poll(NULL, 0, NAP_MS);
}

/* ---- The server that is there ---- */

/* A connection, or a negative errno. Does not wait: a server that hangs accepts until its backlog
 * is full, then it is -EAGAIN. */
static int reach(const struct local_status *place)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    memcpy(address.sun_path, place->socket, strlen(place->socket) + 1);
    int link = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (link < 0)
        return -errno;
    if (connect(link, (struct sockaddr *)&address, sizeof(address)) == 0)
        return link;
    int problem = errno;
    (void)close(link);
    return -problem;
}

/* 1: it runs; 0: it does not; -1: nobody can tell, and it has been said why. */
static int runs(const struct local_status *place)
{
    int link = reach(place);
    if (link >= 0)
        (void)close(link);
    if (link >= 0 || link == -EAGAIN)
        return 1;
    if (link == -ENOENT || link == -ECONNREFUSED)
        return 0;
    say_error("cannot connect to %s: %s", place->socket, strerror(-link));
    return -1;
}

/* Who listens there. */
static pid_t peer_of(int link)
{
    struct ucred peer = {0};
    socklen_t size = sizeof(peer);
    if (getsockopt(link, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0)
        return 0;
    return peer.pid;
}

static bool answers(int link, int64_t until_ms)
{
    char answer[8];
    struct pollfd ready = {link, POLLIN, 0};
    if (send(link, "PING\r\n", 6, MSG_NOSIGNAL) != 6)
        return false;
    int64_t left = until_ms - now_ms();
    if (left <= 0 || poll(&ready, 1, (int)left) != 1)
        return false;
    ssize_t got = recv(link, answer, sizeof(answer), 0); /* "-LOADING" is none yet */
    return got == 7 && memcmp(answer, "+PONG\r\n", 7) == 0;
}

/* ---- Taking turns ---- */

static int open_lock(const struct local_status *place)
{
    char path[sizeof(place->folder) + 8];
    (void)snprintf(path, sizeof(path), "%s/lock", place->folder);
    int lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (lock < 0)
        say_error("cannot open %s: %s", path, strerror(errno));
    return lock;
}

enum turn { TURN_OURS, TURN_NOT_NEEDED, TURN_FAILED };

/* Not needed, if running is enough and the server runs by now. */
static enum turn take_lock(int lock, const struct local_status *place, bool running_is_enough,
                           int bound_ms)
{
    int64_t until = now_ms() + bound_ms;
    while (flock(lock, LOCK_EX | LOCK_NB) != 0) {
        if ((errno != EWOULDBLOCK && errno != EINTR) || now_ms() >= until)
            return TURN_FAILED;
        if (running_is_enough && runs(place) == 1)
            return TURN_NOT_NEEDED;
        nap();
    }
    return TURN_OURS;
}

static enum turn take_turn(int lock, const struct local_status *place, bool running_is_enough)
{
    enum turn turn = take_lock(lock, place, running_is_enough, TURN_BOUND_MS);
    if (turn == TURN_FAILED)
        say_error("another holdfast is busy with the private server for too long: see who has "
                  "%s/lock open",
                  place->folder);
    return turn;
}

/* The folder itself is locked by the server for as long as it lives. A descriptor with that lock,
 * or -1 and it has been said. */
static int take_folder(const struct local_status *place)
{
    int folder = open(place->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (folder >= 0 && take_lock(folder, place, false, FOLDER_BOUND_MS) == TURN_OURS)
        return folder;
    if (folder < 0)
        say_error("cannot open %s: %s", place->folder, strerror(errno));
    else
        say_error("a private server runs, but nobody can reach it at %s: end it; ps shows it as "
                  "redis-server with that path",
                  place->socket);
    if (folder >= 0)
        (void)close(folder);
    return -1;
}

/* ---- Start ---- */

/* The socket of a server that has died is in the way of the next one; anything else is not ours to
 * remove. */
static bool remove_stale_socket(const struct local_status *place)
{
    struct stat found;
    if (lstat(place->socket, &found) != 0 && errno == ENOENT)
        return true;
    if (!S_ISSOCK(found.st_mode)) {
        say_error("%s should be a socket, and is something else: remove it", place->socket);
        return false;
    }
    if (unlink(place->socket) == 0 || errno == ENOENT)
        return true;
    say_error("cannot remove the stale socket %s: %s", place->socket, strerror(errno));
    return false;
}

static int spawn(const struct local_status *place, const char *output, int keep, pid_t *pid)
{
    const char *const settings[][2] = {{"--port", "0"},
                                       {"--unixsocket", place->socket},
                                       {"--unixsocketperm", "700"},
                                       {"--dir", place->folder},
                                       {"--appendonly", "yes"},
                                       {"--appendfsync", "no"},
                                       {"--auto-aof-rewrite-min-size", "4mb"},
                                       {"--save", ""},
                                       {"--maxmemory-policy", "noeviction"},
                                       {"--databases", "1"},
                                       {"--daemonize", "no"},
                                       {"--logfile", ""},
                                       {"--loglevel", "warning"}};
    char *words[1 + sizeof(settings) / sizeof(settings[0][0]) + 1] = {"redis-server"};
    memcpy(words + 1, settings, sizeof(settings)); /* exec() changes none, but is declared so */
    return daemon_start(words, place->folder, output, keep, pid);
}

static bool is_dead(int process)
{
    struct pollfd ended = {process, POLLIN, 0};
    return process >= 0 && poll(&ended, 1, 0) == 1;
}

static bool wait_until_it_answers(const struct local_status *place, pid_t pid, const char *output)
{
    int64_t until = now_ms() + START_BOUND_MS;
    int process = pidfd_open(pid, 0);
    bool good = false, dead = process < 0 && errno == ESRCH;
    while (!good && !dead && now_ms() < until) {
        int link = reach(place);
        good = link >= 0 && answers(link, until);
        if (link >= 0)
            (void)close(link);
        dead = !good && is_dead(process);
        if (!good && !dead)
            nap();
    }
    if (process >= 0)
        (void)close(process);
    if (!good)
        say_error("the private redis-server %s; see %s",
                  dead ? "has ended at once" : "does not answer", output);
    return good;
}

static bool launch(const struct local_status *place, int folder)
{
    char output[sizeof(place->folder) + 16];
    pid_t pid;
    (void)snprintf(output, sizeof(output), "%s/server.log", place->folder);
    int problem = spawn(place, output, folder, &pid);
    if (problem == ENOENT)
        say_error("there is no redis-server in PATH: apt-get install redis-server, or use the one "
                  "of another machine with --url redis://HOST");
    else if (problem != 0)
        say_error("cannot start redis-server: %s", strerror(problem));
    if (problem != 0)
        return false;
    say_more("starting a private server: pid %d, %s", (int)pid, place->socket);
    return wait_until_it_answers(place, pid, output);
}

/* ---- The file that says that it was stopped ---- */

static const char *mark_of(const struct local_status *place)
{
    static char path[sizeof(place->folder) + 16];
    (void)snprintf(path, sizeof(path), "%s/stopped", place->folder);
    return path;
}

static void mark_stopped(const struct local_status *place)
{
    int mark = open(mark_of(place), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (mark >= 0)
        (void)close(mark);
}

bool local_has_died(void)
{
    struct local_status place;
    bool exists;
    if (!place_name(&place) || !place_trust(&place, &exists) || !exists)
        return false;
    int link = reach(&place);
    if (link >= 0)
        (void)close(link);
    return (link == -ENOENT || link == -ECONNREFUSED) && access(mark_of(&place), F_OK) != 0;
}

static bool start_in_folder(const struct local_status *place)
{
    int folder = take_folder(place);
    if (folder < 0)
        return false;
    bool good = remove_stale_socket(place) && launch(place, folder);
    if (good)
        (void)unlink(mark_of(place));
    (void)close(folder);
    return good;
}

static bool start(const struct local_status *place)
{
    int lock = open_lock(place);
    enum turn turn = lock >= 0 ? take_turn(lock, place, true) : TURN_FAILED;
    int running = turn == TURN_OURS ? runs(place) : turn == TURN_NOT_NEEDED;
    bool good = running == 1;
    if (turn == TURN_OURS && running == 0)
        good = start_in_folder(place);
    if (lock >= 0)
        (void)close(lock);
    return good;
}

bool local_start(char *url, size_t capacity)
{
    struct local_status place;
    bool exists;
    if (!place_name(&place) || !place_trust(&place, &exists))
        return false;
    (void)snprintf(url, capacity, "unix://%s", place.socket);
    int running = exists ? runs(&place) : 0;
    if (running != 0)
        return running > 0;
    return place_make(&place) && start(&place);
}

/* ---- Look and stop ---- */

bool local_look(struct local_status *status)
{
    bool exists;
    *status = (struct local_status){0};
    if (!place_name(status) || !place_trust(status, &exists))
        return false;
    int running = exists ? runs(status) : 0;
    int link = running == 1 ? reach(status) : -1;
    status->running = running == 1;
    if (link >= 0) {
        status->pid = peer_of(link);
        (void)close(link);
    }
    return running >= 0;
}

/* A handle of the process that listens on our socket, and of no other: its id could have been given
 * to another one before the handle was made, so the same one must still be listening afterwards. */
static int open_server(struct local_status *place)
{
    struct local_status again;
    int process = place->pid > 0 ? pidfd_open(place->pid, 0) : -1;
    if (process >= 0 && local_look(&again) && again.pid == place->pid)
        return process;
    if (process >= 0)
        (void)close(process);
    return -1;
}

static bool stop(struct local_status *place)
{
    int process = open_server(place);
    if (process < 0) {
        say_error("cannot tell which process is the private server: try again");
        return false;
    }
    bool sent = pidfd_send_signal(process, SIGTERM, NULL, 0) == 0;
    if (!sent)
        say_error("cannot send TERM to the private server, pid %d: %s", (int)place->pid,
                  strerror(errno));
    (void)pidfd_send_signal(process, SIGCONT, NULL, 0); /* should it have been stopped by hand */
    for (int64_t until = now_ms() + STOP_BOUND_MS; sent && !is_dead(process) && now_ms() < until;)
        nap();
    bool dead = sent && is_dead(process);
    (void)close(process);
    if (sent && !dead)
        say_error("the private server does not stop: kill -9 %d", (int)place->pid);
    return dead;
}

/* In turn with those who start one: nobody shall do so while the old one is still about to remove
 * its socket. */
bool local_stop(void)
{
    struct local_status place;
    if (!local_look(&place))
        return false;
    if (!place.running)
        return true;
    int lock = open_lock(&place);
    bool good = lock >= 0 && take_turn(lock, &place, false) == TURN_OURS && local_look(&place);
    if (good && place.running) {
        mark_stopped(&place);
        good = stop(&place);
    }
    if (lock >= 0)
        (void)close(lock);
    return good;
}
