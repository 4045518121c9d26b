#include "core/run/recordings.hpp"

#include "core/base/error.hpp"
#include "core/base/log.hpp"
#include "core/base/text.hpp"
#include "core/run/work_text.hpp"

#include <algorithm>
#include <set>

namespace tessera {
namespace {

// What the host needs for a launch, assumed.
constexpr double kLaunchSeconds = 5e-6;

// The ranges of a generation step of `rows` rows: one of each sequence, each with an output. Where prompts begin at one
// row (if nothing is computed differently for them, or that is faster), they are rows of prompts.
RowBounds generation(int32_t rows, uint32_t prompt_rows_from) {
    RowBounds bounds;
    bounds.rows[TSR_RANGE_ROWS] = bounds.rows[TSR_RANGE_OUTPUT_ROWS] = rows;
    bounds.rows[prompt_rows_from <= 1 ? TSR_RANGE_PROMPT_ROWS : TSR_RANGE_GENERATION_ROWS] = rows;
    return bounds;
}

bool covers(const RowBounds& bounds, const RowBounds& wanted) {
    return std::ranges::equal(wanted.rows, bounds.rows, [](int32_t want, int32_t have) { return want <= have; });
}

// tools/gpu_acceptance looks for "refuses to record".
void warn_of_refusal(const Plan& plan, DeviceIndex device, const std::string& why) {
    const auto nodes = static_cast<size_t>(
        std::ranges::count_if(plan.nodes, [&](const PlannedNode& node) { return node.device == device; }));
    log().warn(
        "{} refuses to record: in each step of generation the host launches the kernels of its {} one by one, which "
        "takes some {:.2g} ms of a token at an assumed {:g} us each ({})",
        plan.devices[device]->id, counted(nodes, "node"), static_cast<double>(nodes) * kLaunchSeconds * 1e3,
        kLaunchSeconds * 1e6, why);
}

}  // namespace

void Recordings::record(const Plan& plan, const Lanes& lanes, int32_t maximum_rows, const Enqueue& enqueue) {
    const Step& step = plan.step;
    std::set<DeviceIndex> refused;
    std::vector<int32_t> sizes;
    for (int32_t rows = 1; rows < maximum_rows; rows *= 2) sizes.push_back(rows);
    sizes.push_back(maximum_rows);
    for (const int32_t rows : sizes) {
        Bucket bucket{generation(rows, plan.prompt_rows_from),
                      std::vector<tsr_recording>(step.actions.size(), nullptr)};
        for (ActionId id = 0; id < step.actions.size(); ++id) {
            const Action& action = step.actions[id];
            const DeviceIndex index = step.device_of(action);
            if (action.lane == 0 || action.kind != ActionKind::kNodes || refused.contains(index)) continue;
            OpenDevice& device = lanes.device(action.lane);
            if (!device.has_recordings()) continue;
            const tsr_queue queue = lanes.queue(action.lane);
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
                warn_of_refusal(plan, index, why);
            }
        }
        buckets_.push_back(std::move(bucket));
    }
}

RowBounds Recordings::bounds_of(const tsr_range (&ranges)[TSR_RANGE_COUNT]) const {
    RowBounds exact;
    for (int i = 0; i < TSR_RANGE_COUNT; ++i) exact.rows[i] = std::max(ranges[i].end - ranges[i].begin, 0);
    for (const Bucket& bucket : buckets_) {
        if (covers(bucket.bounds, exact)) return bucket.bounds;
    }
    return exact;
}

tsr_recording Recordings::find(ActionId action, const RowBounds& bounds) const {
    for (const Bucket& bucket : buckets_) {
        if (std::ranges::equal(bucket.bounds.rows, bounds.rows)) return bucket.actions[action];
    }
    return nullptr;
}

}  // namespace tessera
