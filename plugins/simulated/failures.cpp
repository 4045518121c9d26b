#include "failures.hpp"

#include <tessera/cpp/status.hpp>

#include <algorithm>

namespace tessera::simulated {

using sdk::Failure;

std::shared_ptr<Failures> Failures::of(const std::string& device) {
    static std::mutex mutex;
    static std::map<std::string, std::shared_ptr<Failures>> all;
    const std::lock_guard lock(mutex);
    std::shared_ptr<Failures>& one = all[device];
    if (!one) {
        one = std::make_shared<Failures>();
        one->device_ = device;
    }
    return one;
}

void Failures::alive_locked() const {
    if (vanished_) throw Failure(TSR_DEVICE_ERROR, device_ + ": the device has vanished (as was asked for)");
}

void Failures::alive() {
    const std::lock_guard lock(mutex_);
    alive_locked();
}

void Failures::allocation(uint64_t bytes) {
    const std::lock_guard lock(mutex_);
    alive_locked();
    if (allocations_left_ == 0) {
        throw Failure(TSR_DOES_NOT_FIT,
                      device_ + ": an allocation of " + std::to_string(bytes) + " bytes is refused (as was asked for)");
    }
    if (allocations_left_ != kNever) --allocations_left_;
}

void Failures::allocated(uint64_t bytes) {
    const std::lock_guard lock(mutex_);
    allocated_ += bytes;
    most_allocated_ = std::max(most_allocated_, allocated_);
}

void Failures::released(uint64_t bytes) {
    const std::lock_guard lock(mutex_);
    allocated_ -= bytes;
}

void Failures::copying(const char* what, uint64_t bytes) {
    const std::lock_guard lock(mutex_);
    alive_locked();
    if (copies_left_ == 0) {
        copies_left_ = kNever;
        throw Failure(TSR_DEVICE_ERROR,
                      device_ + ": " + what + " of " + std::to_string(bytes) + " bytes failed (as was asked for)");
    }
    if (copies_left_ != kNever) --copies_left_;
}

void Failures::kernel(const char* op, const char* node) {
    const std::lock_guard lock(mutex_);
    alive_locked();
    if (kernels_left_ == kNever || (!failing_op_.empty() && failing_op_ != op)) return;
    if (kernels_left_ == 0) {
        kernels_left_ = kNever;
        throw Failure(TSR_DEVICE_ERROR, device_ + ": " + op + " " + node + " failed (as was asked for)");
    }
    --kernels_left_;
}

void Failures::computed(const char* op) {
    const std::lock_guard lock(mutex_);
    const auto at = computed_.find(std::string_view(op));
    if (at != computed_.end()) {
        ++at->second;
    } else {
        computed_.emplace(op, 1);
    }
}

// The functions of the C table.
struct FailureTable {
    template <class Body>
    static auto with(const char* device, Body&& body) {
        const std::shared_ptr<Failures> failures = Failures::of(device ? device : "");
        const std::lock_guard lock(failures->mutex_);
        return body(*failures);
    }
    static void refuse_allocations(const char* device, uint64_t after) {
        with(device, [&](Failures& f) { f.allocations_left_ = after; });
    }
    static void fail_copy(const char* device, uint64_t after) {
        with(device, [&](Failures& f) { f.copies_left_ = after; });
    }
    static void fail_kernel(const char* device, const char* op, uint64_t after) {
        with(device, [&](Failures& f) {
            f.kernels_left_ = after;
            f.failing_op_ = op ? op : "";
        });
    }
    static void vanish(const char* device) {
        with(device, [&](Failures& f) { f.vanished_ = true; });
    }
    static void reset(const char* device) {
        with(device, [&](Failures& f) {
            f.allocations_left_ = f.copies_left_ = f.kernels_left_ = Failures::kNever;
            f.failing_op_.clear();
            f.vanished_ = false;
            f.most_allocated_ = f.allocated_;
            f.computed_.clear();
        });
    }
    static uint64_t allocated_bytes(const char* device) {
        return with(device, [](Failures& f) { return f.allocated_; });
    }
    static uint64_t most_allocated_bytes(const char* device) {
        return with(device, [](Failures& f) { return f.most_allocated_; });
    }
    static uint64_t kernels_run(const char* device, const char* op) {
        return with(device, [&](Failures& f) {
            uint64_t sum = 0;
            for (const auto& [name, count] : f.computed_) sum += !op || name == op ? count : 0;
            return sum;
        });
    }
};

const tsr_simulated_failures* failure_table() {
    using T = FailureTable;
    static const tsr_simulated_failures table = {
        sizeof(tsr_simulated_failures),
        0,
        T::refuse_allocations,
        T::fail_copy,
        T::fail_kernel,
        T::vanish,
        T::reset,
        T::allocated_bytes,
        T::most_allocated_bytes,
        T::kernels_run,
    };
    return &table;
}

}  // namespace tessera::simulated
