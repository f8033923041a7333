// SPDX-License-Identifier: MIT
//
// A lock in C++: a guard of the standard around the work, a fence for the store, and, at the end,
// the question whether the lock was ours to the end.
#include <holdfast.hpp>
#include <iostream>

int main(int argc, char **argv)
try {
    holdfast::client client(argc > 1 ? argv[1] : "redis://localhost");
    holdfast::mutex order(client, "order:42");
    std::unique_lock lock(order, std::chrono::seconds(5));
    if (!lock.owns_lock()) {
        std::cout << "somebody else has order:42\n";
        return 1;
    }
    std::cout << "order:42 is ours, with the fence " << order.fence() << "\n";
    lock.release()->release(); // instead of unlocking: throws if it was lost meanwhile
    std::cout << "released\n";
    return 0;
} catch (const holdfast::error &error) {
    std::cout << hf_status_name(error.status()) << ": " << error.what() << "\n";
    return 1;
}
