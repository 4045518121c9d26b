#include "apps/tessera/commands.hpp"
#include "apps/tessera/output.hpp"
#include "apps/tessera/read_settings.hpp"
#include "apps/wording/wording.hpp"
#include "core/base/error.hpp"
#include "core/base/text.hpp"
#include "core/gguf/value.hpp"
#include "core/graph/types.hpp"
#include "core/setup/machine.hpp"
#include "core/setup/model_check.hpp"
#include "core/setup/model_sizes.hpp"
#include "core/text/tokenizer.hpp"
#include "core/text/vocabulary_from_gguf.hpp"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <map>
#include <tuple>

namespace tessera::app {
namespace {

constexpr size_t kColumns = 80, kDots = 3;
constexpr size_t kShortest = 20;  // of a value

std::string metadata_text(const gguf::GgufFile& file, bool whole) {
    std::string text = "metadata:\n";
    for (const auto& [key, value] : file.metadata().entries()) {
        // The type of an array includes its length; that of a scalar is evident from its value.
        const bool array = std::holds_alternative<gguf::Array>(value);
        std::string shown = gguf::to_text(value, whole ? 1000 : 8);
        if (array || whole) shown = fmt::format("{}: {}", gguf::describe_type(value), shown);
        const std::string name = fmt::format("  {:<38} ", printable(key));
        if (!whole) shown = printable(shown, kColumns - std::min(name.size() + kDots, kColumns - kShortest));
        text += name + shown + '\n';
    }
    return text;
}

std::string tensor_text(const gguf::TensorEntry& tensor) {
    return fmt::format("{:<8} {:<18} {:>10}", type_info(tensor.type).name, gguf::shape_text(tensor),
                       size_text(tensor.bytes));
}

std::string every_tensor(const gguf::GgufFile& file) {
    std::string text = "tensors:\n";
    for (const gguf::TensorEntry& tensor : file.tensors())
        text += fmt::format("  {:<39} {}\n", printable(tensor.name), tensor_text(tensor));
    return text;
}

// Layers of one shape are one line: blk.{3-60}.ffn_gate_exps.weight.
std::string folded_tensors(const gguf::GgufFile& file) {
    struct Line {
        const gguf::TensorEntry* first;
        std::vector<int> layers;
    };
    std::vector<Line> lines;
    std::map<std::tuple<std::string, tsr_type, std::string>, size_t> places;
    for (const gguf::TensorEntry& tensor : file.tensors()) {
        const int layer = layer_of(tensor.name);
        if (layer < 0) {
            lines.push_back({&tensor, {}});
            continue;
        }
        std::string part = tensor.name.substr(tensor.name.find('.', 4));
        const auto [at, fresh] =
            places.try_emplace({std::move(part), tensor.type, gguf::shape_text(tensor)}, lines.size());
        if (fresh) lines.push_back({&tensor, {}});
        lines[at->second].layers.push_back(layer);
    }
    std::string text = "tensors (the size is that of one; --all shows each by itself):\n";
    for (Line& line : lines) {
        std::string name = line.first->name;
        if (!line.layers.empty()) {
            std::ranges::sort(line.layers);
            name = fmt::format("blk.{{{}}}{}", ranges_text(line.layers), name.substr(name.find('.', 4)));
        }
        text += fmt::format("  {:<39} {}\n", printable(name), tensor_text(*line.first));
    }
    return text;
}

std::string sizes_text(const ModelSizes& sizes) {
    std::string text = "sizes by kind:\n";
    for (size_t kind = 0; kind < kTensorKinds; ++kind) {
        const KindSize& size = sizes.kinds[kind];
        if (size.tensors == 0) continue;
        std::string types;
        for (const auto& [type, bytes] : size.bytes_by_type)
            types += fmt::format("{}{} {}", types.empty() ? "" : ", ", type, size_text(bytes));
        const std::string line =
            fmt::format("  {:<15} {:>10} {:>15} weights in {}: ", kind_name(static_cast<TensorKind>(kind)),
                        size_text(size.bytes), grouped(size.weights), counted(size.tensors, "tensor"));
        text += line + wrapped(types, line.size(), 18) + '\n';
    }
    text += fmt::format("  {:<15} {:>10} {:>15} weights\n", "all", size_text(sizes.bytes), grouped(sizes.weights));
    return text;
}

// Bytes of a layer by kind; consecutive layers of equal sizes are one line.
std::string layers_text(const ModelSizes& sizes) {
    std::string text = fmt::format("a layer each of:\n  {:<8} {:>12} {:>14} {:>14} {:>12} {:>12}\n", "layers",
                                   "attention", "routed experts", "shared experts", "dense ffn", "whole layer");
    for (auto at = sizes.layers.begin(); at != sizes.layers.end();) {
        const auto first = at;
        auto last = at;
        while (at != sizes.layers.end() && at->second == first->second) last = at++;
        const auto bytes = [&](TensorKind kind) { return size_text(first->second[static_cast<size_t>(kind)]); };
        uint64_t whole = 0;
        for (const uint64_t part : first->second) whole += part;
        const std::string range =
            first == last ? std::to_string(first->first) : fmt::format("{}-{}", first->first, last->first);
        text += fmt::format("  {:<8} {:>12} {:>14} {:>14} {:>12} {:>12}\n", range, bytes(TensorKind::kAttention),
                            bytes(TensorKind::kRoutedExperts), bytes(TensorKind::kSharedExperts),
                            bytes(TensorKind::kDenseFfn), size_text(whole));
    }
    return text;
}

std::string placement_text(const ModelSizes& sizes) {
    std::vector<int> layers;  // with routed experts that are computed
    for (const auto& [layer, kinds] : sizes.layers) {
        const bool has_experts = kinds[static_cast<size_t>(TensorKind::kRoutedExperts)] > 0;
        if (has_experts && !sizes.predicting.contains(layer)) layers.push_back(layer);
    }
    std::string text =
        "what to write after -ot (a regular expression, searched for in the names\nabove, then =DEVICE):\n";
    const auto line = [&](std::string_view rules, std::string_view what) {
        text += fmt::format("  {}\n      {}\n", rules, wrapped(what, 6, 6));
    };
    const uint64_t experts = sizes.computed_bytes(TensorKind::kRoutedExperts);
    if (layers.empty()) {
        line("-ot 'blk\\.[0-9]+\\.ffn_=CPU'",
             fmt::format("feed-forward on the CPU: {}", size_text(sizes.computed_bytes(TensorKind::kDenseFfn))));
    } else {
        line("-ot exps=CPU", fmt::format("all routed experts on the CPU ({}); the rest ({}) on GPUs",
                                         size_text(experts), size_text(sizes.computed_bytes() - experts)));
        const int first = layers.front(), last = layers[std::min<size_t>(layers.size(), 4) - 1];
        uint64_t bytes = 0;
        for (int layer = first; layer <= last; ++layer) {
            if (sizes.layers.contains(layer)) bytes += sizes.layer_bytes(layer, TensorKind::kRoutedExperts);
        }
        line(fmt::format("-ot 'blk\\.({})\\.ffn_.*_exps=CUDA0' -ot exps=CPU", number_pattern(first, last)),
             fmt::format("experts of layers {} to {} on the first GPU: {} there", first, last, size_text(bytes)));
        line("--n-cpu-moe N", fmt::format("the reverse: experts of the first N layers on the CPU, {} a layer",
                                          size_text(sizes.layer_bytes(first, TensorKind::kRoutedExperts))));
    }
    text +=
        "'tessera plan' says what fits; without -ot, -ngl and -ts the placement is fitted\nto the memory that is "
        "there.\n";
    return text;
}

// What a run would say about the file.
struct Use {
    std::vector<std::string> notes;
    std::string refusal;  // of the model or its vocabulary
};

Use use_of(const OpenedModel& model, const Machine& machine, bool allow_unused) {
    Use use;
    try {
        use.notes = file_notes(model.file, machine.registry, allow_unused);
        const text::Tokenizer tokenizer(text::vocabulary_from_gguf(model.file.metadata()));
        use.notes.insert(use.notes.end(), tokenizer.notes().begin(), tokenizer.notes().end());
    } catch (const Error& error) {
        use.refusal = worded(error);
    }
    return use;
}

std::string use_text(const Use& use) {
    if (!use.refusal.empty()) return fmt::format("a run refuses the file:\n  {}\n", wrapped(use.refusal, 2, 4));
    if (use.notes.empty()) return "all tensors and keys of the model are used\n";
    std::string text = "what a run says about the file:\n";
    for (const std::string& line : use.notes) text += "  " + wrapped(line, 2, 4) + '\n';
    return text;
}

// Prints what is wrong with the weights; false if anything is, or could not be checked.
bool check_weights(const OpenedModel& model, const Machine& machine) {
    ProgressBar bar("checking");
    const ValuesReport report = check_values(model.file, machine.registry, machine.processors,
                                             [&](uint64_t done, uint64_t total) { bar.update(done, total); });
    bar.finish();
    std::string text;
    if (!report.zero_tail.empty()) text += report.zero_tail + '\n';
    for (const std::string& name : report.unreadable) text += unreadable_text(name) + '\n';
    for (const BadValues& bad : report.bad) text += bad_values_text(bad, model.file) + '\n';
    text += report.bad.empty() ? "no NaN and no infinity in the weights that were read\n"
                               : fmt::format("{} broken\n", counted(report.bad.size(), "tensor"));
    print('\n' + text);
    return report.bad.empty() && report.unreadable.empty() && report.zero_tail.empty();
}

}  // namespace

int inspect_command(Arguments& arguments) {
    const CommonSettings settings = read_common(arguments);
    const OpenedModel model = open_model(settings);
    const bool all = arguments.has("all") || settings.verbose;
    const ModelSizes sizes = measure(model.file);
    for (const std::string& key : model.file.added_keys()) say(worded(unknown_key(key, model.file)));
    std::string text = fmt::format("{}: GGUF version {}, {}, {}\n\n", model.path.string(), model.file.version(),
                                   counted(model.file.file_count(), "file"), size_text(model.file.file_bytes()));
    text += metadata_text(model.file, all) + '\n';
    text += (all ? every_tensor(model.file) : folded_tensors(model.file)) + '\n';
    text += sizes_text(sizes);
    if (!sizes.layers.empty()) text += '\n' + layers_text(sizes) + '\n' + placement_text(sizes);
    const Machine machine(settings);
    const Use use = use_of(model, machine, arguments.has("allow-unused-tensors"));
    print(text + '\n' + use_text(use));
    if (!arguments.has("check")) return kExitDone;
    return check_weights(model, machine) && use.refusal.empty() ? kExitDone : kExitFailed;
}

}  // namespace tessera::app
