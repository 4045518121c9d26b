#include "control.hpp"

#include <tessera/cpp/status.hpp>

#include <map>
#include <memory>

namespace tessera::simulated {
namespace {

using sdk::Failure;

constexpr auto kRelaxed = std::memory_order_relaxed;

constexpr const char* kNames[] = {
    "allocate",        "allocate_pinned", "register_host",    "create_queue", "create_event",
    "wait_queue",      "record_event",    "queue_wait_event", "query_event",  "wait_event",
    "event_seconds",   "upload",          "download",         "copy",         "copy_from_peer",
    "begin_recording", "end_recording",   "replay",           "prepare",      "enqueue",
    "copying",         "computing",       "memory_info",      "enqueue_pack", "enqueue_unpack",
};
static_assert(std::size(kNames) == TSR_SIMULATED_OPERATION_COUNT);

bool can_be_omitted(tsr_simulated_operation operation) noexcept {
    switch (operation) {
        case TSR_SIMULATED_WAIT_QUEUE:
        case TSR_SIMULATED_RECORD_EVENT:
        case TSR_SIMULATED_QUEUE_WAIT_EVENT:
        case TSR_SIMULATED_QUERY_EVENT:
        case TSR_SIMULATED_WAIT_EVENT:
        case TSR_SIMULATED_UPLOAD:
        case TSR_SIMULATED_DOWNLOAD:
        case TSR_SIMULATED_COPY:
        case TSR_SIMULATED_COPY_FROM_PEER:
        case TSR_SIMULATED_REPLAY:
        case TSR_SIMULATED_ENQUEUE:
        case TSR_SIMULATED_EXECUTE_COPY:
        case TSR_SIMULATED_EXECUTE_KERNEL:
        case TSR_SIMULATED_PACK:
        case TSR_SIMULATED_UNPACK:
            return true;
        default:
            return false;
    }
}

void raise(std::atomic<uint64_t>& maximum, uint64_t value) noexcept {
    uint64_t seen = maximum.load(kRelaxed);
    while (seen < value && !maximum.compare_exchange_weak(seen, value, kRelaxed)) {
    }
}

// Takes one of what is left; false if nothing is.
bool take_one(std::atomic<uint64_t>& left) noexcept {
    uint64_t seen = left.load(kRelaxed);
    while (seen != 0 && seen != UINT64_MAX) {
        if (left.compare_exchange_weak(seen, seen - 1, kRelaxed)) return true;
    }
    return seen != 0;
}

}  // namespace

const char* operation_name(tsr_simulated_operation operation) noexcept {
    return operation < std::size(kNames) ? kNames[operation] : "?";
}

Control& Control::of(const std::string& device) {
    static std::mutex mutex;
    static auto& all = *new std::map<std::string, std::unique_ptr<Control>>;
    const std::lock_guard lock(mutex);
    std::unique_ptr<Control>& one = all[device];
    if (!one) one.reset(new Control(device));
    return *one;
}

uint32_t Control::index_of(const char* op) noexcept {
    if (!op) return kOpCount;
    const plain::Op* found = plain::find_op(op);
    return found ? static_cast<uint32_t>(found - plain::kOps) : kOpCount;
}

void Control::require_alive() const {
    if (lost()) throw Failure(TSR_DEVICE_LOST, device_ + ": the device has vanished (injected)");
}

bool Control::begin(tsr_simulated_operation operation, const char* op, const std::string& what) {
    require_alive();
    const uint32_t index = index_of(op);
    Setting& setting = settings_[operation];
    const uint32_t wanted = setting.op.load(kRelaxed);
    const bool meant = wanted == kAnyOp || wanted == index;
    if (meant && setting.after.load(kRelaxed) != kNever && !take_one(setting.after) && take_one(setting.times)) {
        if (setting.omits.load(kRelaxed) && can_be_omitted(operation)) return false;
        const bool memory = operation <= TSR_SIMULATED_REGISTER_HOST;
        throw Failure(memory ? TSR_DOES_NOT_FIT : TSR_DEVICE_ERROR,
                      device_ + ": " + operation_name(operation) + (op ? std::string(" of ") + op : "") +
                          (what.empty() ? "" : " " + what) + " failed (injected)");
    }
    if (vanish_after_.load(kRelaxed) != kNever && !take_one(vanish_after_)) {
        lost_.store(true, kHidden);
        require_alive();
    }
    counts_[operation].by_op[index].fetch_add(1, kRelaxed);
    return true;
}

void Control::copying(tsr_simulated_operation operation, uint64_t bytes) noexcept {
    counts_[operation].bytes.fetch_add(bytes, kRelaxed);
}

void Control::allocated(uint64_t bytes) noexcept {
    raise(maximum_allocated_, allocated_.fetch_add(bytes, kRelaxed) + bytes);
}

void Control::released(uint64_t bytes) noexcept {
    allocated_.fetch_sub(bytes, kRelaxed);
}

void Control::busy_queues(uint64_t count) noexcept {
    raise(maximum_busy_, count);
}

Options Control::options() const {
    const std::lock_guard lock(mutex_);
    return options_.value_or(Options());
}

void Control::set(tsr_simulated_operation operation, const char* op, uint64_t after, uint64_t times,
                  bool omits) noexcept {
    if (operation >= TSR_SIMULATED_OPERATION_COUNT) return;
    Setting& setting = settings_[operation];
    setting.after.store(kNever, kRelaxed);
    setting.op.store(op ? index_of(op) : kAnyOp, kRelaxed);
    setting.omits.store(omits, kRelaxed);
    setting.times.store(times, kRelaxed);
    setting.after.store(after, kRelaxed);
}

void Control::reset() noexcept {
    for (tsr_simulated_operation i = 0; i < TSR_SIMULATED_OPERATION_COUNT; ++i) {
        set(i, nullptr, kNever, 0, false);
        for (auto& count : counts_[i].by_op) count.store(0, kRelaxed);
        counts_[i].bytes.store(0, kRelaxed);
    }
    vanish_after_.store(kNever, kRelaxed);
    lost_.store(false, kHidden);
    maximum_allocated_.store(allocated_.load(kRelaxed), kRelaxed);
    maximum_busy_.store(0, kRelaxed);
}

uint64_t Control::count(tsr_simulated_operation operation, const char* op) const noexcept {
    if (operation >= TSR_SIMULATED_OPERATION_COUNT) return 0;
    const auto& counts = counts_[operation].by_op;
    if (op) return index_of(op) < kOpCount ? counts[index_of(op)].load(kRelaxed) : 0;
    uint64_t sum = 0;
    for (const auto& count : counts) sum += count.load(kRelaxed);
    return sum;
}

// The functions of the C table. No exception may leave them: those that could allocate are guarded.
struct FailureTable {
    static Control& control(const char* device) { return Control::of(device ? device : ""); }

