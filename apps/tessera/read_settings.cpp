#include "apps/tessera/read_settings.hpp"

#include "apps/tessera/text_input.hpp"
#include "core/base/error.hpp"
#include "core/base/text.hpp"
#include "core/graph/types.hpp"

#include <boost/json/parse.hpp>
#include <spdlog/fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>

namespace tessera::app {
namespace {

constexpr int64_t kMaximumTokens = 1 << 26;
constexpr int64_t kMaximumThreads = 4096;
constexpr double kFar = 1e6, kFarthestRope = 1e12;
constexpr double kMaximumExperts = 1 << 20;

template <typename T, typename Value>
void set(T& to, const std::optional<Value>& value) {
    if (value) to = static_cast<T>(*value);
}

tsr_type cache_type(const Arguments& arguments, std::string_view name, tsr_type otherwise) {
    const auto given = arguments.text(name);
    if (!given) return otherwise;
    constexpr std::array<std::string_view, 10> types = {"f32",  "f16",  "bf16", "q8_0", "q6_0",
                                                        "q5_0", "q5_1", "q4_0", "q4_1", "iq4_nl"};
    const TypeInfo* type = find_type(*given);
    const std::string expected = fmt::format("{}", fmt::join(types, ", "));
    if (!type) arguments.reject(name, fmt::format("one of {}", expected), *given);
    if (std::ranges::find(types, type->name) == types.end()) {
        throw UsageError(
            fmt::format("{}: {} cannot be cached; use {}", arguments.typed(name), printable(*given, 40), expected));
    }
    return type->id;
}

// "6,0.4" of -ser; "-1,0" means in other programs that no expert is left out.
ExpertReduction expert_reduction(Arguments& arguments) {
    const auto given = arguments.numbers("smart-expert-reduction", -1);
    if (!given) return {};
    const std::vector<double>& v = *given;
    const bool none = v.size() == 2 && v[0] == -1 && v[1] == 0;
    if (!none && !(v.size() == 2 && v[0] >= 1 && v[0] <= kMaximumExperts && v[0] == std::floor(v[0]) && v[1] >= 0 &&
                   v[1] <= 1)) {
        arguments.reject("smart-expert-reduction",
                         "K,T like 6,0.4: at least K experts (1 or more) and a share T from 0 to 1",
                         *arguments.text("smart-expert-reduction"));
    }
    return none ? ExpertReduction{} : ExpertReduction{static_cast<uint32_t>(v[0]), v[1]};
}

void read_order(Arguments& arguments, ModelSettings& settings) {
    session::SamplingParameters& p = settings.sampling;
    if (arguments.has("samplers") && arguments.has("sampler-seq")) {
        throw UsageError(fmt::format("{} and {} contradict each other: give one of them", arguments.typed("samplers"),
                                     arguments.typed("sampler-seq")));
    }
    if (arguments.has("samplers") || arguments.has("sampler-seq")) settings.sampling_given.emplace_back("sequence");
    try {
        if (const auto names = arguments.text("samplers")) p.order = session::parse_sampling_order(*names);
        if (const auto letters = arguments.text("sampler-seq")) p.order = session::parse_sampling_letters(*letters);
    } catch (const Error& error) {
        throw UsageError(fmt::format("--{}", error.what()));
    }
    for (const session::SamplingField& field : session::kSamplingFields) {
        if (!field.step || !field.turns_on(p) || field.turns_on({}) ||
            std::ranges::find(p.order, *field.step) != p.order.end() ||
            *field.step == session::SamplingStep::kPenalties)
            continue;
        arguments.remark(fmt::format("{}: without effect, since {} is not among the samplers",
                                     arguments.typed(field.flag()), session::name_of(*field.step)));
    }
}

void read_breakers(const Arguments& arguments, session::SamplingParameters& p) {
    const std::vector<std::string> texts = arguments.all("dry-sequence-breaker");
    if (texts.empty()) return;
    p.dry_sequence_breakers.clear();
    for (const std::string& text : texts) {
        if (text.empty()) arguments.reject("dry-sequence-breaker", "a text, or none", text);
        if (text != "none") p.dry_sequence_breakers.push_back(unescape(text));
    }
}

void read_sampling(Arguments& arguments, ModelSettings& settings) {
    session::SamplingParameters& p = settings.sampling;
    for (const session::SamplingField& field : session::kSamplingFields) {
        if (field.flags.empty()) continue;
        if (arguments.has(field.flag())) settings.sampling_given.push_back(field.name);
        // In other programs a negative temperature means the best token.
        const double minimum = field.negative_is_zero ? -session::kFarthestSampling : field.minimum;
        if (field.is_integer()) {
            const auto value =
                arguments.integer(field.flag(), static_cast<int64_t>(minimum), static_cast<int64_t>(field.maximum));
            if (value) field.set(p, static_cast<double>(*value));
        } else if (const auto value = arguments.number(field.flag(), minimum, field.maximum)) {
            field.set(p, *value);
        }
    }
    const auto seed = arguments.integer("seed", -1, std::numeric_limits<int64_t>::max());
    const auto given = seed ? session::given_seed(*seed) : std::nullopt;
    settings.seed_given = given.has_value();
    p.seed = given ? *given : session::random_seed();
    read_order(arguments, settings);
    read_breakers(arguments, p);
    for (const std::string& text : arguments.all("logit-bias")) {
        const size_t sign = text.find_first_of("+-");
        int32_t token = 0;
        float bias = 0;
        const char* const split = text.data() + std::min(sign, text.size());
        const char* const end = text.data() + text.size();
        const bool whole = sign != std::string::npos && std::from_chars(text.data(), split, token).ptr == split &&
                           split != text.data();
        const char* const number = whole && *split == '+' ? split + 1 : split;
        if (!whole || std::from_chars(number, end, bias).ptr != end || number == end) {
            arguments.reject("logit-bias", "TOKEN+X or TOKEN-X, like 15+2.5", text);
        }
        p.logit_bias.emplace_back(token, bias);
    }
    settings.ignore_end = arguments.has("ignore-eos");
    for (const std::string& text : arguments.all("stop")) {
        if (text.empty()) throw UsageError("--stop: expected a text, found an empty one");
        settings.stop.push_back(settings.escape ? unescape(text) : text);
    }
}

// Interactive commands answer before all weights are packed; those that measure or score pack first.
PackWeights pack_weights(Arguments& arguments) {
    if (arguments.has("no-repack") && arguments.on_off("run-time-repack").value_or(false)) {
        throw UsageError(fmt::format("{} and {} contradict each other: give one of them",
                                     arguments.typed("run-time-repack"), arguments.typed("no-repack")));
    }
    if (arguments.has("no-repack")) return PackWeights::kNever;
    const Command command = arguments.command();
    const bool answers = command == Command::kRun || command == Command::kChat || command == Command::kPlan;
    const bool at_load = arguments.on_off("run-time-repack").value_or(!answers);
    return at_load ? PackWeights::kAtLoad : PackWeights::kBetweenSteps;
}

void read_engine(Arguments& arguments, ModelSettings& settings) {
    EngineOptions& engine = settings.engine;
    if (const auto c = arguments.integer("ctx-size", 0, kMaximumTokens)) settings.context = static_cast<uint32_t>(*c);
    set(engine.rows, arguments.integer("ubatch-size", 1, 1 << 20));
    if (const auto b = arguments.integer("batch-size", 1, 1 << 24))
        engine.rows = static_cast<uint32_t>(std::min<int64_t>(engine.rows, *b));
    if (const auto t = arguments.integer("threads", -1, kMaximumThreads))
        engine.threads = static_cast<uint32_t>(std::max<int64_t>(*t, 0));
    if (const auto t = arguments.integer("threads-batch", -1, kMaximumThreads))
        engine.prompt_threads = static_cast<uint32_t>(std::max<int64_t>(*t, 0));
    engine.flash_attention = arguments.on_off("flash-attn").value_or(true) && !arguments.has("no-flash-attn");
    constexpr std::array<std::string_view, 4> variants = {"0", "1", "2", "3"};
    settings.latent_attention = arguments.choice("mla-use", variants);
    if (settings.latent_attention) engine.lowerings["mla_attention"] = *settings.latent_attention;
    if (const auto cap = arguments.integer("attention-max-batch", 0, 1 << 24)) {
        engine.scratch_bytes = *cap == 0 ? uint64_t{1} << 50 : static_cast<uint64_t>(*cap) << 20;
    }
    engine.experts = expert_reduction(arguments);
    engine.allow_unused = arguments.has("allow-unused-tensors");
    settings.check_values = arguments.has("check-tensors");
    engine.cache_type_k = cache_type(arguments, "cache-type-k", engine.cache_type_k);
    engine.cache_type_v = cache_type(arguments, "cache-type-v", engine.cache_type_v);
    engine.hadamard_keys = arguments.has("k-cache-hadamard");
    engine.hadamard_values = arguments.has("v-cache-hadamard");
    settings.value_type_given = arguments.has("cache-type-v");
    engine.pack_weights = pack_weights(arguments);
    engine.map_weights = !arguments.has("no-mmap") && arguments.on_off("bench-mmap").value_or(true);
    engine.lock_memory = arguments.has("mlock");
    engine.check_order = arguments.has("check-order");
    constexpr std::array<std::string_view, 6> load_modes = {"auto", "none", "mmap", "mlock", "mmap+mlock", "dio"};
    if (const auto mode = arguments.choice("load-mode", load_modes)) {
        if (*mode == "none") engine.map_weights = false;
        if (mode->ends_with("mlock")) engine.lock_memory = true;
        if (*mode == "dio") arguments.remark(fmt::format("{} dio: the file is mapped", arguments.typed("load-mode")));
    }
    constexpr std::array<std::string_view, 3> modes = {"distribute", "isolate", "numactl"};
    if (const auto mode = arguments.choice("numa", modes)) engine.numa = *parse_numa_mode(*mode);
}

// Pairs of an operation's number in ik_llama.cpp and 0 or 1. Of these operations only those of experts can be computed
// on a card while their weights lie in host memory.
bool streams_experts(Arguments& arguments) {
    const auto pairs = arguments.numbers("offload-policy", -1);
    if (!pairs) return !arguments.has("no-op-offload");
    constexpr double kAll = -1, kByExpert = 27, kGateAndUp = 29;
    bool streams = !arguments.has("no-op-offload"), others = false;
    for (size_t i = 0; i < pairs->size(); i += 2) {
        const double operation = (*pairs)[i];
        if (i + 1 == pairs->size() || ((*pairs)[i + 1] != 0 && (*pairs)[i + 1] != 1))
            arguments.reject("offload-policy", "pairs of an operation and 0 or 1, as in 27,0",
                             *arguments.text("offload-policy"));
        const bool is_experts = operation == kAll || operation == kByExpert || operation == kGateAndUp;
        if (is_experts && (*pairs)[i + 1] == 0) streams = false;
        others |= !is_experts;
    }
    if (others)
        arguments.remark(
            fmt::format("{}: only operations of experts (27 and 29) are computed elsewhere than where their "
                        "weights lie",
                        arguments.typed("offload-policy")));
    return streams;
}

void read_placement(Arguments& arguments, PlacementOptions& placement) {
    placement.caches_on_cpu = arguments.has("no-kv-offload") || arguments.on_off("bench-no-kv-offload").value_or(false);
    if (const auto layers = arguments.text("n-gpu-layers"); layers && *layers != "auto") {
        placement.gpu_layers =
            *layers == "all" ? 1 << 16 : static_cast<int>(*arguments.integer("n-gpu-layers", -1, 1 << 16));
    }
    if (const auto shares = arguments.numbers("tensor-split")) {
        if (std::ranges::all_of(*shares, [](double share) { return share == 0; })) {
            arguments.reject("tensor-split", "a share above 0", *arguments.text("tensor-split"));
        }
        placement.tensor_split = *shares;
    }
    for (const std::string& text : arguments.all("override-tensor")) {
        for (TensorRule& rule : parse_tensor_rules(text)) placement.rules.push_back(std::move(rule));
    }
    if (const auto layers = arguments.integer("n-cpu-moe", 0, 1 << 16))
        placement.cpu_expert_layers = static_cast<int>(*layers);
    if (arguments.has("cpu-moe")) placement.cpu_expert_layers = -1;
}

std::optional<std::string> split_mode(Arguments& arguments) {
    constexpr std::array<std::string_view, 4> of_others = {"row", "tensor", "graph", "attn"};
    if (const auto mode = arguments.text("split-mode"); mode && std::ranges::find(of_others, *mode) != of_others.end())
        throw UsageError(fmt::format(
            "{} {}: several GPUs share a model by whole layers ({} layer), or one is used "
            "alone ({} none)",
            arguments.typed("split-mode"), *mode, arguments.typed("split-mode"), arguments.typed("split-mode")));
    constexpr std::array<std::string_view, 2> modes = {"layer", "none"};
    return arguments.choice("split-mode", modes);
}

void read_devices(Arguments& arguments, DeviceChoice& devices) {
    if (const auto ids = arguments.text("device")) {
        devices.gpus.emplace();
        if (*ids != "none") {
            devices.gpus = arguments.list("device");
            std::erase(*devices.gpus, "");
            if (devices.gpus->empty()) arguments.reject("device", "ids as in CUDA0,CUDA1, or none", *ids);
        }
    }
    const auto main_gpu = arguments.integer("main-gpu", 0, 255);
    const auto mode = split_mode(arguments);
    if (mode == "none") {
        devices.only = static_cast<uint32_t>(main_gpu.value_or(0));
    } else if (main_gpu) {
        arguments.remark(fmt::format("{} {}: has an effect with -sm none alone; -dev chooses GPUs",
                                     arguments.typed("main-gpu"), *main_gpu));
    }
    if (const auto margins = arguments.numbers("fit-target")) {
        for (const double mib : *margins) {
            if (mib > 1 << 24) arguments.reject("fit-target", "MiB up to 16777216", *arguments.text("fit-target"));
            devices.margins.push_back(static_cast<uint64_t>(mib) << 20);
        }
    }
}

// {"enable_thinking": false}
std::optional<bool> thinking_of_template_arguments(const Arguments& arguments) {
    const auto text = arguments.text("chat-template-kwargs");
    if (!text || text->empty()) return std::nullopt;
    boost::system::error_code error;
    const boost::json::value parsed = boost::json::parse(*text, error);
    if (error || !parsed.is_object())
        arguments.reject("chat-template-kwargs", R"(an object like {"enable_thinking": false})", *text);
    std::optional<bool> thinking;
    for (const auto& [key, value] : parsed.get_object()) {
        if ((key != "enable_thinking" && key != "thinking") || !value.is_bool())
            arguments.reject("chat-template-kwargs", "enable_thinking or thinking with true or false",
                             std::string_view(key));
        thinking = value.get_bool();
    }
    return thinking;
}

std::optional<bool> read_thinking(Arguments& arguments) {
    std::vector<std::pair<std::string_view, bool>> said;
    constexpr std::array<std::string_view, 3> switches = {"on", "off", "auto"};
    if (const auto reasoning = arguments.choice("reasoning", switches); reasoning && *reasoning != "auto")
        said.emplace_back("reasoning", *reasoning == "on");
    constexpr std::array<std::string_view, 2> budgets = {"-1", "0"};
    if (arguments.choice("reasoning-budget", budgets) == "0") said.emplace_back("reasoning-budget", false);
    constexpr std::array<std::string_view, 3> efforts = {"none", "default", "auto"};
    if (arguments.choice("reasoning-effort", efforts) == "none") said.emplace_back("reasoning-effort", false);
    if (const auto thinking = thinking_of_template_arguments(arguments))
        said.emplace_back("chat-template-kwargs", *thinking);
    if (said.empty()) return std::nullopt;
    for (const auto& [name, thinking] : said) {
        if (thinking != said.front().second)
            throw UsageError(fmt::format("{} and {} contradict each other: give one of them",
                                         arguments.typed(said.front().first), arguments.typed(name)));
    }
    return said.front().second;
}

}  // namespace

std::vector<TensorRule> parse_tensor_rules(std::string_view text) {
    std::vector<TensorRule> rules;
    std::string pending;  // a piece without '=': the comma after it belongs to its regular expression
    for (std::string_view rest = text;;) {
        const size_t comma = std::min(rest.find_first_of(",;"), rest.size());
        pending += rest.substr(0, comma);
        // After the last '=' follows a device: letters and digits, without characters that are special in a regular
        // expression.
        const size_t equals = pending.rfind('=');
        const bool whole =
            equals != std::string::npos && equals + 1 < pending.size() &&
            pending.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-:",
                                      equals + 1) == std::string::npos;
        if (whole && equals > 0) {
            rules.push_back({pending.substr(0, equals), pending.substr(equals + 1)});
            pending.clear();
        } else if (comma < rest.size()) {
            pending += rest[comma];
        }
        if (comma == rest.size()) break;
        rest.remove_prefix(comma + 1);
    }
    if (!pending.empty() || rules.empty()) {
        throw UsageError(fmt::format("-ot: expected REGEX=DEVICE, like exps=CPU, found '{}'", printable(text, 120)));
    }
    return rules;
}

