/* SPDX-License-Identifier: MIT */
/* Goal: holdfast.hpp gives back what it owns, at the right moment and in every way in which a scope
 * can end; its mutex is one for the standard's guards; and it hides nothing: what fails is thrown
 * with its status, what is lost can be seen, and what is only tried does not throw.
 *
 * Each test has locks of its own. The server's own view is asked over another connection. */
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstring>
#include <future>
#include <mutex>
#include <optional>
#include <type_traits>

#include "check.hpp"
#include "server.h"

using namespace std::chrono_literals;
using holdfast::acquire_options;
using holdfast::client;
using holdfast::client_options;
using holdfast::hold;

static std::string url;

/* ---- Verbs ----------------------------------------------------------------------------------- */

static bool is_held(const char *name)
{
    return std::strcmp(server_ask((std::string("EXISTS ") + name).c_str()), "1") == 0;
}

static void take_away(const char *name)
{
    CHECK(std::strcmp(server_ask((std::string("DEL ") + name).c_str()), "1") == 0);
}

static acquire_options short_lease(std::int64_t lease_ms)
{
    acquire_options options;
    options.lease_ms = lease_ms;
    return options;
}

/* A function of its own thread, and what it returned or threw. */
template <class Function> static auto elsewhere(Function function)
{
    return std::async(std::launch::async, function);
}

/* ---- Clients and holds ----------------------------------------------------------------------- */

static_assert(!std::is_copy_constructible_v<client> && !std::is_copy_assignable_v<client>);
static_assert(!std::is_copy_constructible_v<hold> && !std::is_copy_assignable_v<hold>);
static_assert(std::is_nothrow_move_constructible_v<client> && std::is_move_assignable_v<client>);
static_assert(std::is_nothrow_move_constructible_v<hold> && std::is_move_assignable_v<hold>);
static_assert(std::is_nothrow_destructible_v<client> && std::is_nothrow_destructible_v<hold>);
static_assert(!std::is_move_constructible_v<holdfast::mutex>);
static_assert(noexcept(std::declval<holdfast::mutex &>().unlock()));

static void a_hold_ends_with_its_scope()
{
    client c(url);
    {
        hold h = c.acquire("scope");
        CHECK(h.valid() && h.state() == HF_SAFE && h.fence() > 0);
        CHECK(h.remaining() > 5s && h.remaining() <= 10s);
        CHECK(is_held("scope"));
    }
    CHECK(!is_held("scope"));
}

static void a_hold_ends_with_an_exception()
{
    client c(url);
    bool caught = false;
    try {
        hold h = c.acquire("thrown");
        throw std::out_of_range("work failed");
    } catch (const std::out_of_range &) {
        caught = true;
    }
    CHECK(caught && !is_held("thrown"));
}

static void a_hold_can_be_handed_on()
{
    client c(url);
    hold a = c.acquire("first");
    std::uint64_t fence = a.fence();
    hold b = std::move(a);
    CHECK(!a.valid() && a.fence() == 0 && a.state() == HF_LOST && a.remaining() == 0ms);
    a.release(); /* is empty: nothing happens */
    CHECK(b.valid() && b.fence() == fence && is_held("first"));
    b = c.acquire("second"); /* what it had before is released */
    CHECK(!is_held("first") && is_held("second"));
    b.release();
    CHECK(!b.valid() && !is_held("second"));
    b.release();
}

static void a_client_can_be_moved()
{
    client a(url);
    holdfast::mutex m(a, "moved");
    hold h = a.acquire("held");
    client b = std::move(a);
    CHECK_THROWS(HF_EINVAL, (void)a.acquire("x"));
    std::lock_guard guard(m);
    CHECK(is_held("moved"));
    h.release();
}

static void a_hold_may_outlive_its_client()
{
    hold h;
    {
        client c(url);
        h = c.acquire("outlives");
    }
    CHECK(!is_held("outlives") && !h.valid());
    CHECK_THROWS(HF_ECLOSED, h.release());
}

static void closing_says_what_is_not_certain()
{
    client_options options;
    options.call_timeout_ms = 300;
    client c(url, options);
    hold h = c.acquire("unanswered", short_lease(1000));
    server_freeze();
    try {
        CHECK_THROWS(HF_EUNKNOWN, c.close());
    } catch (...) {
        server_thaw();
        throw;
    }
    server_thaw();
    CHECK(c.get() == nullptr);
    c.close(); /* is closed: nothing happens */
}

