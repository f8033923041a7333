/* SPDX-License-Identifier: MIT
 *
 * holdfast.hpp: holdfast.h for C++17, with objects that give back what they own. This file is all
 * there is to it, and its manual; what a lock, a hold, a lease or a fence is stands in holdfast.h.
 *
 *     holdfast::client client("redis://localhost");
 *     {
 *         holdfast::hold hold = client.acquire("order:42", 5s); // waits 5 s at most, else throws
 *         ... work, while hold.valid(); write with hold.fence() ...
 *         hold.release();                                       // throws if it had been lost
 *     }                                                         // without it: released here
 *
 *     holdfast::mutex mutex(client, "order:42");
 *     std::lock_guard guard(mutex);                             // std::unique_lock,
 * std::scoped_lock
 *
 * Failure. Whatever fails throws holdfast::error, whose status() says what there is to do about it.
 * Nothing that was only tried is a failure: a lock that is held makes try_acquire() and the
 * try_lock functions come back with nothing. Destructors and unlock() throw nothing, and tell
 * nobody what the release came to: who wants to know whether the lock was held to the end calls
 * release().
 *
 * Threads. As in holdfast.h: a client may be used by many, a hold by whoever does not move, release
 * or destroy it at that moment, and a mutex by as many as want it.
 *
 * Callbacks (on_event) must not let an exception out: that ends the program by std::terminate(), as
 * it does in a std::thread, for there is nobody who could catch it. Calls that wait throw
 * HF_EDEADLK in there, as does release(); to destroy a hold is allowed, and does not wait then.
 *
 * The rest of the C interface takes what get() returns: hf_inspect(client.get(), ...).
 */
#ifndef HOLDFAST_HPP
#define HOLDFAST_HPP

#include <chrono>
#include <cmath>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "holdfast.h"

namespace holdfast
{

/* ---- Failure --------------------------------------------------------------------------------- */

class error : public std::runtime_error
{
  public:
    explicit error(hf_status status) : error(status, hf_status_text(status)) {}
    error(hf_status status, const char *text) : std::runtime_error(text), status_(status) {}
    hf_status status() const noexcept { return status_; }

  private:
    hf_status status_;
};

namespace detail
{

inline void check(const hf_error &outcome)
{
    if (outcome.status != HF_OK)
        throw error(outcome.status, outcome.text);
}

/* Rounded up, so that nobody comes too early, and cut to what the library takes: 0 to a week. By
 * way of a double, in which no duration is too long. */
template <class Rep, class Period>
std::int64_t to_ms(const std::chrono::duration<Rep, Period> &span)
{
    double ms = std::ceil(std::chrono::duration<double, std::milli>(span).count());
    return ms > 0 ? static_cast<std::int64_t>(std::fmin(ms, HF_MS_MAX)) : 0;
}

} // namespace detail

/* ---- Options --------------------------------------------------------------------------------- */

/* The structs of holdfast.h, set to the defaults; change members by name:
 *
 *     holdfast::client_options options;
 *     options.prefix = "shop:";
 *     holdfast::client client("redis://localhost", options);
 */
struct client_options : hf_client_options {
    client_options() : hf_client_options{} { size = sizeof(hf_client_options); }
};

struct acquire_options : hf_acquire_options {
    acquire_options() : hf_acquire_options{} { size = sizeof(hf_acquire_options); }

    /* Those that wait so long, for calls such as client.acquire("order:42", 5s). */
    template <class Rep, class Period>
    acquire_options(const std::chrono::duration<Rep, Period> &wait) : acquire_options()
    {
        wait_ms = detail::to_ms(wait);
    }

    /* In the place of the C function, and of its `arg`. It is copied for each acquire, and lives
     * until the hold has ended and it is not running any more. */
    std::function<void(const hf_event &)> on_event;
};

/* See hf_cancel_new(). Set options.cancel = stop.get(), and fire() from wherever you are. It must
 * outlive the calls that were given it. */
class cancel
{
  public:
    cancel() : cancel_(hf_cancel_new())
    {
        if (cancel_ == nullptr)
            throw error(HF_ENOMEM);
    }
    void fire() noexcept { hf_cancel_fire(cancel_.get()); }
    hf_cancel *get() const noexcept { return cancel_.get(); }

  private:
    struct ending {
        void operator()(hf_cancel *cancel) const noexcept { hf_cancel_free(cancel); }
    };
    std::unique_ptr<hf_cancel, ending> cancel_;
};

/* ---- Holds ----------------------------------------------------------------------------------- */

/* One grant of a lock, from client::acquire(). Moving it hands it on; what is left behind is empty,
 * as is one that was released: not valid, and nothing happens when it is released or destroyed.
 *
 * The destructor releases, and waits for the server's answer, for call_timeout_ms at most; inside a
 * callback it does not wait. When it has returned, on_event does not run any more, unless this was
 * inside a callback. A hold may outlive its client, which has released it then. */
class hold
{
  public:
    hold() = default;

