/* SPDX-License-Identifier: MIT */
/* After fork() the child has a copy of every client but none of their threads, and shares the
 * parent's sockets: using them there would mix two processes' requests on one connection. So the
 * child only gets to know that it is one. The mutexes are taken before the fork and given back on
 * both sides; otherwise the child might inherit a driver in the middle of a step and could not
 * even free it.
 *
 * _Fork() and clone() do not run our handlers. Their children are found by a word in a page that
 * the kernel wipes in every child (MADV_WIPEONFORK, Linux 4.14): a guard knows what the word said
 * when it was added. Where the kernel cannot do that, the word is always 0, which no guard
 * expects, and the process id decides, which costs a system call for each look. The child of a
 * vfork() shares the parent's memory and cannot be told from it.
 *
 * A signal handler may fork while its own thread has one of the mutexes. Waiting for it would be
 * for ever, so the mutexes check for that, and what the thread was working on is left as it is.
 * Such a child, and one without handlers, is torn: its calls return, and nothing is freed. */
#include "net/fork.h"

#include <sys/mman.h>
#include <unistd.h>

static pthread_mutex_t registry_mutex;
static hf__list registry;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool registered;
static unsigned nested; /* forks by signal handlers of the thread that has registry_mutex */
static atomic_uint_fast64_t never_marked;
static atomic_uint_fast64_t *word = &never_marked;
static uint_fast64_t last_mark; /* is not wiped: a child's own guards have marks of their own */

static hf__fork_guard *guard_of(hf__node *node)
{
    return HF__ENTRY(node, hf__fork_guard, node);
}

bool hf__fork_judge(const hf__fork_guard *guard)
{
    return guard->word != &never_marked || getpid() != guard->process;
}

/* One that says so when its owner locks it again. */
static bool make_mutex(pthread_mutex_t *mutex)
{
    pthread_mutexattr_t attributes;
    if (pthread_mutexattr_init(&attributes) != 0)
        return false;
    pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_ERRORCHECK);
    int failure = pthread_mutex_init(mutex, &attributes);
    pthread_mutexattr_destroy(&attributes);
    return failure == 0;
}

/* The child's thread has another number than the one that locked it. */
static void unlock_in_child(pthread_mutex_t *mutex)
{
    if (pthread_mutex_unlock(mutex) != 0)
        make_mutex(mutex);
}

static void before_fork(void)
{
    if (pthread_mutex_lock(&registry_mutex) != 0) {
        nested++;
        return;
    }
    for (hf__node *n = hf__list_first(&registry); n != NULL; n = hf__list_next(&registry, n)) {
        hf__fork_guard *guard = guard_of(n);
        guard->held = !hf__fork_is_child(guard) && pthread_mutex_lock(guard->mutex) == 0;
    }
}

static void after_fork_in_parent(void)
{
    if (nested > 0) {
        nested--;
        return;
    }
    for (hf__node *n = hf__list_first(&registry); n != NULL; n = hf__list_next(&registry, n))
        if (guard_of(n)->held)
            pthread_mutex_unlock(guard_of(n)->mutex);
    pthread_mutex_unlock(&registry_mutex);
}

static void after_fork_in_child(void)
{
    if (nested > 0)
        return; /* the list itself may be in the middle of a step */
    for (hf__node *n = hf__list_first(&registry); n != NULL; n = hf__list_next(&registry, n)) {
        hf__fork_guard *guard = guard_of(n);
        if (!guard->held)
            continue;
        guard->at_rest = true;
        unlock_in_child(guard->mutex);
    }
    unlock_in_child(&registry_mutex);
}

static void find_word(void)
{
    size_t size = (size_t)sysconf(_SC_PAGESIZE);
    void *page = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED)
        return;
    if (madvise(page, size, MADV_WIPEONFORK) == 0)
        word = page;
    else
        munmap(page, size);
}

static void begin(void)
{
    hf__list_init(&registry);
    find_word();
    registered = make_mutex(&registry_mutex) &&
                 pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child) == 0;
}

static void mark(hf__fork_guard *guard)
{
    if (word != &never_marked && atomic_load(word) == 0)
        atomic_store(word, ++last_mark);
    guard->word = word;
    guard->mark = last_mark > 0 ? last_mark : 1;
    guard->process = getpid();
}

bool hf__fork_guard_add(hf__fork_guard *guard, pthread_mutex_t *mutex)
{
    pthread_once(&once, begin);
    if (!registered || !make_mutex(mutex))
        return false;
    guard->mutex = mutex;
    pthread_mutex_lock(&registry_mutex);
    mark(guard);
    hf__list_append(&registry, &guard->node);
    pthread_mutex_unlock(&registry_mutex);
    return true;
}

void hf__fork_guard_remove(hf__fork_guard *guard)
{
    pthread_mutex_lock(&registry_mutex);
    hf__list_remove(&registry, &guard->node);
    pthread_mutex_unlock(&registry_mutex);
}
