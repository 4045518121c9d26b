#include "core/base/plugin_call.hpp"

#include "core/base/error.hpp"
#include "core/base/log.hpp"
#include "core/base/text.hpp"

#include <tessera/cpp/float_state.hpp>

#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <exception>
#include <mutex>
#include <set>
#include <string_view>

namespace tessera {
namespace detail {

struct alignas(64) CallSlot {
    std::atomic<const char*> plugin{nullptr};  // nullptr: in no call. Written first and last
    std::atomic<const char*> function{nullptr}, kind{nullptr}, entry{nullptr}, node{nullptr};
    std::atomic<uint64_t> serial{0};
    std::atomic<uint64_t> reported{0};
    std::atomic<int32_t> thread{0};  // 0: the slot is free
    std::atomic<uint32_t> readers{0};
};

}  // namespace detail

namespace {

using detail::CallSlot;

constexpr size_t kSlots = 4096;
constinit std::array<CallSlot, kSlots> g_slots;
constinit std::atomic<size_t> g_used{0};
constinit std::atomic<void (*)()> g_thread_hook{nullptr};
// Plain, so that a signal handler may read it.
constinit thread_local CallSlot* t_slot = nullptr;

struct SlotOwner {
    bool owns = false;
    ~SlotOwner() {
        // A plugin that calls exit from inside a call stays known until the process has ended.
        if (!owns || t_slot->plugin.load(std::memory_order_relaxed)) return;
        t_slot->thread.store(0, std::memory_order_release);
        t_slot = nullptr;
    }
};
thread_local SlotOwner t_owner;

CallSlot* claim_slot() noexcept {
    const auto self = static_cast<int32_t>(gettid());
    for (size_t i = 0; i < kSlots; ++i) {
        int32_t free = 0;
        if (g_slots[i].thread.load(std::memory_order_relaxed) != 0 ||
            !g_slots[i].thread.compare_exchange_strong(free, self, std::memory_order_acquire))
            continue;
        size_t used = g_used.load(std::memory_order_relaxed);
        while (used < i + 1 && !g_used.compare_exchange_weak(used, i + 1, std::memory_order_release)) {
        }
        t_slot = &g_slots[i];
        t_owner.owns = true;
        if (auto* const hook = g_thread_hook.load(std::memory_order_acquire)) hook();
        return t_slot;
    }
    return nullptr;
}

// Makes strings that a reader may be using unreachable, and waits for the reader.
void withdraw(CallSlot& slot) noexcept {
    slot.plugin.store(nullptr, std::memory_order_seq_cst);
    while (slot.readers.load(std::memory_order_seq_cst) != 0) {
    }
}

void publish(CallSlot& slot, const PluginCall& call) noexcept {
    constexpr auto kRelease = std::memory_order_release;  // orders the stores for a signal handler of this thread, too
    slot.function.store(call.function, kRelease);
    slot.kind.store(call.kind, kRelease);
    slot.entry.store(call.entry, kRelease);
    slot.node.store(call.node, kRelease);
    slot.serial.store(slot.serial.load(std::memory_order_relaxed) + 1, kRelease);
    slot.plugin.store(call.plugin, kRelease);
}

PluginCall call_in(const CallSlot& slot) noexcept {
    constexpr auto kAcquire = std::memory_order_acquire;
    PluginCall call;
    call.plugin = slot.plugin.load(kAcquire);
    call.function = slot.function.load(kAcquire);
    call.kind = slot.kind.load(kAcquire);
    call.entry = slot.entry.load(kAcquire);
    call.node = slot.node.load(kAcquire);
    return call;
}

// Text of limited length, made without allocation. Names come from plugins: control characters become '?'.
class FixedText {
  public:
    FixedText(char* text, size_t capacity) noexcept : text_(text), capacity_(capacity) {
        if (capacity_) text_[0] = '\0';
    }
    void add(const char* part, size_t limit = 200) noexcept {
        for (; part && *part && limit > 0 && size_ + 1 < capacity_; ++part, --limit) {
            const auto byte = static_cast<unsigned char>(*part);
            text_[size_++] = byte < 0x20 || byte == 0x7F ? '?' : *part;
        }
        if (capacity_) text_[size_] = '\0';
    }