std::string unescape(std::string_view text) {
    std::string out;
    for (size_t i = 0; i < text.size(); ++i) {
        if (text[i] != '\\' || i + 1 == text.size()) {
            out += text[i];
            continue;
        }
        const char c = text[++i];
        unsigned byte = 0;
        if (c == 'x' && i + 2 < text.size() &&
            std::from_chars(text.data() + i + 1, text.data() + i + 3, byte, 16).ptr == text.data() + i + 3) {
            out += static_cast<char>(byte);
            i += 2;
            continue;
        }
        switch (c) {
            case 'n':
                out += '\n';
                break;
            case 'r':
                out += '\r';
                break;
            case 't':
                out += '\t';
                break;
            case '\\':
            case '"':
            case '\'':
                out += c;
                break;
            default:
                out += '\\';
                out += c;
        }
    }
    return out;
}

std::vector<std::string> split_overrides(std::string_view text) {
    std::vector<std::string> overrides;
    for (const std::string& part : split(text, ',')) {
        const size_t equals = part.find('=');
        const std::string_view typed = std::string_view(part).substr(equals == std::string::npos ? 0 : equals + 1);
        constexpr std::array<std::string_view, 4> types = {"int:", "float:", "bool:", "str:"};
        const bool begins = equals != std::string::npos && equals > 0 &&
                            std::ranges::any_of(types, [&](std::string_view type) { return typed.starts_with(type); });
        if (begins || overrides.empty()) {
            overrides.push_back(part);
        } else {
            overrides.back() += ',' + part;
        }
    }
    return overrides;
}