    /* Throws HF_ELOST if the hold had ended before: then other work may have overlapped with yours.
     * The hold is empty afterwards, whatever is thrown, except for HF_EDEADLK inside a callback. */
    void release()
    {
        hf_error outcome;
        hf_hold *handle = get();
        hf_release(&handle, &outcome);
        if (handle == nullptr) { /* inside a callback it is still there */
            hold_.release();
            hold_.get_deleter().listener.reset();
        }
        detail::check(outcome);
    }

    /* Makes the lease last at least so long from now on; without an argument, as long as it was
     * acquired with. Throws HF_ELOST when it is too late. */
    void extend() { extend_by_ms(0); }
    template <class Rep, class Period> void extend(const std::chrono::duration<Rep, Period> &lease)
    {
        std::int64_t lease_ms = detail::to_ms(lease);
        extend_by_ms(lease_ms > 0 ? lease_ms : -1); /* 0 would be the default */
    }

    /* What is known locally, without any message; never claims too much. */
    bool valid() const noexcept { return hf_is_valid(get()); }
    std::chrono::milliseconds remaining() const noexcept
    {
        return std::chrono::milliseconds(hf_remaining_ms(get()));
    }
    hf_state state() const noexcept { return hf_hold_state(get()); }
    /* Larger than that of every earlier grant of the lock; 0 if the hold is empty. */
    std::uint64_t fence() const noexcept { return hf_fence(get()); }

    hf_hold *get() const noexcept { return hold_.get(); }

  private:
    friend class client;
    using function = std::function<void(const hf_event &)>;

    static void tell(void *listener, const hf_event *event) noexcept
    {
        (*static_cast<function *>(listener))(*event);
    }
    static void forget(void *listener, const hf_error *) noexcept
    {
        delete static_cast<function *>(listener);
    }

    /* Inside a callback, which may be that of this very hold, the library says when the listener is
     * needed no more. If it cannot, for lack of memory, the listener is never freed. */
    struct ending {
        std::unique_ptr<function> listener;
        void operator()(hf_hold *handle) noexcept
        {
            if (hf_release(&handle, nullptr) == HF_EDEADLK)
                hf_release_async(&handle, forget, listener.release(), nullptr);
        }
    };

    void extend_by_ms(std::int64_t lease_ms)
    {
        hf_error outcome;
        hf_extend(get(), lease_ms, &outcome);
        detail::check(outcome);
    }

    std::unique_ptr<hf_hold, ending> hold_;
};

/* ---- Client ---------------------------------------------------------------------------------- */

class client
{
  public:
    /* See hf_open() for what a URL looks like. No server is asked. HF_EINVAL or HF_ENOMEM. */
    explicit client(const std::string &url, const client_options &options = client_options())
    {
        hf_error outcome;
        hf_client *opened;
        hf_open(url.c_str(), &options, &opened, &outcome);
        detail::check(outcome);
        client_.reset(opened);
    }

    /* Releases what is still held and ends the client, as the destructor does, and throws if that
     * is not certain: HF_EUNKNOWN (some release was not answered), HF_EFORKED. Inside a callback
     * neither can be done: HF_EDEADLK, and the client stays; destroyed there, it is never ended. */
    void close()
    {
        hf_status status = hf_close(get());
        if (status != HF_EDEADLK)
            client_.release();
        if (status != HF_OK)
            throw error(status);
    }

    /* Waits as the options say, which by themselves allow one try, and throws unless the lock is
     * ours: HF_EBUSY if somebody else held it all the time. See hf_acquire(). */
    [[nodiscard]] hold acquire(std::string_view name,
                               const acquire_options &options = acquire_options())
    {
        return take(get(), name, options, nullptr);
    }

    /* The same, but empty if somebody else held it all the time. Everything else throws. */
    [[nodiscard]] std::optional<hold>
    try_acquire(std::string_view name, const acquire_options &options = acquire_options())
    {
        return try_take(get(), name, options);
    }

    hf_client *get() const noexcept { return client_.get(); }

  private:
    friend class mutex;
    struct ending {
        void operator()(hf_client *client) const noexcept { hf_close(client); }
    };

    /* HF_EBUSY is thrown, unless the caller wants to know of it. */
    static hold take(hf_client *client, std::string_view name, const acquire_options &options,
                     bool *busy)
    {
        hf_error outcome;
        hf_hold *handle;
        hold taken;
        hf_acquire_options wish = options;
        std::unique_ptr<hold::function> &listener = taken.hold_.get_deleter().listener;
        if (options.on_event) {
            listener = std::make_unique<hold::function>(options.on_event);
            wish.on_event = hold::tell;
            wish.arg = listener.get();
        }
        wish.name_length = name.size();
        hf_acquire(client, name.empty() ? "" : name.data(), &wish, &handle, &outcome);
        if (busy != nullptr && outcome.status == HF_EBUSY)
            *busy = true;
        else
            detail::check(outcome);
        taken.hold_.reset(handle);
        return taken;
    }

    static std::optional<hold> try_take(hf_client *client, std::string_view name,
                                        const acquire_options &options)
    {
        bool busy = false;
        hold taken = take(client, name, options, &busy);
        if (busy)
            return std::nullopt;
        return taken;
    }

