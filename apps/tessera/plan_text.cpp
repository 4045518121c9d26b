#include "apps/tessera/plan_text.hpp"

#include "apps/wording/wording.hpp"
#include "core/base/text.hpp"
#include "core/graph/types.hpp"
#include "core/plan/fit.hpp"
#include "core/plan/predict.hpp"
#include "core/setup/assumed_constants.hpp"
#include "core/setup/plan_lines.hpp"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

namespace tessera::app {
namespace {

// A text that speaks of one layer, fit to be compared with that of another: "blk.3." is taken out.
std::string without_layer(std::string text, int layer) {
    if (layer < 0) return text;
    const std::string prefix = fmt::format("blk.{}.", layer);
    for (size_t at; (at = text.find(prefix)) != std::string::npos;) text.erase(at, prefix.size());
    return text;
}

class LayerTexts {
  public:
    LayerTexts(const PlanReport& report, bool why) : report_(report), plan_(report.planned.plan), why_(why) {}

    std::string text() {
        std::map<int, std::vector<const PlannedNode*>> nodes;
        // What belongs to no layer stands before the first or after the last.
        const auto last_layer = static_cast<int>(report_.planned.info.layers) - 1;
        bool seen_layer = false;
        for (const PlannedNode& node : plan_.nodes) {
            const int number = layer(node);
            seen_layer |= number >= 0;
            nodes[number >= 0 ? std::min(number, last_layer + 1) : seen_layer ? last_layer + 1 : -1].push_back(&node);
        }
        std::string text;
        std::string pending;
        int first = 0, last = 0;
        const auto flush = [&] {
            if (pending.empty()) return;
            const std::string title = first < 0            ? "before the layers"
                                      : first > last_layer ? "after the layers"
                                      : first == last      ? fmt::format("layer {}", first)
                                                           : fmt::format("layers {}-{}", first, last);
            text += title + pending;
        };
        for (const auto& [number, list] : nodes) {
            std::string block = describe(number > last_layer ? -1 : number, list);
            if (block == pending && number == last + 1 && number <= last_layer) {
                last = number;
                continue;
            }
            flush();
            pending = std::move(block);
            first = last = number;
        }
        flush();
        return text;
    }

  private:
    int layer(const PlannedNode& node) const { return plan_.graph.nodes()[node.node].layer; }

    std::string describe(int number, const std::vector<const PlannedNode*>& list) const {
        std::vector<std::string> devices;
        for (const PlannedNode* node : list) {
            const std::string id = plan_.devices[node->device]->id;
            if (std::ranges::find(devices, id) == devices.end()) devices.push_back(id);
        }
        std::string text = fmt::format(" on {}", joined(devices, ", "));
        double one = 0, all = 0;
        for (const PlannedNode* node : list) {
            one += node->estimate.seconds_one_row;
            all += node->estimate.seconds_all_rows;
        }
        if (why_)
            text += fmt::format(" (estimated {:.3g} ms for one row, {:.3g} ms for {})", one * 1e3, all * 1e3,
                                plan_.options.max_rows);
        text += '\n';
        for (const LoweringChoice& choice : plan_.lowerings) {
            if (choice.layer == number && number >= 0) text += lowering(choice);
        }
        text += kernels(number, list, devices.size() > 1);
        return text;
    }

    std::string lowering(const LoweringChoice& choice) const {
        // How fused ops are split shows in the kernels; abstract ops have a choice of lowerings.
        const bool parts = is_without_choice(choice);
        if (parts && !why_) return "";
        const std::string how =
            choice.op + (choice.plugin.empty() ? " by one kernel"
                         : parts               ? " in its parts"
                                               : fmt::format(": variant {} of {}", choice.lowering, choice.plugin));
        const std::string reason = choice.asked       ? "asked for"
                                   : choice.preferred ? "its plugin comes first in plugins.prefer"
                                   : parts            ? "faster, by estimate"
                                                      : "the fastest, by estimate";
        std::string text = fmt::format("  {:<18} ", without_layer(choice.node, choice.layer));
        text += wrapped(fmt::format("{} ({})", how, reason), text.size(), 21) + '\n';
        if (why_ && !choice.summary.empty()) text += fmt::format("  {:<18}   that is: {}\n", "", choice.summary);
        for (const Rejection& rejected : choice.rejected) {
            // That no single kernel computes an abstract op is how it is meant.
            if (!why_ && (rejected.is_possible || rejected.candidate == "one kernel")) continue;
            text += not_taken(rejected, choice.layer);
        }
        return text;
    }

    static std::string not_taken(const Rejection& rejected, int layer) {
        const std::string line = fmt::format("not {}: {}", rejected.candidate, without_layer(rejected.reason, layer));
        return fmt::format("{:23}{}\n", "", wrapped(line, 23, 25));
    }

