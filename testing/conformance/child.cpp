#include "child.hpp"

#include "device_check.hpp"
#include "memory.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <memory>

namespace tessera::conformance {
namespace {

class Reporter {
  public:
    Reporter(const Setting& setting, size_t first, int descriptor)
        : setting_(setting), first_(first), descriptor_(descriptor) {
        report_faults_to(descriptor);
    }

    // Runs a check if it is wanted and its number, among those that are, is not below the first.
    template <typename Check>
    void run(const std::string& name, Check&& check) {
        const auto is_part = [&](const std::string& text) { return name.find(text) != std::string::npos; };
        if (!setting_.cases.empty() && std::ranges::none_of(setting_.cases, is_part)) return;
        if (next_++ < first_ || stopped_) return;
        line("begin", name);
        const Verdict verdict = check();
        constexpr const char* kWords[] = {"pass", "fail", "skip"};
        line(verdict.lost ? "lost" : kWords[verdict.kind], verdict.text);
        stopped_ = verdict.lost;  // another process goes on, if it can open the device
    }
    // Whether cases can run on the device at all.
    bool can_open(const tsr_device_provider& provider, const tsr_device_info& device) {
        const std::string why = why_not_opened(provider, device);
        if (!why.empty()) line("gone", why);
        return why.empty();
    }
    void end() {
        if (!stopped_) line("end", "");
    }

  private:
    void line(const char* word, const std::string& text) {
        std::string all = std::string(word) + '\t' + text;
        std::ranges::replace(all, '\n', ' ');
        all += '\n';
        for (size_t at = 0; at < all.size();) {
            const ssize_t written = write(descriptor_, all.data() + at, all.size() - at);
            if (written <= 0) return;  // nobody listens any more
            at += static_cast<size_t>(written);
        }
    }
    const Setting& setting_;
    size_t first_, next_ = 0;
    int descriptor_;
    bool stopped_ = false;
};

const tsr_device_provider& provider_of(const Setting& setting, uint32_t index) {
    return *(setting.owner ? setting.owner : setting.plugin)->providers[index];
}

void cases_of(const Setting& setting, const std::string& op, const std::function<void(Case&)>& use) {
    if (setting.shapes.empty()) {
        for_each_case(op, use);
    } else {
        for_each_shape_case(op, setting.shapes, use);
    }
}

bool is_matched(const tsr_device_provider& provider, const tsr_device_info& info) {
    char reason[TSR_REASON_BYTES] = "";
    return provider.match(&provider, &info, reason, sizeof reason) == 1;
}

}  // namespace

void run_kernel_cases(const Setting& setting, const std::string& kernel, size_t first, int descriptor) {
    Reporter reporter(setting, first, descriptor);
    for (uint32_t i = 0; i < setting.plugin->kernel_count; ++i) {
        const tsr_kernel& found = *setting.plugin->kernels[i];
        if (kernel != found.name || std::strcmp(found.device_kind, "cpu") != 0) continue;
        cases_of(setting, found.op,
                 [&](Case& c) { reporter.run(c.name, [&] { return check_kernel(setting, found, c); }); });
    }
    reporter.end();
}

void run_kernel_times(const Setting& setting, const std::string& kernel, size_t first, int descriptor) {
    Reporter reporter(setting, first, descriptor);
    for (uint32_t i = 0; i < setting.plugin->kernel_count; ++i) {
        const tsr_kernel& found = *setting.plugin->kernels[i];
        if (kernel != found.name || std::strcmp(found.device_kind, "cpu") != 0) continue;
        cases_of(setting, found.op,
                 [&](Case& c) { reporter.run(c.name, [&] { return time_kernel(setting, found, c); }); });
    }
    reporter.end();
}

void run_layout_cases(const Setting& setting, size_t first, int descriptor) {
    Reporter reporter(setting, first, descriptor);
    for (uint32_t i = 0; i < setting.plugin->layout_count; ++i) {
        const tsr_layout& layout = *setting.plugin->layouts[i];
        reporter.run(layout.name, [&] { return check_layout(layout); });
    }
    reporter.end();
}

void run_device_cases(const Setting& setting, uint32_t index, const tsr_device_info& device,
                      const tsr_device_info& peer, size_t first, int descriptor) {
    Reporter reporter(setting, first, descriptor);
    const tsr_device_provider& provider = provider_of(setting, index);
    if (!reporter.can_open(provider, device)) return;
    if (!setting.owner) {
        for (const DeviceCheck& check : device_checks()) {
            reporter.run(check.name, [&] {
                return check_device(provider, device, is_matched(provider, peer) ? peer : device, check);
            });
        }
    }
    for (uint32_t i = 0; i < setting.plugin->layout_count; ++i) {
        const tsr_layout& layout = *setting.plugin->layouts[i];
        const bool converts = layout.device_abi == TSR_DEVICE_ABI && (layout.enqueue_pack || layout.enqueue_unpack) &&
                              layout.interop && std::strcmp(layout.interop, provider.interop) == 0;
        if (!converts) continue;
        reporter.run(std::string("layout ") + layout.name,
                     [&] { return check_device_layout(provider, device, layout); });
    }
    reporter.end();
}

void run_device_kernel_cases(const Setting& setting, uint32_t index, const tsr_device_info& device,
                             const std::string& kernel, size_t first, int descriptor) {
    Reporter reporter(setting, first, descriptor);
    const tsr_device_provider& provider = provider_of(setting, index);
    if (!reporter.can_open(provider, device)) return;
    // Each case opens the device for itself. That one is open all the time keeps what the driver makes for the first.
    std::shared_ptr<const void> kept;
    for (uint32_t i = 0; i < setting.plugin->kernel_count; ++i) {
        const tsr_kernel& found = *setting.plugin->kernels[i];
        if (kernel != found.name || std::strcmp(found.device_kind, provider.kind) != 0 || !found.interop ||
            std::strcmp(found.interop, provider.interop) != 0)
            continue;
        cases_of(setting, found.op, [&](Case& c) {
            reporter.run(c.name, [&] {
                if (!kept) kept = keep_open(provider, device);
                const Verdict verdict = check_device_kernel(setting, provider, device, found, c);
                if (verdict.kind == Verdict::kFailed) kept.reset();  // the next case gets what a first one would
                return verdict;
            });
        });
    }
    reporter.end();
}

}  // namespace tessera::conformance
