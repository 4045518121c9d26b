#include "core/run/recordings.hpp"

#include "core/base/error.hpp"
#include "core/base/log.hpp"
#include "core/base/text.hpp"
#include "core/registry/estimate_constants.hpp"
#include "core/run/work_text.hpp"

#include <algorithm>
#include <map>
#include <set>

namespace tessera {
namespace {

// Sequences of up to so many tokens have recordings of their own: kernels of attention launch less for them.
constexpr int64_t kShortTokens = 4096;

// A generation step of `rows` rows: one of each sequence, each with an output. Where prompts begin at one row (if
// nothing is computed differently for them, or that is faster), they are rows of prompts.
StepBounds generation(int32_t rows, int64_t tokens, const Plan& plan) {
    int32_t of_ranges[TSR_RANGE_COUNT] = {};
    of_ranges[TSR_RANGE_ROWS] = of_ranges[TSR_RANGE_OUTPUT_ROWS] = rows;
    of_ranges[plan.prompt_rows_from <= 1 ? TSR_RANGE_PROMPT_ROWS : TSR_RANGE_GENERATION_ROWS] = rows;
    return StepBounds::of_rows(of_ranges, tokens, plan.options.max_sequences);
}

// Microseconds from one kernel of a plugin to the next that the host launches, as its estimates take it; 0: it does not
// say.
double launch_microseconds(const PluginRecord& plugin, const tsr_device_info& device) {
    for (const EstimateConstant& constant : estimate_constants(plugin, device)) {
        if (constant.name == "launch" && constant.unit == "us") return constant.value;
    }
    return 0;
}

// tools/gpu_acceptance looks for "refuses to record".
void warn_of_refusal(const Plan& plan, const Registry& registry, DeviceIndex device, const std::string& why) {
    size_t nodes = 0;
    double milliseconds = 0;
    std::map<const PluginRecord*, double> launches;
    for (const PlannedNode& node : plan.nodes) {
        if (node.device != device) continue;
        const PluginRecord& plugin = registry.owner(*node.kernel);
        const auto [launch, is_new] = launches.try_emplace(&plugin, 0);
        if (is_new) launch->second = launch_microseconds(plugin, *plan.devices[device]);
        ++nodes;
        milliseconds += launch->second * 1e-3;
    }
    log().warn(
        "{} refuses to record: in each step of generation the host launches the kernels of its {} one by one{} ({})",
        plan.devices[device]->id, counted(nodes, "node"),
        milliseconds > 0
            ? fmt::format(", which takes {:.2g} ms of a token or more by what plans take of a launch", milliseconds)
            : "",
        why);
}

}  // namespace

void Recordings::record(const Plan& plan, const Registry& registry, const Tracks& tracks, int32_t maximum_rows,
                        const Enqueue& enqueue) {
    const Step& step = plan.step;
    std::set<DeviceIndex> refused;
    std::vector<StepBounds> sizes;
    const auto add = [&](int32_t rows) {
        const int64_t most = plan.options.max_tokens;
        if (most > kShortTokens) sizes.push_back(generation(rows, kShortTokens, plan));
        sizes.push_back(generation(rows, most, plan));
    };
    for (int32_t rows = 1; rows < maximum_rows; rows *= 2) add(rows);
    add(maximum_rows);
    for (const StepBounds& bounds : sizes) {
        Bucket bucket{bounds, std::vector<tsr_recording>(step.actions.size(), nullptr)};
        for (ActionId id = 0; id < step.actions.size(); ++id) {
            const Action& action = step.actions[id];
            const DeviceIndex index = step.device_of(action);
            if (action.track == 0 || action.kind != ActionKind::kNodes || refused.contains(index)) continue;
            OpenDevice& device = tracks.device(action.track);
            if (!device.has_recordings()) continue;
            const tsr_queue queue = tracks.queue(action.track);
            try {
                device.begin_recording(queue);
                try {
                    enqueue(id, bucket.bounds);
                } catch (...) {
                    device.discard_recording(queue);
                    throw;
                }
                bucket.actions[id] = device.end_recording(queue);
            } catch (const Error& error) {
                const std::string why =
                    fmt::format("recording {}: {}", nodes_text(plan, action.first, action.count), error.what());
                if (error.code() == TSR_DEVICE_LOST) fail(error.code(), "{}", why);
                refused.insert(index);
                warn_of_refusal(plan, registry, index, why);
            }
        }
        buckets_.push_back(std::move(bucket));
    }
}

StepBounds Recordings::bounds_of(const StepBounds& step) const {
    const auto found = std::ranges::find_if(buckets_, [&](const Bucket& one) { return one.bounds.covers(step); });
    return found == buckets_.end() ? step : found->bounds;
}

tsr_recording Recordings::find(ActionId action, const StepBounds& bounds) const {
    const auto found = std::ranges::find(buckets_, bounds, &Bucket::bounds);
    return found == buckets_.end() ? nullptr : found->actions[action];
}

}  // namespace tessera
