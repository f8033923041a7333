/* SPDX-License-Identifier: MIT */
/* What a test program in C++ needs to say: a failed check throws, so that what the test owns is
 * given back, and belongs to the test's own thread. */
#ifndef HOLDFAST_TESTS_CPP_CHECK_HPP
#define HOLDFAST_TESTS_CPP_CHECK_HPP

#include <chrono>
#include <cstdio>
#include <exception>
#include <stdexcept>
#include <string>
#include <thread>

#include <holdfast.hpp>

struct failed_check : std::logic_error {
    failed_check(const char *file, int line, const std::string &what)
        : std::logic_error(std::string(file) + ":" + std::to_string(line) + ": " + what)
    {
    }
};

#define CHECK(condition)                                        \
    do {                                                        \
        if (!(condition))                                       \
            throw failed_check(__FILE__, __LINE__, #condition); \
    } while (0)

/* The call throws a holdfast::error with that status, and with words. */
#define CHECK_THROWS(wanted, call)                                                             \
    do {                                                                                       \
        hf_status got_ = HF_OK;                                                                \
        std::string text_ = "nothing was thrown";                                              \
        try {                                                                                  \
            call;                                                                              \
        } catch (const holdfast::error &e) {                                                   \
            got_ = e.status();                                                                 \
            text_ = e.what();                                                                  \
        }                                                                                      \
        if (got_ != (wanted) || text_.empty())                                                 \
            throw failed_check(__FILE__, __LINE__,                                             \
                               std::string(#call ": ") + hf_status_name(got_) + ", " + text_); \
    } while (0)

#define CHECK_SOON(condition)                                                           \
    do {                                                                                \
        auto end_ = std::chrono::steady_clock::now() + std::chrono::seconds(10);        \
        while (!(condition)) {                                                          \
            if (std::chrono::steady_clock::now() > end_)                                \
                throw failed_check(__FILE__, __LINE__, "not within 10 s: " #condition); \
            std::this_thread::sleep_for(std::chrono::milliseconds(2));                  \
        }                                                                               \
    } while (0)

struct test {
    const char *name;
    void (*run)();
};

#define TEST(name)  \
    test            \
    {               \
#name, name \
    }

inline bool passes(const test &t)
{
    std::string outcome = "OK";
    try {
        t.run();
    } catch (const std::exception &e) {
        outcome = std::string("FAILED: ") + e.what();
    }
    std::printf("%s: %s\n", t.name, outcome.c_str());
    std::fflush(stdout);
    return outcome == "OK";
}

#endif