    std::unique_ptr<hf_client, ending> client_;
};

/* ---- Mutex ----------------------------------------------------------------------------------- */

/* A lock by name that meets the Lockable and TimedLockable requirements, for std::lock_guard,
 * std::unique_lock, std::scoped_lock and std::lock(). The client must outlive it (it may be moved).
 *
 * Who holds it. One object may be shared by all threads of a process, and any number of objects may
 * have the same name: it is one lock. A thread unlocks what it has locked itself; to unlock what it
 * has not does nothing. A thread that has locked it may lock it again, through this object or
 * another one of the same name, and unlocks it as often: a std::recursive_mutex. With
 * options.no_reentry it is a std::mutex: the thread would wait for itself, and try_lock() says no.
 *
 * Loss. Unlike a std::mutex, it can be lost while it is locked: a lease that could not be renewed,
 * a server that forgot it, an operator who broke it. Then it is still for its thread to unlock, and
 * unlock() cannot say so, for guards call it in destructors. So ask lost() or valid() before
 * what matters, give fence() to the store, or be told by options.on_event; and who wants to know in
 * the end releases instead of unlocking:
 *
 *     std::unique_lock lock(mutex);
 *     work();
 *     lock.release()->release(); // out of the guard's hands, and throws HF_ELOST if it was lost
 *
 * Waiting. How long is said by the call; wait_ms in the options means nothing here. lock() waits
 * without limit, also for a server that is gone; options.cancel ends that.
 *
 * Strings in the options are used by each call, so they must live as long as the mutex. With
 * options.owner all who name that owner share the lock, and the mutex does not keep them apart. */
class mutex
{
  public:
    mutex(client &owner, std::string name, acquire_options options = acquire_options())
        : client_(owner.get()), name_(std::move(name)), options_(std::move(options))
    {
    }
    mutex(const mutex &) = delete;
    mutex &operator=(const mutex &) = delete;

    /* Throws if it cannot be had at all (HF_ECANCELLED, HF_EDENIED, HF_ECLOSED, ...). */
    void lock() { keep(client::take(client_, name_, waiting(-1), nullptr)); }

    /* False: somebody else has it, or had it all the time. Whatever else may happen throws, such as
     * HF_EUNAVAILABLE when there is no server. */
    [[nodiscard]] bool try_lock() { return try_for_ms(0); }
    template <class Rep, class Period>
    [[nodiscard]] bool try_lock_for(const std::chrono::duration<Rep, Period> &wait)
    {
        return try_for_ms(detail::to_ms(wait)); /* a week is as long as it gets */
    }
    template <class Clock, class Duration>
    [[nodiscard]] bool try_lock_until(const std::chrono::time_point<Clock, Duration> &end)
    {
        auto now = Clock::now();
        return end > now ? try_lock_for(end - now) : try_lock();
    }

    /* Throws nothing, and waits for the server's answer for call_timeout_ms at most. */
    void unlock() noexcept { give_up(); }

    /* Unlocks, and throws what hold::release() throws; unlocked it is in any case. */
    void release() { give_up().release(); }

    /* Of what the calling thread has locked, the last time. If it has not: false, false and 0. */
    bool valid() const
    {
        std::lock_guard<std::mutex> guard(guard_);
        auto mine = find();
        return mine != holds_.end() && mine->second.valid();
    }
    bool lost() const
    {
        std::lock_guard<std::mutex> guard(guard_);
        auto mine = find();
        return mine != holds_.end() && !mine->second.valid();
    }
    std::uint64_t fence() const
    {
        std::lock_guard<std::mutex> guard(guard_);
        auto mine = find();
        return mine != holds_.end() ? mine->second.fence() : 0;
    }

  private:
    using entry = std::pair<std::thread::id, hold>;

    acquire_options waiting(std::int64_t wait_ms) const
    {
        acquire_options options = options_;
        options.wait_ms = wait_ms;
        return options;
    }

    bool try_for_ms(std::int64_t wait_ms)
    {
        std::optional<hold> taken = client::try_take(client_, name_, waiting(wait_ms));
        if (taken)
            keep(std::move(*taken));
        return taken.has_value();
    }

    void keep(hold taken)
    {
        std::lock_guard<std::mutex> guard(guard_);
        holds_.emplace_back(std::this_thread::get_id(), std::move(taken));
    }

    std::vector<entry>::const_iterator find() const
    {
        auto last = holds_.end();
        for (auto at = holds_.begin(); at != holds_.end(); ++at)
            if (at->first == std::this_thread::get_id())
                last = at;
        return last;
    }

    hold give_up()
    {
        hold mine;
        std::lock_guard<std::mutex> guard(guard_);
        auto place = holds_.begin() + (find() - holds_.cbegin());
        if (place != holds_.end()) {
            mine = std::move(place->second);
            holds_.erase(place);
        }
        return mine;
    }

    hf_client *client_;
    std::string name_;
    acquire_options options_;
    mutable std::mutex guard_; /* of the list, and never held while something waits */
    std::vector<entry> holds_; /* more than one: by the same thread again, or lost by another */
};

} // namespace holdfast

#endif