std::optional<std::filesystem::path> read_rig(const Arguments& arguments) {
    if (const auto file = arguments.text("rig")) return *file;
    return std::nullopt;
}

// A number above 0; what other programs take for "as the model file says" is nothing: 0, or a negative number where
// `zero` is a value.
std::optional<float> rope_number(Arguments& arguments, std::string_view name, bool zero = false) {
    const auto value = arguments.number(name, zero ? -kFar : 0, kFarthestRope);
    if (!value || (zero ? *value < 0 : *value == 0)) return std::nullopt;
    return static_cast<float>(*value);
}

RopeSettings read_rope(Arguments& arguments) {
    RopeSettings rope;
    constexpr std::array<std::string_view, 3> kinds = {"none", "linear", "yarn"};
    rope.scaling = arguments.choice("rope-scaling", kinds);
    rope.base = rope_number(arguments, "rope-freq-base");
    rope.factor = rope_number(arguments, "rope-scale");
    if (const auto share = rope_number(arguments, "rope-freq-scale")) {
        if (rope.factor) {
            throw UsageError(fmt::format("{} and {} contradict each other: one is 1 divided by the other; give one",
                                         arguments.typed("rope-scale"), arguments.typed("rope-freq-scale")));
        }
        rope.factor = 1 / *share;
    }
    if (const auto n = arguments.integer("yarn-orig-ctx", 0, kMaximumTokens); n && *n > 0) rope.original_context = *n;
    rope.ext_factor = rope_number(arguments, "yarn-ext-factor", true);
    rope.attn_factor = rope_number(arguments, "yarn-attn-factor", true);
    rope.beta_fast = rope_number(arguments, "yarn-beta-fast", true);
    rope.beta_slow = rope_number(arguments, "yarn-beta-slow", true);
    for (const auto& [name, value] : {std::pair("yarn-attn-factor", rope.attn_factor),
                                      {"yarn-beta-fast", rope.beta_fast},
                                      {"yarn-beta-slow", rope.beta_slow}}) {
        if (value == 0) arguments.reject(name, "a number above 0, or -1: as the model file says", "0");
    }
    return rope;
}

