#include "core/plan/predict.hpp"

#include "core/base/error.hpp"
#include "core/graph/needed.hpp"
#include "core/plan/streaming.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>
#include <utility>

namespace tessera {
namespace {

// A node that does less than this is bound by its call.
constexpr double kCallSeconds = 8e-6;

double between(double at_0, double at_1, double share) {
    return at_0 + (at_1 - at_0) * share;
}

// The output with states of all rows, which drafts alone need.
constexpr const char* kRowStates = "row_states";

bool gives_row_states(const Plan& plan) {
    return plan.graph.find_output(kRowStates) != 0;
}

class StepPrediction {
  public:
    StepPrediction(const Plan& plan, uint32_t rows, uint32_t depth, bool prompt, bool states)
        : plan_(plan),
          rows_(rows),
          row_share_(plan.options.max_rows > 1 ? (rows - 1.0) / (plan.options.max_rows - 1.0) : 0),
          depth_share_(plan.options.max_tokens ? std::min(1.0, static_cast<double>(depth) / plan.options.max_tokens)
                                               : 0),
          prompt_(prompt),
          states_(states) {
        for (std::vector<double>* times : {&free_, &free_before_, &sent_}) times->resize(plan.devices.size());
        time_.busy.resize(plan.devices.size());
        const Value logits = plan.graph.find_output("logits");
        if (logits && !states && gives_row_states(plan)) needed_ = storages_needed_by(plan.graph, logits);
    }

    StepTime run() {
        take_step();
        time_.seconds = end_;
        return std::move(time_);
    }

    // Later steps begin on each device when it has done the one before and copies from it have ended, and when one of
    // those under way has ended. Copies to it begin when it has done the one before: they go to the same memory.
    double interval() {
        const size_t slots = plan_.step.slots;
        std::vector<double> ends;
        while (ends.size() <= 4 * slots) {
            at_.clear();
            begin_ = ends.size() < slots ? 0 : ends[ends.size() - slots];
            free_before_ = free_;
            for (size_t device = 0; device < free_.size(); ++device)
                free_[device] = std::max(free_[device], sent_[device]);
            take_step();
            ends.push_back(end_);
        }
        return (ends.back() - ends[2 * slots]) / static_cast<double>(2 * slots);
    }

  private:
    void take_step() {
        end_ = begin_;
        for (uint32_t i = 0; i < plan_.nodes.size(); ++i) {
            const PlannedNode& planned = plan_.nodes[i];
            const Node& node = plan_.graph.nodes()[planned.node];
            const int32_t range = working_range(plan_.graph, node);
            const auto is_needed = [&](Value of) { return of && needed_.contains(plan_.graph.storage_of(of)); };
            if (!needed_.empty() && std::ranges::none_of(node.outputs, is_needed)) continue;
            if (range == TSR_RANGE_PROMPT_ROWS && !prompt_) continue;
            if (range == TSR_RANGE_GENERATION_ROWS && prompt_) continue;
            // Logits are wanted of the last row.
            take(planned, node, range == TSR_RANGE_OUTPUT_ROWS ? 0 : row_share_, streamed(i));
        }
        for (const char* name : {"logits", "hidden"}) wait_for(name);
        if (states_) wait_for(kRowStates);
    }

    // On the host.
    void wait_for(const char* output) {
        if (const Value value = plan_.graph.find_output(output))
            end_ = std::max(end_, ready(plan_.graph.storage_of(value), 0));
    }

    // nullptr: the node is computed where it was planned.
    const StreamedNode* streamed(uint32_t index) const {
        for (const StreamedNode& one : plan_.streamed) {
            if (one.node == index) return rows_ >= one.rows_from ? &one : nullptr;
        }
        return nullptr;
    }

