// Times a plugin's kernels on one card, through the C ABI alone.
#pragma once

#include "../card.hpp"
#include "described.hpp"
#include "kernels/cuda/card_constants.hpp"

#include <tessera/plugin.h>

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tessera::test {

// How much is measured.
struct Scale {
    bool small = false;         // for emulated cards: few rows and short contexts, each kernel once
    bool tensor_cores = true;   // the plugin's kernels use them
    bool plan_only = false;     // nothing runs: what the plugin's plans say
    bool only_offered = false;  // nothing is said of ops that the plugin has no kernels for
    int64_t matrix_bytes;       // of a weight that products of few rows read: four times the second-level cache
    int64_t content_bytes;      // of memory full of numbers, from which operands are taken in turn
    double seconds = 1e9;       // after which nothing more is measured
    std::string what;           // regular expression that descriptions of what is measured contain
};

// Which estimate of a plan the measured time is compared with.
enum class Depth { kEmpty, kFull };

struct Measured {
    const tsr_kernel* kernel = nullptr;
    std::string variant;  // what the kernel's plan says of itself
    double seconds = 0;   // of a call
    double estimated_seconds = 0;
    uint64_t workspace_bytes = 0;
};

class Bench {
  public:
    // `plugin`, `info` outlive it. Throws sdk::Failure.
    Bench(const tsr_plugin& plugin, const tsr_device_info& info, const Scale& scale);
    ~Bench();
    Bench(const Bench&) = delete;
    Bench& operator=(const Bench&) = delete;

    const Scale& scale() const noexcept { return scale_; }
    const tsr_device_info& info() const noexcept { return info_; }
    Card& card() noexcept { return card_; }
    // Seconds of one call of `body`, which puts work on the card's queue and may be recorded: the median over replays
    // of a recording of several calls.
    double seconds(const std::function<void()>& body);
    // Memory of the card until `forget`. Throws sdk::Failure.
    void* allocate(int64_t bytes);
    void forget();
    // The next part of the memory full of numbers; throws sdk::Failure for more than all of it.
    void* numbers(int64_t bytes);

    // Times the plugin's first kernel that claims the node for `rows` rows of one step, of sequences of at most
    // `tokens` tokens; nothing, with `refusal`, if none does.
    std::optional<Measured> measure(Described& described, int64_t rows, int64_t tokens, Depth depth,
                                    std::string& refusal);

    // Whether one of the plugin's kernels claims the node; `refusal` says why not.
    bool claims(Described& described, std::string& refusal) const;

    // A line of the result: one JSON object.
    struct Row {
        std::string topic, what, type;
        int64_t rows = 0;
        double bytes = 0;       // that have to be read and written at least
        double operations = 0;  // multiplications and additions
        std::string unit;       // whose rate bounds it: "read" (of memory), "f16", "s8", "dp4a", "f32"
    };
    // Measures and prints it, or why it was not measured. Throws sdk::Failure if the card is lost.
    void report(const Row& row, Described& described, int64_t tokens, Depth depth);
    void report_rate(std::string_view unit, double a_second);
    // `assumed`: what plans take for it; nullptr: nothing.
    void report_latency(std::string_view what, double seconds, const cuda_ops::CardConstant* assumed);
    bool out_of_time() const;
    // Whether a kernel failed at what it had claimed.
    bool failed() const noexcept { return failed_; }

  private:
    tsr_device& device() { return card_.device(); }
    void check_size(int64_t bytes) const;
    bool offers(const char* op) const;
    // The first kernel that claims the node, and its plan; nullptr, with `refusal`, if none does.
    const tsr_kernel* find_kernel(const tsr_node& node, tsr_kernel_plan& plan, std::string& refusal) const;
    // Layouts that the plan asks for, where the plugin brings them; canonical ones else.
    void choose_layouts(Described& described, const tsr_kernel_plan& plan) const;
    int64_t stored_bytes(const tsr_tensor& tensor) const;

    const tsr_plugin& plugin_;
    const tsr_device_info& info_;
    Scale scale_;
    Card card_;
    tsr_event begin_ = nullptr, end_ = nullptr;
    char* content_ = nullptr;
    int64_t next_ = 0;
    bool failed_ = false;
    std::vector<void*> memory_;
    std::chrono::steady_clock::time_point started_ = std::chrono::steady_clock::now();
};

}  // namespace tessera::test