static void options_are_handed_over()
{
    client_options options;
    options.prefix = "shop:";
    client c(url, options);
    acquire_options no_renewal = short_lease(2000);
    no_renewal.no_renewal = true;
    hold h = c.acquire("order", no_renewal);
    CHECK(is_held("shop:order"));
    CHECK(h.remaining() <= 2s);
    hold with_nul = c.acquire(std::string_view("a\0b", 3));
    hold cut = c.acquire(std::string_view("a\0c", 1)); /* another name */
    CHECK(with_nul.valid() && cut.valid());
}

static void a_lease_can_be_extended()
{
    client c(url);
    hold h = c.acquire("extended", short_lease(1000));
    h.extend(30s);
    CHECK(h.remaining() > 20s);
    h.extend();
    CHECK(h.remaining() > 20s);
    CHECK_THROWS(HF_EINVAL, h.extend(0s));
    CHECK_THROWS(HF_EINVAL, h.extend(-1h));
    CHECK_THROWS(HF_EINVAL, h.extend(std::chrono::hours::max()));
    take_away("extended");
    CHECK_THROWS(HF_ELOST, h.extend());
    CHECK_THROWS(HF_ELOST, h.release());
}

/* ---- Failure --------------------------------------------------------------------------------- */

static void failures_are_thrown_with_their_status()
{
    CHECK_THROWS(HF_EINVAL, client("http://nowhere"));
    client_options options;
    options.call_timeout_ms = 200;
    client nowhere("unix:///nowhere/socket", options);
    CHECK_THROWS(HF_EUNAVAILABLE, (void)nowhere.acquire("x"));
    CHECK_THROWS(HF_EUNAVAILABLE, (void)nowhere.try_acquire("x"));
    holdfast::mutex m(nowhere, "x");
    CHECK_THROWS(HF_EUNAVAILABLE, (void)m.try_lock());
    client c(url);
    CHECK_THROWS(HF_EINVAL, (void)c.acquire(""));
    CHECK_THROWS(HF_EINVAL, (void)c.acquire(std::string_view()));
    server_ask("RPUSH list x");
    CHECK_THROWS(HF_ESERVER, (void)c.acquire("list"));
    CHECK_THROWS(HF_ESERVER, (void)c.try_acquire("list"));
}

static void a_lock_that_is_held_is_no_failure_of_a_try()
{
    client c(url), rival(url);
    hold h = rival.acquire("busy");
    CHECK(!c.try_acquire("busy"));
    CHECK(!c.try_acquire("busy", 50ms));
    CHECK_THROWS(HF_EBUSY, (void)c.acquire("busy"));
    CHECK_THROWS(HF_EBUSY, (void)c.acquire("busy", 50ms));
    h.release();
    std::optional<hold> mine = c.try_acquire("busy");
    CHECK(mine && mine->valid());
    mine.reset();
    CHECK(!is_held("busy"));
}

static void a_wait_ends_with_the_release()
{
    client c(url), rival(url);
    hold h = rival.acquire("awaited");
    auto waiting = elsewhere([&] { return c.acquire("awaited", 10s).fence(); });
    CHECK_SOON(std::strcmp(server_ask("KEYS hf:q:*awaited*"), "(array of 0)") != 0);
    std::uint64_t fence = h.fence();
    h.release();
    CHECK(waiting.get() > fence);
}

static void a_wait_can_be_cancelled()
{
    client c(url), rival(url);
    hold h = rival.acquire("cancelled");
    holdfast::cancel stop;
    acquire_options options;
    options.cancel = stop.get();
    holdfast::mutex m(c, "cancelled", options);
    auto waiting = elsewhere([&] { m.lock(); });
    CHECK_SOON(std::strcmp(server_ask("KEYS hf:q:*cancelled*"), "(array of 0)") != 0);
    stop.fire();
    CHECK_THROWS(HF_ECANCELLED, waiting.get());
    CHECK_THROWS(HF_ECANCELLED, m.lock()); /* it stays fired */
}

/* ---- Guards ---------------------------------------------------------------------------------- */

