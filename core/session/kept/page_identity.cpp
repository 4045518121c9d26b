#include "core/session/kept/page_identity.hpp"

#include "core/base/error.hpp"
#include "core/base/text.hpp"
#include "core/gguf/writer.hpp"
#include "core/graph/types.hpp"
#include "core/registry/registry.hpp"
#include "core/session/engine.hpp"

#include <tessera/ops.h>

#include <algorithm>
#include <bit>
#include <map>

namespace tessera::session {
namespace {

constexpr size_t kShownDigits = 16;
constexpr uint64_t kSampleBytes = 256;

std::string short_digest(std::string_view text) {
    const Digest digest = digest_of(text);
    PathId half;
    std::copy_n(digest.begin(), half.size(), half.begin());
    return path_text(half).substr(0, kShownDigits);
}

// Metadata, tensors, and some of the bytes of each.
std::string model_text(const Engine& engine) {
    const gguf::GgufFile& file = engine.file();
    std::vector<gguf::TensorEntry> tensors(file.tensors().begin(), file.tensors().end());
    const std::vector<std::byte> header = gguf::write_header(file.metadata(), tensors);
    std::string text(reinterpret_cast<const char*>(header.data()), header.size());
    for (const gguf::TensorEntry& tensor : file.tensors()) {
        const uint64_t bytes = std::min(tensor.bytes, kSampleBytes);
        for (const uint64_t at : {uint64_t{0}, (tensor.bytes - bytes) / 2, tensor.bytes - bytes}) {
            const size_t end = text.size();
            text.resize(end + bytes);
            file.read(tensor, at, std::as_writable_bytes(std::span(text).subspan(end)));
        }
    }
    const ModelInfo& info = engine.info();
    return fmt::format("{} '{}' {}", info.architecture, printable(info.name, 80), short_digest(text));
}

std::string types_text(const Plan& plan) {
    std::map<std::string, size_t> types;
    for (const CacheGroup& group : plan.cache_groups)
        for (const StorageId cache : group.caches) ++types[std::string(type_info(plan.graph.storage(cache).type).name)];
    std::string text;
    for (const auto& [type, count] : types) text += fmt::format("{}{} of {}", text.empty() ? "" : ", ", count, type);
    return text;
}

std::string layouts_text(const Engine& engine) {
    const Plan& plan = engine.plan();
    std::string text;
    for (const CacheGroup& group : plan.cache_groups) {
        text += fmt::format("window {}\n", group.rule.window);
        for (const StorageId cache : group.caches) {
            const Storage& storage = plan.graph.storage(cache);
            text += fmt::format("{} {} {}", storage.name, static_cast<int>(storage.type), storage.row_bytes);
            for (const Instance& instance : plan.instances)
                if (instance.storage == cache)
                    text += fmt::format(" '{}' {}", instance.layout, instance.bytes / group.pages);
            text += '\n';
        }
    }
    return short_digest(text);
}

// What is asked beside the file: rotations of keys, and experts that are left out.
std::string options_text(const Plan& plan, const ExpertReduction& experts) {
    std::string rotations;
    for (const Node& node : plan.graph.nodes()) {
        if (node.op != TSR_OP_ROPE) continue;
        rotations += fmt::format("{}", node.layer);
        for (const tsr_attribute& attribute : node.attributes)
            rotations += fmt::format(" {} {} {:016x} {}", attribute.name, attribute.i,
                                     std::bit_cast<uint64_t>(attribute.f), attribute.s ? attribute.s : "");
        for (const Value input : node.inputs) {
            const Storage& storage = plan.graph.storage(plan.graph.storage_of(input));
            if (storage.role == TSR_ROLE_WEIGHT) rotations += " " + storage.name;
        }
        rotations += '\n';
    }
    return fmt::format("hadamard {} {}, experts {} {}, rope {}", plan.options.hadamard_keys ? 1 : 0,
                       plan.options.hadamard_values ? 1 : 0, experts.at_least, experts.ratio, short_digest(rotations));
}

// All that are chosen: which of them has the fastest kernel, and which devices a plan uses, may be another one in each
// process.
void add_plugins(const Registry& registry, PageIdentity& identity) {
    std::map<std::string, std::string> plugins;
    for (const PluginRecord& plugin : registry.plugins()) {
        if (plugin.state != PluginState::kChosen || plugin.for_plans_only) continue;
        const Manifest& manifest = plugin.manifest;
        plugins["plugin " + printable(manifest.name, 80)] =
            fmt::format("{} {}", printable(manifest.version, 40), manifest.sha256.substr(0, kShownDigits));
    }
    std::string all;
    for (const auto& [name, value] : plugins) all += fmt::format("{}: {}\n", name, value);
    // So many that a file would not be read with them.
    if (all.size() > kMaxIdentityBytes / 2) plugins = {{"plugins", short_digest(all)}};
    for (auto& [name, value] : plugins) identity.properties.push_back({name, value});
}

}  // namespace

PageIdentity identity_of(const Engine& engine, const Registry& registry, const ExpertReduction& experts,
                         std::string_view program) {
    PageIdentity identity{{{"format", std::to_string(kPageFormat)},
                           {"program", std::string(program)},
                           {"model", model_text(engine)},
                           {"cache types", types_text(engine.plan())},
                           {"caches", layouts_text(engine)},
                           {"options", options_text(engine.plan(), experts)}}};
    add_plugins(registry, identity);
    return identity;
}

}  // namespace tessera::session