    std::string kernels(int number, const std::vector<const PlannedNode*>& list, bool several_devices) const {
        struct Line {
            std::string head;
            std::vector<std::string> names, variants;
            const PlannedNode* first;
        };
        std::vector<Line> lines;
        for (const PlannedNode* node : list) {
            const Node& what = plan_.graph.nodes()[node->node];
            const std::string kernel =
                fmt::format("{}: {}", report_.registry.owner(*node->kernel).manifest.name, node->kernel->name);
            std::string head = several_devices
                                   ? fmt::format("  {:<18} {:<8} {}", what.op, plan_.devices[node->device]->id, kernel)
                                   : fmt::format("  {:<18} {}", what.op, kernel);
            auto at = std::ranges::find(lines, head, &Line::head);
            if (at == lines.end()) at = lines.insert(at, {std::move(head), {}, {}, node});
            at->names.push_back(without_layer(what.name, number));
            if (!node->variant.empty() && std::ranges::find(at->variants, node->variant) == at->variants.end())
                at->variants.push_back(node->variant);
        }
        std::string text;
        for (const Line& line : lines) {
            text += fmt::format("{}\n      {}\n", line.head, wrapped(joined(line.names, ", "), 6, 6));
            if (!why_) continue;
            for (const std::string& variant : line.variants) {
                text += fmt::format("{:23}{}\n", "", wrapped("as " + variant, 23, 25));
            }
            for (const Rejection& rejected : line.first->rejected) {
                text += not_taken(rejected, number);
            }
        }
        return text;
    }