static void guards_of_the_standard_lock_and_unlock()
{
    client c(url);
    holdfast::mutex a(c, "guard-a"), b(c, "guard-b");
    {
        std::lock_guard guard(a);
        CHECK(is_held("guard-a"));
        CHECK(a.valid() && !a.lost() && a.fence() > 0);
    }
    CHECK(!a.valid() && !a.lost() && a.fence() == 0);
    {
        std::scoped_lock both(a, b);
        CHECK(a.valid() && b.valid());
    }
    CHECK(!a.valid() && !b.valid());
    std::unique_lock lock(a, std::defer_lock);
    CHECK(!a.valid());
    CHECK(lock.try_lock());
    lock.unlock();
    lock.lock();
    CHECK(lock.owns_lock() && a.valid());
    lock.unlock();
    CHECK(lock.try_lock_for(1s));
    lock.unlock();
    CHECK(lock.try_lock_until(std::chrono::system_clock::now() + 1h));
    lock = std::unique_lock(b);
    CHECK(!a.valid() && b.valid());
}

static void guards_hold_at_the_server()
{
    client c(url), rival(url);
    holdfast::mutex m(c, "guarded"), theirs(rival, "guarded");
    {
        std::lock_guard guard(m);
        CHECK(is_held("guarded") && !theirs.try_lock());
    }
    CHECK(!is_held("guarded"));
    std::lock_guard guard(theirs);
    CHECK(!m.try_lock());
}

/* Who takes two locks in different orders by std::scoped_lock does not get stuck. */
static void two_locks_in_any_order()
{
    client c(url), rival(url);
    auto take_often = [](client &owner, const char *one, const char *two) {
        holdfast::mutex a(owner, one), b(owner, two);
        for (int i = 0; i < 20; i++)
            std::scoped_lock both(a, b);
    };
    auto one = elsewhere([&] { take_often(c, "left", "right"); });
    auto two = elsewhere([&] { take_often(rival, "right", "left"); });
    one.get();
    two.get();
    CHECK(!is_held("left") && !is_held("right"));
}

static void a_timed_try_takes_its_time()
{
    client c(url), rival(url);
    hold h = rival.acquire("timed");
    holdfast::mutex m(c, "timed");
    auto begun = std::chrono::steady_clock::now();
    std::unique_lock lock(m, 150ms);
    CHECK(!lock.owns_lock() && std::chrono::steady_clock::now() - begun >= 140ms);
    begun = std::chrono::steady_clock::now();
    CHECK(!m.try_lock_until(begun + 150ms));
    CHECK(std::chrono::steady_clock::now() - begun >= 140ms);
    CHECK(!m.try_lock_until(begun)); /* is over: one try */
    CHECK(!m.try_lock_for(-1h));
    h.release();
    CHECK(m.try_lock_for(std::chrono::hours::max()));
    m.unlock();
    CHECK(m.try_lock_for(1ns));
    m.unlock();
}

static void a_thread_may_lock_again()
{
    client c(url);
    holdfast::mutex m(c, "again"), same(c, "again");
    m.lock();
    CHECK(m.try_lock() && same.try_lock());
    CHECK(m.fence() == same.fence());
    CHECK(!elsewhere([&] { return m.try_lock(); }).get());
    m.unlock();
    m.unlock();
    CHECK(!m.valid() && same.valid() && is_held("again"));
    same.unlock();
    CHECK(!is_held("again"));
    m.unlock(); /* is not locked: nothing happens */
}

static void a_thread_may_not_lock_again_if_so_wanted()
{
    client c(url);
    acquire_options options;
    options.no_reentry = true;
    holdfast::mutex m(c, "not again", options);
    std::lock_guard guard(m);
    CHECK(!m.try_lock());
    CHECK(!m.try_lock_for(50ms));
}

static void eight_threads_count()
{
    constexpr int THREADS = 8, TIMES = 100;
    client c(url);
    holdfast::mutex m(c, "counter");
    long counter = 0; /* plain: the lock is all that protects it */
    std::array<std::future<void>, THREADS> threads;
    for (auto &thread : threads)
        thread = elsewhere([&] {
            for (int i = 0; i < TIMES; i++) {
                std::lock_guard guard(m);
                long read = counter;
                std::this_thread::yield();
                counter = read + 1;
            }
        });
    for (auto &thread : threads)
        thread.get();
    CHECK(counter == THREADS * TIMES);
    CHECK(!is_held("counter"));
}

/* ---- Loss ------------------------------------------------------------------------------------ */