    static void fail(const char* device, tsr_simulated_operation operation, const char* op, uint64_t after,
                     uint64_t times) {
        control(device).set(operation, op, after, times, false);
    }
    static void omit(const char* device, tsr_simulated_operation operation, const char* op, uint64_t after,
                     uint64_t times) {
        control(device).set(operation, op, after, times, true);
    }
    static void vanish(const char* device, uint64_t after) { control(device).vanish_after_.store(after, kRelaxed); }
    static uint32_t configure(const char* device, const tsr_simulated_options* options) {
        try {
            std::optional<Options> read;
            if (options) read = options_from(*options);
            Control& found = control(device);
            const std::lock_guard lock(found.mutex_);
            found.options_ = std::move(read);
            return 1;
        } catch (...) {
            return 0;
        }
    }
    static void reset(const char* device) { control(device).reset(); }
    static uint64_t count(const char* device, tsr_simulated_operation operation, const char* op) {
        return control(device).count(operation, op);
    }
    static uint64_t bytes(const char* device, tsr_simulated_operation operation) {
        return operation < TSR_SIMULATED_OPERATION_COUNT ? control(device).counts_[operation].bytes.load(kRelaxed) : 0;
    }
    static uint64_t allocated_bytes(const char* device) { return control(device).allocated_.load(kRelaxed); }
    static uint64_t maximum_allocated_bytes(const char* device) {
        return control(device).maximum_allocated_.load(kRelaxed);
    }
    static uint64_t maximum_busy_queues(const char* device) { return control(device).maximum_busy_.load(kRelaxed); }
};

const tsr_simulated_failures* failure_table() {
    using T = FailureTable;
    static constexpr tsr_simulated_failures kTable = {
        sizeof(tsr_simulated_failures),
        0,
        nullptr,
        T::fail,
        T::omit,
        T::vanish,
        T::configure,
        T::reset,
        T::count,
        T::bytes,
        T::allocated_bytes,
        T::maximum_allocated_bytes,
        T::maximum_busy_queues,
    };
    return &kTable;
}

}  // namespace tessera::simulated