  private:
    char* text_;
    size_t capacity_, size_ = 0;
};

void write_description(const PluginCall& call, char* text, size_t capacity) noexcept {
    FixedText out(text, capacity);
    out.add("plugin ");
    out.add(call.plugin ? call.plugin : "(unknown)");
    out.add(": ");
    out.add(call.function);
    if (call.entry) {
        out.add(" of ");
        out.add(call.kind);
        out.add(" ");
        out.add(call.entry);
    }
    if (call.node) {
        out.add(" at node ");
        out.add(call.node);
    }
}

CallState look_at(CallSlot& slot, char* text, size_t capacity) noexcept {
    CallState state;
    slot.readers.fetch_add(1, std::memory_order_seq_cst);
    // A serial that is the same before and after was that of one call all the time.
    const uint64_t serial = slot.serial.load(std::memory_order_acquire);
    if (slot.plugin.load(std::memory_order_seq_cst)) {
        write_description(call_in(slot), text, capacity);
        if (slot.serial.load(std::memory_order_acquire) == serial) {
            state.serial = serial;
            state.thread = slot.thread.load(std::memory_order_relaxed);
            state.reported = slot.reported.load(std::memory_order_relaxed) == serial;
        }
    }
    slot.readers.fetch_sub(1, std::memory_order_seq_cst);
    return state;
}

// How the thread computed before each of the calls that it is in, the innermost last. At the end of a call it does so
// again, whatever the plugin has set.
struct FloatStates {
    std::array<sdk::FloatState, 16> before;
    size_t depth = 0;
};
constinit thread_local FloatStates t_float_states;

// A line for each function of an entry.
void report_float_state(const PluginCall& call, const std::string& what) noexcept {
    try {
        static std::mutex mutex;
        static std::set<std::string> reported;
        PluginCall anywhere = call;
        anywhere.node = nullptr;
        {
            const std::scoped_lock lock(mutex);
            if (!reported.insert(describe(anywhere)).second) return;
        }
        log().warn("{} changes how its thread computes: {}; it has been set back", describe(call), what);
    } catch (const std::exception&) {  // nothing else can be done about it
    }
}

constexpr tsr_code kNoCode = UINT32_MAX;

// Statuses are untrusted data, as everything that a plugin returns.
Error error_of(const PluginCall& call, const tsr_status& status) {
    // No field of a status that is too short can be read, not even destroy.
    if (const std::string why = status_fault(status); !why.empty()) return {TSR_INTERNAL, describe(call) + ": " + why};
    const bool known = status.code != TSR_OK && std::string_view(code_name(status.code)) != code_name(kNoCode);
    std::string text = describe(call) + ": " + (status.message ? printable(status.message, 1000) : "no message");
    if (!known) {
        text += fmt::format(" (the status has the code {}, which no failure has)", status.code);
    }
    return {known ? status.code : tsr_code{TSR_INTERNAL}, text};
}

}  // namespace

std::string describe(const PluginCall& call) {
    std::array<char, 1000> text;
    write_description(call, text.data(), text.size());
    return text.data();
}

PluginCallScope::PluginCallScope(const PluginCall& call) noexcept : slot_(t_slot ? t_slot : claim_slot()) {
    const size_t depth = t_float_states.depth++;
    if (depth < t_float_states.before.size()) t_float_states.before[depth] = sdk::FloatState::of_this_thread();
    if (!slot_) return;
    before_ = call_in(*slot_);
    if (before_.plugin) withdraw(*slot_);
    publish(*slot_, call);
}

PluginCallScope::~PluginCallScope() {
    if (--t_float_states.depth < t_float_states.before.size()) {
        const sdk::FloatState &before = t_float_states.before[t_float_states.depth],
                              after = sdk::FloatState::of_this_thread();
        if (after != before) [[unlikely]] {
            before.restore();
            report_float_state(slot_ ? call_in(*slot_) : PluginCall(), before.difference(after));
        }
    }
    if (!slot_) return;
    withdraw(*slot_);
    if (before_.plugin) publish(*slot_, before_);
}

void fail_thrown(const PluginCall& call) {
    std::string what = "of an unknown type";
    try {
        throw;
    } catch (const std::exception& error) {
        what = printable(error.what(), 1000);
    } catch (...) {
    }
    fail(TSR_INTERNAL, "{} threw an exception, which a plugin must not: {}", describe(call), what);
}

void check_call(const PluginCall& call, const tsr_status* status) {
    if (!status) return;
    // The pointer may be wild, so reading it counts as part of the call.
    const PluginCallScope scope(call);
    const Error error = error_of(call, *status);
    if (status_fault(*status).empty() && status->destroy) call_plugin(call, [&] { status->destroy(status); });
    throw error;
}

size_t call_slots() noexcept {
    return g_used.load(std::memory_order_acquire);
}

CallState look_at_call(size_t slot, char* text, size_t capacity) noexcept {
    return slot < kSlots ? look_at(g_slots[slot], text, capacity) : CallState{};
}

CallState look_at_own_call(char* text, size_t capacity) noexcept {
    return t_slot ? look_at(*t_slot, text, capacity) : CallState{};
}

void mark_reported(size_t slot, uint64_t serial) noexcept {
    if (slot < kSlots) g_slots[slot].reported.store(serial, std::memory_order_relaxed);
}

void set_thread_hook(void (*hook)()) noexcept {
    g_thread_hook.store(hook, std::memory_order_release);
}

}  // namespace tessera