CommonSettings read_common(Arguments& arguments) {
    CommonSettings common;
    common.verbose = arguments.has("verbose");
    if (const auto file = arguments.text("config")) common.config = *file;
    for (const std::string& folder : arguments.all("plugin-dir")) {
        std::error_code unused;
        if (!std::filesystem::is_directory(folder, unused))
            throw UsageError(
                fmt::format("--plugin-dir: expected a folder, found '{}', which is none", printable(folder)));
        std::filesystem::path path = std::filesystem::absolute(folder).lexically_normal();
        common.plugin_folders.push_back(path.has_filename() ? path : path.parent_path());
    }
    if (!flag_named("model").of(arguments.command())) return common;
    if (const auto file = arguments.text("model")) {
        if (file->empty()) throw UsageError("-m: expected a file, found an empty name");
        common.model = *file;
    }
    if (flag_named("rope-scaling").of(arguments.command())) common.rope = read_rope(arguments);
    for (const std::string& text : arguments.all("override-kv")) {
        try {
            for (const std::string& one : split_overrides(text)) common.overrides.push_back(gguf::parse_override(one));
        } catch (const Error& error) {
            throw UsageError(fmt::format("--override-kv: {}", error.what()));
        }
    }
    return common;
}

ModelSettings read_model_settings(Arguments& arguments) {
    ModelSettings settings;
    settings.common = read_common(arguments);
    settings.escape = arguments.has("escape") && !arguments.has("no-escape");
    read_engine(arguments, settings);
    read_placement(arguments, settings.engine.placement);
    read_devices(arguments, settings.common.devices);
    settings.engine.stream_experts = streams_experts(arguments);
    set(settings.engine.stream_rows_from, arguments.integer("op-offload-from", 1, 1 << 20));
    read_sampling(arguments, settings);
    settings.predict = arguments.integer("predict", -2, kMaximumTokens);
    // In other programs -1 is as many as they choose.
    if (arguments.text("parallel") != "-1") set(settings.parallel, arguments.integer("parallel", 1, 4096));
    settings.prompt = arguments.text("prompt");
    if (settings.prompt && settings.escape) settings.prompt = unescape(*settings.prompt);
    settings.file = arguments.text("file");
    settings.system = arguments.text("system");
    if (const auto file = arguments.text("system-file")) {
        if (settings.system) throw UsageError("-sys and -sysf contradict each other: give one of them");
        settings.system = read_text(*file);
    }
    settings.chat_template = arguments.text("chat-template");
    settings.thinking = read_thinking(arguments);
    settings.single_turn = arguments.has("single-turn");
    settings.timings = !arguments.has("no-perf");
    settings.parse_special = !arguments.has("no-parse-special");
    settings.add_bos = !arguments.has("no-bos");
    if (arguments.has("chat") && arguments.has("raw"))
        throw UsageError("--chat and --raw contradict each other: give one of them");
    if (arguments.has("chat")) settings.chat = true;
    if (arguments.has("raw")) settings.chat = false;
    settings.special = arguments.has("special");
    settings.verbose_prompt = arguments.has("verbose-prompt");
    return settings;
}

std::string idle_in_plan(const Arguments& arguments) {
    std::string flags;
    for (const Flag& flag : all_flags()) {
        if (flag.standing != Standing::kSupported || (flag.group != Group::kPrompt && flag.group != Group::kSampling))
            continue;
        // These determine the context and the number of sequences.
        if (flag.name == "predict" || flag.name == "parallel" || !arguments.has(flag.name)) continue;
        flags += fmt::format("{}{}", flags.empty() ? "" : " ", shown(flag));
    }
    return flags.empty() ? "" : fmt::format("{}: a plan does not depend on it", flags);
}

}  // namespace tessera::app