static void a_loss_is_thrown_by_a_release_only()
{
    client c(url);
    hold h = c.acquire("lost");
    take_away("lost");
    CHECK_THROWS(HF_ELOST, h.release());
    {
        hold silent = c.acquire("lost");
        take_away("lost");
    }
    holdfast::mutex m(c, "lost");
    m.lock();
    take_away("lost");
    m.unlock();
    {
        std::lock_guard guard(m);
        take_away("lost");
    }
    std::unique_lock lock(m);
    take_away("lost");
    CHECK_THROWS(HF_ELOST, lock.release()->release());
    CHECK(!m.lost() && !m.valid());
    m.lock();
    m.release();
    CHECK(!is_held("lost"));
}

static void a_mutex_knows_that_it_was_lost()
{
    client c(url), rival(url);
    holdfast::mutex m(c, "broken", short_lease(300));
    std::unique_lock lock(m);
    CHECK(m.valid() && !m.lost());
    std::uint64_t raised = 0;
    CHECK(hf_break(rival.get(), "broken", 0, &raised, nullptr) == HF_OK);
    CHECK(raised > m.fence());
    CHECK_SOON(m.lost());
    CHECK(!m.valid() && m.fence() > 0);
    lock.unlock();
    CHECK(!m.lost());
    lock.lock();
    CHECK(m.valid() && m.fence() > raised);
}

/* One object, two threads, and the first has lost the lock to the second without noticing. */
static void who_has_lost_it_does_not_unlock_for_another()
{
    client c(url);
    holdfast::mutex m(c, "overtaken", short_lease(300));
    std::promise<void> locked, done;
    m.lock();
    take_away("overtaken");
    auto other = elsewhere([&] {
        m.lock();
        locked.set_value();
        done.get_future().wait_for(10s);
        bool valid = m.valid();
        m.unlock();
        return valid;
    });
    locked.get_future().wait_for(10s);
    bool theirs_before = is_held("overtaken");
    m.unlock();
    bool theirs_after = is_held("overtaken");
    done.set_value(); /* before anything is thrown: the other one waits for it */
    CHECK(other.get());
    CHECK(theirs_before && theirs_after);
    CHECK(!is_held("overtaken"));
}

/* ---- Callbacks ------------------------------------------------------------------------------- */

static void a_function_is_told()
{
    client c(url);
    std::atomic<int> losses{0};
    std::atomic<hf_reason> reason{HF_REASON_NONE};
    auto captured = std::make_shared<int>(0);
    {
        acquire_options options = short_lease(150);
        options.no_renewal = true;
        options.on_event = [&losses, &reason, captured](const hf_event &event) {
            reason = event.reason;
            losses += event.state == HF_LOST;
        };
        hold h = c.acquire("told", options);
        options.on_event = nullptr;
        CHECK(captured.use_count() == 2);
        CHECK_SOON(losses == 1);
        CHECK(reason == HF_REASON_EXPIRED && h.state() == HF_LOST);
        CHECK_THROWS(HF_ELOST, h.release());
        CHECK(captured.use_count() == 1);
    }
    CHECK(captured.use_count() == 1);
}

static void a_function_of_a_failed_acquire_is_let_go()
{
    client c(url), rival(url);
    hold h = rival.acquire("untold");
    auto captured = std::make_shared<int>(0);
    acquire_options options;
    options.on_event = [captured](const hf_event &) {};
    CHECK(captured.use_count() == 2);
    CHECK(!c.try_acquire("untold", options));
    CHECK_THROWS(HF_EBUSY, (void)c.acquire("untold", options));
    CHECK(captured.use_count() == 2);
}

/* The hold ends in its own callback, which goes on to run. */
static void a_hold_may_be_destroyed_in_its_callback()
{
    client c(url), rival(url);
    std::optional<hold> h;
    std::atomic<int> asked{0};
    auto captured = std::make_shared<std::string>("still here");
    acquire_options options;
    options.on_event = [&h, &asked, captured](const hf_event &event) {
        CHECK(event.reason == HF_REASON_REVOKED);
        h.reset();
        asked += *captured == "still here";
    };
    h = c.acquire("given-up", options);
    options.on_event = nullptr;
    CHECK(hf_revoke(rival.get(), "given-up", 0, "please", nullptr) == HF_OK);
    CHECK_SOON(asked == 1 && captured.use_count() == 1);
    CHECK_SOON(!is_held("given-up"));
    CHECK(rival.acquire("given-up", 5s).valid());
}