    void take(const PlannedNode& planned, const Node& node, double row_share, const StreamedNode* streamed) {
        const NodeEstimate& e = planned.estimate;
        const double empty = between(e.seconds_one_row, e.seconds_all_rows, row_share);
        const double full = std::max(empty, between(e.seconds_one_row_full, e.seconds_all_rows_full, row_share));
        const double seconds =
            streamed ? streamed_seconds(plan_, *streamed, rows_) : between(empty, full, depth_share_);
        double start = std::max(begin_, free_[planned.device]);
        for (const Value value : node.inputs) {
            if (value) start = std::max(start, ready(plan_.graph.storage_of(value), planned.device));
        }
        for (const Value value : node.outputs) {
            // What writes into a part of a storage needs the rest of it where it is.
            if (value) start = std::max(start, ready(plan_.graph.storage_of(value), planned.device));
        }
        free_[planned.device] = start + seconds;
        end_ = std::max(end_, start + seconds);
        time_.busy[planned.device] += seconds;
        for (const Value value : node.outputs) {
            if (value && is_activation(plan_.graph.storage_of(value)))
                at_[plan_.graph.storage_of(value)] = {{planned.device, start + seconds}};
        }
        if (streamed) {
            time_.copies += seconds;
        } else {
            count(planned, empty, seconds, between(e.bytes_one_row, e.bytes_all_rows, row_share));
        }
    }

    void count(const PlannedNode& planned, double empty, double seconds, double bytes) {
        time_.cached += seconds - empty;
        const double bandwidth = plan_.devices[planned.device]->memory_bandwidth;
        const double reading = bandwidth > 0 ? bytes / bandwidth : 0;
        double& part = reading > 0.5 * empty ? time_.memory : empty < kCallSeconds ? time_.calls : time_.arithmetic;
        part += empty;
    }

    bool is_activation(StorageId id) const { return plan_.graph.storage(id).role == TSR_ROLE_ACTIVATION; }

    // When the storage's contents are on the device, copied there if they are elsewhere. 0 if they are there already.
    double ready(StorageId id, DeviceIndex device) {
        if (!is_activation(id)) return 0;
        auto& copies = at_[id];
        if (copies.empty()) return 0;
        const auto here = std::ranges::find(copies, device, &std::pair<DeviceIndex, double>::first);
        if (here != copies.end()) return here->second;
        const auto [from, since] = copies.front();
        const Storage& storage = plan_.graph.storage(id);
        double bytes = static_cast<double>(storage.bytes);
        if (storage.range == TSR_RANGE_OUTPUT_ROWS) {
            bytes = static_cast<double>(storage.row_bytes);
        } else if (storage.range != TSR_RANGE_FIXED) {
            bytes = std::min(bytes, static_cast<double>(storage.row_bytes) * rows_);
        }
        double seconds = kCopySeconds;
        for (const DeviceIndex end : {from, device}) {
            const double link = end == 0 ? 0 : plan_.devices[end]->link_bandwidth;
            if (link > 0) seconds += bytes / link;
        }
        time_.copies += seconds;
        const double end = std::max(since, free_before_[device]) + seconds;
        copies.emplace_back(device, end);
        sent_[from] = std::max(sent_[from], end);
        return end;
    }