    const PlanReport& report_;
    const Plan& plan_;
    bool why_;
};

std::string head_text(const PlanReport& report) {
    const ModelInfo& info = report.planned.info;
    const ScheduleOptions& options = report.planned.plan.options;
    const auto line = [](std::string_view name, const std::string& value) {
        return fmt::format("{:<11}{}\n", name, wrapped(value, 11, 11));
    };
    std::string text = line("model", fmt::format("{}{}{}, {}, {} weights, {}", report.path,
                                                 info.name.empty() ? "" : ": ", printable(info.name), info.architecture,
                                                 grouped(report.sizes.weights), size_text(report.sizes.bytes)));
    text += line("machine", report.machine.empty() ? "this one" : report.machine);
    text += line("context", fmt::format("{} tokens for {}, cached as {}", report.planned.context,
                                        counted(options.max_sequences, "sequence"), cache_types(report.planned.plan)));
    if (const std::string further = further_pages(report.planned.plan); !further.empty()) text += line("", further);
    text +=
        line("steps", fmt::format("at most {} rows; attention scratch at most {}", options.max_rows,
                                  options.scratch_bytes >> 40 ? "what it needs" : size_text(options.scratch_bytes)));
    text += '\n';
    return text;
}

std::string fit_text(const PlanReport& report) {
    const Plan& plan = report.planned.plan;
    std::string text;
    const std::vector<Excess> excesses = excess_of(plan);
    for (const Excess& excess : excesses)
        text += "does not fit: " + wrapped(worded(misfit(plan, excess.device).value_or(Notice())), 14, 2) + '\n';
    if (excesses.empty()) text += "fits\n";
    if (const uint64_t bytes = mapped_excess(plan); bytes && excesses.empty()) {
        text += wrapped(fmt::format("mapped weights are {} more than the memory left: they will be read from the disk "
                                    "again and again",
                                    size_text(bytes)),
                        0, 2) +
                '\n';
    }
    if (report.largest_context == 0) {
        const bool weights = std::ranges::any_of(excesses, [&](const Excess& excess) {
            return plan.memory[excess.device].weights > usable_bytes(plan.devices, excess.device);
        });
        text += weights ? "the weights alone do not fit\n" : "not even the smallest context fits\n";
    } else {
        const bool model = report.largest_context >= report.planned.info.context;
        text += fmt::format("largest context that fits: {} tokens{}\n", report.largest_context,
                            model ? " (what the model was made for)" : "");
    }
    if (const uint64_t least = minimum_scratch(plan)) {
        text += fmt::format("smallest possible -amb: {} MiB\n", (least + (1 << 20) - 1) >> 20);
    }
    return text;
}

std::string speed_text(const Plan& plan, const std::vector<Speed>& speeds) {
    std::string text = fmt::format("{:<23} {:>10}   bound by\n", "predicted", "tokens/s");
    const auto line = [&](const char* what, uint32_t depth, double speed, const StepTime& step, double seconds) {
        const std::string cached = depth ? grouped(depth) : "nothing";
        text += fmt::format("{:<23} {:>10.4g}   {}\n", fmt::format("{}, {} cached", what, cached), speed,
                            bound_text(plan, step, seconds));
    };
    for (const Speed& speed : speeds) {
        line("prompt", speed.depth, speed.prompt, speed.prompt_step, speed.prompt_interval);
        line("token", speed.depth, speed.generation, speed.generation_step, speed.generation_step.seconds);
        if (plan.devices.size() < 2) continue;
        for (DeviceIndex device = 0; device < plan.devices.size(); ++device) {
            const double prompt = speed.prompt_step.busy[device], token = speed.generation_step.busy[device];
            if (prompt <= 0 && token <= 0) continue;
            text += fmt::format("  {:<12} {:>8.4g} ms of a step of {} rows, {:.4g} ms of a token\n",
                                plan.devices[device]->id, 1e3 * prompt, plan.options.max_rows, 1e3 * token);
        }
    }
    return text;
}

// The prediction with nothing cached as earlier runs correct it.
std::string earlier_text(const PlanReport& report, const Speed& empty) {
    std::vector<std::string> parts;
    const auto add = [&](std::string_view what, const EarlierRatio& earlier, double predicted) {
        if (earlier.runs == 0) return;
        parts.push_back(
            fmt::format("{:.2f} of the speed predicted for {} ({}), so expect {:.4g} tokens/s with nothing "
                        "cached",
                        earlier.ratio, what, counted(earlier.runs, "run"), earlier.ratio * predicted));
    };
    add("prompts", report.earlier.prompts, empty.prompt);
    add("tokens", report.earlier.generation, empty.generation);
    return parts.empty() ? "" : wrapped("earlier runs here reached " + joined(parts, ", and "), 0, 2) + '\n';
}

std::string memory_text(const Plan& plan) {
    constexpr uint64_t DeviceMemory::*members[] = {&DeviceMemory::weights,     &DeviceMemory::cache,
                                                   &DeviceMemory::activations, &DeviceMemory::workspace,
                                                   &DeviceMemory::staging,     &DeviceMemory::loading};
    // One unit for all, so that they can be compared.
    uint64_t largest = 0;
    for (DeviceIndex device = 0; device < plan.devices.size(); ++device) {
        const DeviceMemory& memory = plan.memory[device];
        largest = std::max({largest, memory.allocated(), memory.mapped, usable_bytes(plan.devices, device)});
    }
    const bool large = largest >= uint64_t{10} << 30;
    std::string text =
        fmt::format("{:<6}{:>8}{:>8}{:>8}{:>8}{:>8}{:>8}{:>8}{:>10}{:>8}\n", large ? "GiB" : "MiB", "weights", "cache",
                    "compute", "work", "staging", "loading", "total", "available", "mapped");
    const auto size = [&](uint64_t bytes) {
        return fmt::format("{:.{}f}", static_cast<double>(bytes) / (large ? 1 << 30 : 1 << 20), large ? 2 : 1);
    };
    for (DeviceIndex device = 0; device < plan.devices.size(); ++device) {
        const DeviceMemory& memory = plan.memory[device];
        text += fmt::format("{:<6}", plan.devices[device]->id);
        for (const auto member : members) {
            // Both are buffers for copies.
            const uint64_t streaming = member == &DeviceMemory::staging ? memory.streaming : 0;
            text += fmt::format("{:>8}", size(memory.*member + streaming));
        }
        text += fmt::format("{:>8}{:>10}{:>8}\n", size(memory.allocated()), size(usable_bytes(plan.devices, device)),
                            size(memory.mapped));
    }
    // Cards of one kind are one line, parts of a card one entry of it.
    std::map<uint64_t, std::vector<std::string>> contexts;
    for (DeviceIndex device = 0; device < plan.devices.size(); ++device) {
        std::vector<std::string> parts;
        uint64_t bytes = 0, used = 0;
        for (DeviceIndex part = 0; part < plan.devices.size(); ++part) {
            if (!on_one_card(*plan.devices[part], *plan.devices[device])) continue;
            parts.emplace_back(plan.devices[part]->id);
            bytes += context_bytes(plan.devices, part);
            used += plan.memory[part].allocated();
        }
        if (bytes == 0 || used == 0 || parts.front() != plan.devices[device]->id) continue;
        contexts[bytes].push_back(joined(parts, " and ") + (parts.size() > 1 ? " together" : ""));
    }
    for (const std::string& line : cache_group_lines(plan)) text += wrapped(line, 0, 2) + '\n';
    for (const auto& [bytes, ids] : contexts) {
        text += wrapped(fmt::format("left beside that for the driver's context and code: {} of {}{}", size_text(bytes),
                                    ids.size() > 1 ? "each of " : "", joined(ids, ", ")),
                        0, 2) +
                '\n';
    }
    return text;
}

// Which weights are packed for devices, by whom, and through what memory.
std::string packing_text(const Plan& plan) {
    struct Amount {
        size_t count = 0;
        uint64_t bytes = 0;
    };
    std::map<std::pair<DeviceIndex, PackedOn>, Amount> amounts;
    for (const Instance& instance : plan.instances) {
        if (instance.device == 0 || instance.packed_on == PackedOn::kNowhere) continue;
        Amount& amount = amounts[{instance.device, instance.packed_on}];
        ++amount.count;
        amount.bytes += instance.bytes;
    }
    std::string text;
    for (const auto& [key, amount] : amounts) {
        const auto& [device, on] = key;
        const DeviceMemory& memory = plan.memory[device];
        std::string line = fmt::format("{} ({}) packed for {} while loading, ", counted(amount.count, "weight"),
                                       size_text(amount.bytes), plan.devices[device]->id);
        if (on == PackedOn::kHost) {
            line += fmt::format("on the CPU, through {}", size_text(plan.loading.packed));
        } else {
            line += fmt::format("there, through {}{}", size_text(memory.packing),
                                memory.loading > 0 ? "" : " of what steps use later");
        }
        text += wrapped(line, 0, 2) + '\n';
    }
    return text;
}

// Which weights init nodes make, and where.
std::string init_text(const Plan& plan) {
    std::map<DeviceIndex, std::pair<size_t, uint64_t>> made;
    for (const PlannedNode& planned : plan.init_nodes) {
        auto& [count, bytes] = made[planned.device];
        for (const Value result : plan.graph.nodes()[planned.node].outputs) {
            ++count;
            bytes += plan.graph.storage(plan.graph.storage_of(result)).bytes;
        }
    }
    std::string text;
    for (const auto& [device, amount] : made) {
        text += wrapped(fmt::format("{} ({}) made from others while loading, on {}", counted(amount.first, "weight"),
                                    size_text(amount.second), plan.devices[device]->id),
                        0, 2) +
                '\n';
    }
    return text;
}

}  // namespace

std::string plan_text(const PlanReport& report, bool why) {
    const Plan& plan = report.planned.plan;
    std::string text = head_text(report) + memory_text(plan) + '\n' + fit_text(report) + '\n';
    const std::vector<Speed> speeds = predict(plan);
    text += speed_text(plan, speeds) + earlier_text(report, speeds.front());
    if (const std::string assumed = assumed_line(report); !assumed.empty()) text += wrapped(assumed, 0, 2) + '\n';
    text += '\n';
    text += LayerTexts(report, why).text();
    size_t copies = 0, runs = 0;
    uint64_t bytes = 0;
    for (const Action& action : plan.step.actions) {
        runs += action.kind == ActionKind::kNodes ? 1 : 0;
        // A copy that goes on from the host to another device counts once.
        if (action.maximum_bytes == 0 || action.peer != 0) continue;
        ++copies;
        bytes += action.maximum_bytes;
    }
    text += fmt::format("\n{} in {}", counted(plan.nodes.size(), "node"), counted(runs, "run"));
    if (copies)
        text +=
            fmt::format(", {} between devices in a step ({} at most)", counted(copies, "transfer"), size_text(bytes));
    if (plan.step.slots > 1) text += fmt::format(", up to {} steps of a prompt under way", plan.step.slots);
    text += '\n';
    text += init_text(plan);
    text += packing_text(plan);
    for (const std::string& line : streaming_lines(plan)) text += wrapped(line, 0, 2) + '\n';
    std::map<std::string, std::pair<size_t, uint64_t>> extra;
    for (const Instance& instance : plan.instances) {
        if (instance.why_copy.empty()) continue;
        auto& [count, sum] = extra[instance.why_copy];
        ++count;
        sum += instance.bytes;
    }
    for (const auto& [reason, amount] : extra) {
        text += wrapped(fmt::format("{} kept a second time ({}): {}", counted(amount.first, "weight"),
                                    size_text(amount.second), reason),
                        0, 2) +
                '\n';
    }
    if (!plan.rules.empty()) text += "\nflags that place the weights so:\n";
    for (const std::string& rule : plan.rules) text += fmt::format("  -ot '{}'\n", rule);
    const std::vector<std::string>& of_file = report.planned.file_notes;
    const std::vector<Notice>& of_options = report.planned.notices;
    if (!plan.notes.empty() || !of_file.empty() || !of_options.empty()) text += "\nnotes:\n";
    for (const auto& notes : {of_file, plan.notes}) {
        for (const std::string& note : notes) text += "  " + wrapped(note, 2, 4) + '\n';
    }
    for (const Notice& notice : of_options) text += "  " + wrapped(worded(notice), 2, 4) + '\n';
    return text;
}

}  // namespace tessera::app
