#include "apps/tessera/read_settings.hpp"

#include "apps/tessera/flag_values.hpp"
#include "apps/tessera/text_input.hpp"
#include "apps/tessera/usage_error.hpp"
#include "apps/wording/wording.hpp"
#include "core/base/error.hpp"
#include "core/base/nearest.hpp"
#include "core/base/text.hpp"
#include "core/text/chat_template.hpp"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace tessera::app {
namespace {

void contradiction(const Arguments& arguments, std::string_view one, std::string_view other) {
    throw UsageError(
        fmt::format("{} and {} contradict each other: give one of them", arguments.typed(one), arguments.typed(other)));
}

void read_order(Arguments& arguments, ModelSettings& settings) {
    session::SamplingParameters& p = settings.sampling;
    if (arguments.has("samplers") && arguments.has("sampler-seq")) contradiction(arguments, "samplers", "sampler-seq");
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
    arguments.read_into(p);
    const auto seed = arguments.integer("seed", -1, std::numeric_limits<int64_t>::max());
    const auto given = seed ? session::given_seed(*seed) : std::nullopt;
    settings.seed_given = given.has_value();
    p.seed = given ? *given : session::random_seed();
    read_order(arguments, settings);
    read_breakers(arguments, p);
}

// Interactive commands answer before all weights are packed; those that measure or score pack first.
PackWeights pack_weights(Arguments& arguments) {
    if (arguments.has("no-repack") && arguments.on_off("run-time-repack").value_or(false)) {
        contradiction(arguments, "run-time-repack", "no-repack");
    }
    if (arguments.has("no-repack")) return PackWeights::kNever;
    const Command command = arguments.command();
    const bool answers = command == Command::kRun || command == Command::kChat || command == Command::kPlan;
    const bool at_load = arguments.on_off("run-time-repack").value_or(!answers);
    return at_load ? PackWeights::kAtLoad : PackWeights::kBetweenSteps;
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

void read_load_mode(Arguments& arguments, EngineOptions& engine) {
    const auto mode = arguments.choice("load-mode");
    if (!mode) return;
    if (*mode == "none") engine.map_weights = false;
    if (mode->ends_with("mlock")) engine.lock_memory = true;
    if (*mode == "dio") arguments.remark(fmt::format("{} dio: the file is mapped", arguments.typed("load-mode")));
}

void read_one_gpu(Arguments& arguments, DeviceChoice& devices) {
    constexpr std::array<std::string_view, 4> of_others = {"row", "tensor", "graph", "attn"};
    const std::string_view flag = arguments.typed("split-mode");
    if (const auto mode = arguments.text("split-mode"); mode && std::ranges::find(of_others, *mode) != of_others.end())
        throw UsageError(fmt::format(
            "{0} {1}: several GPUs share a model by whole layers ({0} layer), or one is used alone ({0} none)", flag,
            *mode));
    const auto main_gpu = arguments.integer("main-gpu", 0, 255);
    if (arguments.choice("split-mode") == "none") {
        devices.only = static_cast<uint32_t>(main_gpu.value_or(0));
    } else if (main_gpu) {
        arguments.remark(fmt::format("{} {}: has an effect with -sm none alone; -dev chooses GPUs",
                                     arguments.typed("main-gpu"), *main_gpu));
    }
}

void read_rope(Arguments& arguments, RopeSettings& rope) {
    arguments.read_into(rope);
    const auto given = arguments.text("rope-freq-scale");
    if (!given) return;
    std::optional<float> share;
    try {
        share = parse_rope_number(*given);
    } catch (const WrongValue& wrong) {
        arguments.reject("rope-freq-scale", wrong.what(), *given);
    }
    if (!share) return;
    if (rope.factor) {
        throw UsageError(fmt::format("{} and {} contradict each other: one is 1 divided by the other; give one",
                                     arguments.typed("rope-scale"), arguments.typed("rope-freq-scale")));
    }
    rope.factor = 1 / *share;
}

// {"enable_thinking": false, ...}: what chooses whether the model thinks; the other variables go to `settings`.
std::optional<bool> read_template_variables(const Arguments& arguments, ModelSettings& settings) {
    const auto text = arguments.text("chat-template-kwargs");
    if (!text || text->empty()) return std::nullopt;
    const auto parsed = text::parse_python_json(*text);
    if (!parsed || parsed->kind != text::PythonJson::Kind::kObject)
        arguments.reject("chat-template-kwargs", R"(an object like {"enable_thinking": false})", *text);
    std::optional<bool> thinking;
    for (const auto& [key, value] : parsed->members) {
        if (key != "enable_thinking" && key != "thinking") {
            if (!text::is_free_variable(key))
                arguments.reject("chat-template-kwargs", "other variables than those of the conversation itself", key);
            settings.template_variables.push_back({key, value});
            continue;
        }
        if (value.kind != text::PythonJson::Kind::kPlain || (value.text != "true" && value.text != "false"))
            arguments.reject("chat-template-kwargs", "enable_thinking or thinking with true or false", key);
        thinking = value.text == "true";
    }
    return thinking;
}

std::optional<bool> read_thinking(Arguments& arguments, ModelSettings& settings) {
    std::vector<std::pair<std::string_view, bool>> said;
    if (const auto reasoning = arguments.choice("reasoning"); reasoning && *reasoning != "auto")
        said.emplace_back("reasoning", *reasoning == "on");
    if (settings.reasoning_budget == 0) said.emplace_back("reasoning-budget", false);
    if (const auto effort = arguments.text("reasoning-effort"); effort == "none") {
        said.emplace_back("reasoning-effort", false);
    } else if (effort && *effort != "default" && *effort != "auto") {
        settings.template_variables.push_back({"reasoning_effort", text::PythonJson::of_text(*effort)});
    }
    if (const auto thinking = read_template_variables(arguments, settings))
        said.emplace_back("chat-template-kwargs", *thinking);
    if (said.empty()) return std::nullopt;
    for (const auto& [name, thinking] : said) {
        if (thinking != said.front().second) contradiction(arguments, said.front().first, name);
    }
    return said.front().second;
}

// A name that is not known is an error of the command line, also where the file's own template would do.
void check_template_name(const std::string& name) {
    try {
        text::ChatTemplate::by_name(name);
    } catch (const Error&) {
        const std::vector<std::string> names = text::ChatTemplate::names();
        const std::vector<std::string_view> known(names.begin(), names.end());
        throw UsageError(
            fmt::format("--chat-template {}: there is no such built-in template{}; there are: {}; "
                        "--chat-template-file FILE reads one",
                        printable(name, 60), did_you_mean(name, known), joined(names)));
    }
}

// Grammars and schemas, also of files; an empty one is none.
void read_answer_form(const Arguments& arguments, ModelSettings& settings) {
    std::string_view given;
    const auto read = [&](std::string_view text_name, std::string_view file_name, std::optional<std::string>& text) {
        if (text && text->empty()) text.reset();
        if (text) given = text_name;
        const auto file = arguments.text(file_name);
        if (!file || file->empty()) return;
        if (text) contradiction(arguments, text_name, file_name);
        text = read_text(*file);
        given = file_name;
    };
    read("grammar", "grammar-file", settings.grammar);
    const std::string_view grammar = given;
    read("json-schema", "json-schema-file", settings.json_schema);
    if (settings.grammar && settings.json_schema) contradiction(arguments, grammar, given);
    if ((settings.grammar || settings.json_schema) && settings.ignore_end)
        contradiction(arguments, given, "ignore-eos");
}

}  // namespace

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

std::optional<std::filesystem::path> read_rig(const Arguments& arguments) {
    if (const auto file = arguments.text("rig")) return *file;
    return std::nullopt;
}

CommonSettings read_common(Arguments& arguments) {
    CommonSettings common;
    arguments.read_into(common);
    read_rope(arguments, common.rope);
    return common;
}

void remark_without(Arguments& arguments, std::string_view whole, std::initializer_list<std::string_view> flags) {
    if (arguments.has(whole)) return;
    for (const std::string_view flag : flags) {
        if (!arguments.has(flag)) continue;
        arguments.remark(
            fmt::format("{}: without effect, since {} is not given", arguments.typed(flag), arguments.typed(whole)));
    }
}

void cap_threads(Arguments& arguments, ModelSettings& settings, const Machine& machine) {
    for (const CappedThreads& capped : tessera::cap_threads(settings, machine.processors)) {
        const std::string_view flag = [&] {
            switch (capped.use) {
                case CappedThreads::Use::kGeneration:
                    return "threads";
                case CappedThreads::Use::kPrompts:
                    return "threads-batch";
                case CappedThreads::Use::kDraftGeneration:
                    return "draft-threads";
                case CappedThreads::Use::kDraftPrompts:
                    return "draft-threads-batch";
            }
            return "";
        }();
        arguments.remark(
            fmt::format("{} {}: {}", arguments.typed(flag), capped.requested, capped_threads_text(machine.processors)));
    }
}

void settle(Arguments& arguments, ModelSettings& settings, const OpenedModel& model, const Machine& machine) {
    cap_threads(arguments, settings, machine);
    for (const Notice& notice : tessera::settle(settings, model, machine)) arguments.remark(worded(notice));
}

ModelSettings read_model_settings(Arguments& arguments) {
    if (arguments.has("chat") && arguments.has("raw")) contradiction(arguments, "chat", "raw");
    ModelSettings settings;
    settings.common = read_common(arguments);
    EngineOptions& engine = settings.engine;
    arguments.read_into(engine);
    arguments.read_into<PlanOptions>(engine);
    arguments.read_into(settings);
    arguments.read_into(engine.placement);
    arguments.read_into(settings.common.devices);
    arguments.read_into(settings.drafts);
    if (const auto batch = arguments.integer("batch-size", 1, 1 << 24))
        engine.rows = static_cast<uint32_t>(std::min<int64_t>(engine.rows, *batch));
    if (settings.drafts.prediction && settings.drafts.model)
        contradiction(arguments, "draft-model", arguments.has("mtp") ? "mtp" : "draft-types");
    if (!settings.drafts.prediction)
        remark_without(arguments, "draft-model",
                       {"draft-p-min", "draft-ctx-size", "draft-threads", "draft-threads-batch", "draft-cache-type-k",
                        "draft-cache-type-v", "draft-gpu-layers", "draft-device", "draft-override-tensor",
                        "draft-n-cpu-moe", "draft-cpu-moe"});
    if (!settings.drafts.repeat && !settings.drafts.prediction) {
        const std::string type = arguments.text("draft-types").value_or("none");
        if (type != "none") remark_without(arguments, "draft-model", {"draft-types"});
        for (const std::string_view flag : {"draft-max", "draft-min"}) {
            if (settings.drafts.model || type != "none" || !arguments.has(flag)) continue;
            arguments.remark(fmt::format("{}: without effect, since none of --spec-type ngram, --mtp and -md is given",
                                         arguments.typed(flag)));
        }
    }
    read_one_gpu(arguments, settings.common.devices);
    if (settings.latent_attention) engine.lowerings["mla_attention"] = *settings.latent_attention;
    settings.value_type_given = arguments.has("cache-type-v");
    engine.pack_weights = pack_weights(arguments);
    read_load_mode(arguments, engine);
    engine.stream_experts = streams_experts(arguments);
    read_sampling(arguments, settings);
    if (settings.escape) {
        if (settings.prompt) settings.prompt = unescape(*settings.prompt);
        for (std::string& text : settings.stop) text = unescape(text);
    }
    if (const auto file = arguments.text("system-file")) {
        if (settings.system) contradiction(arguments, "system", "system-file");
        settings.system = read_text(*file);
    }
    if (settings.chat_template) check_template_name(*settings.chat_template);
    if (const auto file = arguments.text("chat-template-file")) {
        if (settings.chat_template) contradiction(arguments, "chat-template", "chat-template-file");
        settings.chat_template_text = read_text(*file);
    }
    read_answer_form(arguments, settings);
    settings.thinking = read_thinking(arguments, settings);
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