    const Plan& plan_;
    const double rows_, row_share_, depth_share_;
    const bool prompt_, states_;
    double begin_ = 0, end_ = 0;       // of a step
    std::vector<double> free_;         // when each device has done what came before
    std::set<StorageId> needed_;       // by what is predicted; empty: all
    std::vector<double> free_before_;  // when it had done the step before
    std::vector<double> sent_;         // when the last copy from it has ended
    // Devices with the current contents of an activation, and since when; the one that wrote it first.
    std::map<StorageId, std::vector<std::pair<DeviceIndex, double>>> at_;
    StepTime time_;
};

}  // namespace

int32_t working_range(const Graph& graph, const Node& node) {
    for (const Value value : node.outputs) {
        if (value && graph.tensor(value).range != TSR_RANGE_FIXED) return graph.tensor(value).range;
    }
    return node.inputs.empty() || !node.inputs.front() ? TSR_RANGE_FIXED : graph.tensor(node.inputs.front()).range;
}

StepTime step_time(const Plan& plan, uint32_t rows, uint32_t depth, bool prompt, bool states) {
    return StepPrediction(plan, rows, depth, prompt, states).run();
}

double step_interval(const Plan& plan, uint32_t rows, uint32_t depth, bool prompt) {
    if (plan.step.slots == 1 || gives_row_states(plan)) return step_time(plan, rows, depth, prompt, true).seconds;
    return StepPrediction(plan, rows, depth, prompt, false).interval();
}

std::vector<Speed> predict(const Plan& plan) {
    const uint32_t rows = plan.options.max_rows;
    std::vector<Speed> speeds;
    for (const uint32_t depth : {0u, plan.options.max_tokens}) {
        Speed& speed = speeds.emplace_back();
        speed.depth = depth;
        speed.prompt_step = step_time(plan, rows, depth, rows >= plan.prompt_rows_from, true);
        speed.prompt_interval = step_interval(plan, rows, depth, rows >= plan.prompt_rows_from);
        speed.generation_step = step_time(plan, 1, depth, false);
        if (speed.prompt_interval > 0) speed.prompt = rows / speed.prompt_interval;
        if (speed.generation_step.seconds > 0) speed.generation = 1 / speed.generation_step.seconds;
    }
    return speeds;
}

TypicalUse typical_use(const Plan& plan) {
    const uint32_t rows = plan.options.max_rows;
    const auto at = [&](uint32_t depth) {
        return TypicalUse::At{step_time(plan, 1, depth, false).seconds,
                              step_interval(plan, rows, depth, rows >= plan.prompt_rows_from)};
    };
    return {at(0), at(plan.options.max_tokens)};
}

double prompt_seconds(const Plan& plan, const PlannedNode& planned) {
    const int32_t range = working_range(plan.graph, plan.graph.nodes()[planned.node]);
    if (range == TSR_RANGE_GENERATION_ROWS) return 0;
    const NodeEstimate& e = planned.estimate;
    const bool one_row = range == TSR_RANGE_OUTPUT_ROWS;
    const double empty = one_row ? e.seconds_one_row : e.seconds_all_rows;
    const double full = one_row ? e.seconds_one_row_full : e.seconds_all_rows_full;
    return between(empty, std::max(empty, full), 0.5);
}

namespace {

// Whether some nodes compute only rows of generation, as those of absorbed attention do.
bool has_generation_rows(const Plan& plan) {
    return std::ranges::any_of(plan.nodes, [&](const PlannedNode& planned) {
        return working_range(plan.graph, plan.graph.nodes()[planned.node]) == TSR_RANGE_GENERATION_ROWS;
    });
}

}  // namespace

uint32_t rows_of_a_prompt(const Plan& plan) {
    const uint32_t most = plan.options.max_rows, depth = plan.options.max_tokens / 2;
    // Nodes of both ranges run in none of the two and cancel out.
    const auto seconds = [&](uint32_t rows, bool prompt) {
        double sum = 0;
        for (const double busy : step_time(plan, rows, depth, prompt).busy) sum += busy;
        return sum;
    };
    const double prompt_one = seconds(1, true), prompt_all = seconds(most, true);
    const double generation_one = seconds(1, false), generation_all = seconds(most, false);
    // Single rows and drafts never are a prompt where they have a path of their own: an estimate by a memory speed that
    // was measured in a bad moment would have each token expand all cached ones.
    if (prompt_one <= generation_one) return has_generation_rows(plan) ? std::min(most, kRowsAsSingle) + 1 : 1;
    if (most == 1 || prompt_all >= generation_all) return most + 1;
    const double gain_one = prompt_one - generation_one;  // falls to a negative number, in a straight line
    const double gain_all = prompt_all - generation_all;
    return 1 + static_cast<uint32_t>(std::ceil(gain_one / (gain_one - gain_all) * (most - 1)));
}

std::string bound_text(const Plan& plan, const StepTime& time, double seconds) {
    const std::array<std::pair<const char*, double>, 5> parts{{{"memory", time.memory},
                                                               {"arithmetic", time.arithmetic},
                                                               {"attention to the cache", time.cached},
                                                               {"calls", time.calls},
                                                               {"copies", time.copies}}};
    double all = 0;
    for (const auto& [name, part] : parts) all += part;
    if (all <= 0) return "nothing";
    const auto& most = *std::ranges::max_element(parts, {}, &std::pair<const char*, double>::second);
    const auto busiest = static_cast<size_t>(std::ranges::max_element(time.busy) - time.busy.begin());
    return fmt::format("{} {:.0f} %; {} busy {:.0f} %", most.first, 100 * most.second / all, plan.devices[busiest]->id,
                       100 * std::min(1.0, time.busy[busiest] / seconds));
}

}  // namespace tessera