static void calls_that_wait_throw_in_a_callback()
{
    client c(url), rival(url);
    hold h;
    std::atomic<int> refused{0};
    auto expect_refusal = [&refused](auto call) {
        try {
            call();
        } catch (const holdfast::error &e) {
            refused += e.status() == HF_EDEADLK;
        }
    };
    acquire_options options;
    options.on_event = [&](const hf_event &) {
        expect_refusal([&] { (void)c.acquire("other"); });
        expect_refusal([&] { h.extend(); });
        expect_refusal([&] { c.close(); });
        expect_refusal([&] { h.release(); });
    };
    h = c.acquire("refused", options);
    CHECK(hf_revoke(rival.get(), "refused", 0, nullptr, nullptr) == HF_OK);
    CHECK_SOON(refused == 4);
    CHECK(h.valid() && c.get() != nullptr);
    h.release();
    CHECK(!is_held("refused"));
}

static constexpr int TERMINATED = 77;

/* Runs in a process of its own, which it ends. */
static void throw_in_a_callback(const char *server_url)
{
    std::set_terminate([] { _exit(TERMINATED); });
    client c(server_url);
    acquire_options options = short_lease(100);
    options.no_renewal = true;
    options.on_event = [](const hf_event &) { throw std::runtime_error("nobody catches this"); };
    hold h = c.acquire("terminated", options);
    std::this_thread::sleep_for(10s);
}

static void an_exception_in_a_callback_ends_the_program()
{
    int status = 0;
    pid_t child = fork();
    if (child == 0) {
        execl("/proc/self/exe", "test_cpp", "throw", url.c_str(), static_cast<char *>(nullptr));
        _exit(1);
    }
    CHECK(child > 0 && waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == TERMINATED);
}

/* ---- The example ----------------------------------------------------------------------------- */

static std::string output_of_example(const std::string &server_url)
{
    std::string output, command = HF_EXAMPLES_DIR "/holdfast-guard " + server_url;
    FILE *running = popen(command.c_str(), "r");
    CHECK(running != nullptr);
    for (int byte = std::fgetc(running); byte != EOF; byte = std::fgetc(running))
        output.push_back(static_cast<char>(byte));
    return output + std::to_string(WEXITSTATUS(pclose(running)));
}

static void the_example_works()
{
    unsigned long long fences[2] = {0, 0};
    for (auto &fence : fences) {
        int length = 0;
        std::string output = output_of_example(url);
        CHECK(std::sscanf(output.c_str(), "order:42 is ours, with the fence %llu\nreleased\n0%n",
                          &fence, &length) == 1);
        CHECK(static_cast<std::size_t>(length) == output.size());
    }
    CHECK(fences[0] > 0 && fences[1] > fences[0]);
    std::string refusal = output_of_example("none");
    CHECK(refusal.rfind("HF_EINVAL: ", 0) == 0 && refusal.back() == '1');
}

int main(int argc, char **argv)
{
    if (argc == 3) {
        throw_in_a_callback(argv[2]);
        return 1;
    }
    const test tests[] = {
        TEST(a_hold_ends_with_its_scope),
        TEST(a_hold_ends_with_an_exception),
        TEST(a_hold_can_be_handed_on),
        TEST(a_client_can_be_moved),
        TEST(a_hold_may_outlive_its_client),
        TEST(closing_says_what_is_not_certain),
        TEST(options_are_handed_over),
        TEST(a_lease_can_be_extended),
        TEST(failures_are_thrown_with_their_status),
        TEST(a_lock_that_is_held_is_no_failure_of_a_try),
        TEST(a_wait_ends_with_the_release),
        TEST(a_wait_can_be_cancelled),
        TEST(guards_of_the_standard_lock_and_unlock),
        TEST(guards_hold_at_the_server),
        TEST(two_locks_in_any_order),
        TEST(a_timed_try_takes_its_time),
        TEST(a_thread_may_lock_again),
        TEST(a_thread_may_not_lock_again_if_so_wanted),
        TEST(eight_threads_count),
        TEST(a_loss_is_thrown_by_a_release_only),
        TEST(a_mutex_knows_that_it_was_lost),
        TEST(who_has_lost_it_does_not_unlock_for_another),
        TEST(a_function_is_told),
        TEST(a_function_of_a_failed_acquire_is_let_go),
        TEST(a_hold_may_be_destroyed_in_its_callback),
        TEST(calls_that_wait_throw_in_a_callback),
        TEST(an_exception_in_a_callback_ends_the_program),
        TEST(the_example_works),
    };
    url = server_start();
    int failures = 0;
    for (const test &t : tests)
        failures += !passes(t);
    server_end();
    return failures == 0 ? 0 : 1;
}
