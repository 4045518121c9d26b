// Calls into plugins: records which call each thread is in, so that a crash report can name it, and converts exceptions
// to errors.
#pragma once

#include <tessera/status.h>

#include <cxxabi.h>

#include <cstddef>
#include <cstdint>
#include <string>

namespace tessera {

// A call of a function of a plugin's table. The strings outlive the call.
struct PluginCall {
    const char* plugin = nullptr;    // "cpu_avx2"
    const char* function = nullptr;  // "plan", "run", "initialize"
    const char* kind = nullptr;   // what the function is a member of, "kernel" or "layout"; nullptr: the plugin itself
    const char* entry = nullptr;  // its name, "matmul.q4_0"
    const char* node = nullptr;   // of the graph; nullptr: none
};

// "plugin NAME: run of kernel NAME at node NAME".
std::string describe(const PluginCall& call);

namespace detail {
struct CallSlot;
}

// While it lives the calling thread is known to be in `call`. Scopes nest. A few stores; the first one of a thread
// takes a slot, which is released when the thread ends. Threads past the number of slots (4096) are not recorded.
class PluginCallScope {
  public:
    explicit PluginCallScope(const PluginCall& call) noexcept;
    ~PluginCallScope();
    PluginCallScope(const PluginCallScope&) = delete;
    PluginCallScope& operator=(const PluginCallScope&) = delete;

  private:
    detail::CallSlot* slot_;
    PluginCall before_;
};

// Throws Error(TSR_INTERNAL) for the exception that is being handled, with what the plugin did.
[[noreturn]] void fail_thrown(const PluginCall& call);
// Throws the Error that the status describes, its message after the description of the call, and destroys the status.
// NULL does nothing.
void check_call(const PluginCall& call, const tsr_status* status);

// Calls a function of a plugin. No exception may cross the ABI: one that does becomes an Error that names the call.
template <typename Function>
auto call_plugin(const PluginCall& call, Function&& function) -> decltype(function()) {
    const PluginCallScope scope(call);
    try {
        return function();
    } catch (abi::__forced_unwind&) {
        throw;  // the thread is being cancelled
    } catch (...) {
        fail_thrown(call);
    }
}

// The same for functions that return a status, which becomes an Error too.
template <typename Function>
void call_checked(const PluginCall& call, Function&& function) {
    check_call(call, call_plugin(call, function));
}

// For applications that report crashes and calls that do not return.

// The contents of a slot. Slots are numbered from 0; any thread, also in a signal handler.
struct CallState {
    uint64_t serial = 0;  // of the call: a number that no other call of the slot has; 0: in no call
    int32_t thread = 0;   // as the system numbers it (gettid)
    bool reported = false;
};
size_t call_slots() noexcept;  // how many have been used yet
// `text` gets the description of the call, ended by NUL, cut at `capacity` bytes.
CallState look_at_call(size_t slot, char* text, size_t capacity) noexcept;
// The same for the calling thread.
CallState look_at_own_call(char* text, size_t capacity) noexcept;
// Marks a call as one that was reported because it does not return.
void mark_reported(size_t slot, uint64_t serial) noexcept;

// Called by each thread before its first call into a plugin, for instance to give it a stack for signals. Set before
// other threads start.
void set_thread_hook(void (*hook)()) noexcept;

}  // namespace tessera
