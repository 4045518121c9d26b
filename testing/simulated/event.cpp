#include "event.hpp"

#include <array>
#include <chrono>
#include <deque>
#include <mutex>
#include <new>

namespace tessera::simulated {

void Record::complete(const Fault* failure) noexcept {
    const auto now = std::chrono::steady_clock::now().time_since_epoch();
    nanoseconds.store(std::chrono::duration_cast<std::chrono::nanoseconds>(now).count(), std::memory_order_relaxed);
    fault.store(failure, std::memory_order_relaxed);
    done.store(1, std::memory_order_release);
    wake_all(done);
    Bell::ring();
}

namespace {

// Records that no constructor has to write: threads reach them without any ordering after this one's writes.
constinit std::array<Record, 4096> first_records;

bool take(Record& record) noexcept {
    if (record.uses.load(kHidden) != 0) return false;
    record.done.store(0, std::memory_order_relaxed);
    record.fault.store(nullptr, std::memory_order_relaxed);
    record.hold();
    return true;
}

}  // namespace

Record& take_record() {
    static std::mutex mutex;
    static auto& more = *new std::deque<Record>;
    const std::lock_guard lock(mutex);
    for (Record& record : first_records) {
        if (take(record)) return record;
    }
    for (Record& record : more) {
        if (take(record)) return record;
    }
    Record& record = more.emplace_back();
    record.hold();
    return record;
}

const Fault& Fault::make(tsr_code code, const char* message) noexcept {
    static const Fault kOutOfMemory{TSR_DOES_NOT_FIT, {}, nullptr, {}};
    static std::atomic<const Fault*> all{nullptr};
    try {
        auto* fault = new Fault{code, message, all.load(kHidden), {}};
        while (!all.compare_exchange_weak(fault->next, fault, kHidden)) {
        }
        return *fault;
    } catch (const std::bad_alloc&) {
        return kOutOfMemory;
    }
}

}  // namespace tessera::simulated
