#include "core/setup/draft_model.hpp"

#include "core/base/error.hpp"
#include "core/base/text.hpp"
#include "core/session/drafts/model_drafts.hpp"
#include "core/session/drafts/prediction_drafts.hpp"
#include "core/setup/model_sizes.hpp"
#include "core/setup/prompts.hpp"

#include <algorithm>
#include <utility>

namespace tessera {
namespace {

std::string_view which(const ModelSettings& settings) {
    return settings.drafts.prediction ? "layer of prediction: " : "draft model: ";
}

bool is_asked_for(const DraftSettings& drafts) {
    if (drafts.model && drafts.prediction) {
        fail(TSR_INVALID_ARGUMENT,
             "drafts of a draft model and of the model's layer of prediction are asked for; one of them is possible");
    }
    return drafts.most > 0 && (drafts.model || drafts.prediction);
}

// What is given for the draft model, and of the model's settings what holds for a whole process.
ModelSettings settings_of_draft(const ModelSettings& settings) {
    const DraftSettings& drafts = settings.drafts;
    ModelSettings own;
    own.common.config = settings.common.config;
    own.common.plugin_folders = settings.common.plugin_folders;
    own.common.devices = settings.common.devices;
    if (drafts.prediction) {
        own.common.model = settings.common.model;
        own.common.overrides = settings.common.overrides;
        own.common.rope = settings.common.rope;
        own.latent_attention = settings.latent_attention;
        own.engine.lowerings = settings.engine.lowerings;
        own.engine.prediction = true;
        own.engine.allow_unused = settings.engine.allow_unused;
        own.engine.rows = session::PredictionDrafts::kRows;
    } else {
        own.common.model = drafts.model;
    }
    if (drafts.gpus) {
        own.common.devices.gpus = drafts.gpus;
        own.common.devices.only.reset();
    }
    EngineOptions& engine = own.engine;
    engine.placement.gpu_layers = drafts.gpu_layers;
    engine.placement.rules = drafts.rules;
    engine.placement.cpu_expert_layers = drafts.cpu_expert_layers;
    engine.cache_type_k = drafts.cache_type_k;
    engine.cache_type_v = drafts.cache_type_v;
    engine.threads = drafts.threads ? drafts.threads : settings.engine.threads;
    engine.prompt_threads = drafts.prompt_threads ? drafts.prompt_threads : settings.engine.prompt_threads;
    engine.flash_attention = settings.engine.flash_attention;
    engine.map_weights = settings.engine.map_weights;
    engine.lock_memory = settings.engine.lock_memory;
    engine.check_order = settings.engine.check_order;
    engine.numa = settings.engine.numa;
    engine.pack_weights =
        settings.engine.pack_weights == PackWeights::kNever ? PackWeights::kNever : PackWeights::kAtLoad;
    return own;
}

struct Prepared {
    ModelSettings settings;
    std::unique_ptr<Machine> machine;
    OpenedModel model;
    EngineOptions options;
    std::vector<Notice> notices;
};

Notice of_draft(const ModelSettings& settings, Notice notice) {
    notice.text = std::string(which(settings)) + notice.text;
    return notice;
}

Prepared prepare(const ModelSettings& settings, DraftUse use, const std::optional<std::filesystem::path>& rig) {
    ModelSettings own = settings_of_draft(settings);
    auto machine = std::make_unique<Machine>(own.common, rig, asked_threads(own.engine), own.engine.numa);
    // Said of the model already.
    machine->remarks.clear();
    OpenedModel model = open_model(own.common);
    std::vector<Notice> notices = settle(own, model, *machine);
    EngineOptions options = own.engine;
    options.sequences = use.sequences;
    options.rows = std::max(options.rows, use.sequences);
    options.context = settings.drafts.context ? settings.drafts.context : use.context;
    return {std::move(own), std::move(machine), std::move(model), std::move(options), std::move(notices)};
}

// Memory of a device that the model has not, too: of its own weights that a layer of prediction uses in the mapped file
// it has what it has.
uint64_t own_bytes(const ModelSettings& settings, const Plan& plan, DeviceIndex device) {
    uint64_t bytes = plan.memory[device].allocated() + plan.memory[device].mapped;
    if (!settings.drafts.prediction) return bytes;
    for (const Instance& it : plan.instances) {
        if (it.storage == 0 || it.device != device || it.place != Place::kMapped) continue;
        if (layer_of(plan.graph.storage(it.storage).name) < 0) bytes -= it.bytes;
    }
    return bytes;
}

// From what is free for the model.
void take_memory(const ModelSettings& settings, Machine& machine, const Plan& plan) {
    for (DeviceIndex device = 0; device < plan.devices.size(); ++device) {
        const uint64_t taken = own_bytes(settings, plan, device);
        const tsr_device_info* const info = machine.hardware.find(plan.devices[device]->id);
        if (info && taken > 0)
            machine.hardware.limit_memory(info->id, info->free_memory_bytes - std::min(taken, info->free_memory_bytes));
    }
}

}  // namespace

std::shared_ptr<session::DraftSource> load_draft_model(const ModelSettings& settings, Machine& machine,
                                                       const text::Tokenizer& tokenizer, DraftUse use,
                                                       const NoticeSink& say, const LoadProgress& progress) {
    if (!is_asked_for(settings.drafts)) return nullptr;
    Prepared prepared = prepare(settings, use, {});
    size_t vocabulary = tokenizer.size();
    if (!settings.drafts.prediction) {
        const auto own_tokenizer = make_tokenizer(prepared.model.file);
        session::check_same_vocabulary(tokenizer, *own_tokenizer);
        vocabulary = std::min(vocabulary, own_tokenizer->size());
    }
    for (const Notice& notice : prepared.notices) say(of_draft(settings, notice));
    std::unique_ptr<Engine> engine = load_engine(
        std::move(prepared.model), *prepared.machine, prepared.options, settings.drafts.context == 0, TSR_PAGE_TOKENS,
        false, [&](const Notice& notice) { say(of_draft(settings, notice)); }, progress);
    if (engine->context() < use.context)
        say(of_draft(
            settings,
            Notice(fmt::format(
                "its cache holds {} tokens, the model's {}: requests that find no room there have no drafts of it",
                engine->context(), use.context))));
    take_memory(settings, machine, engine->plan());
    // The machine outlives the engine.
    struct Held {
        std::unique_ptr<Machine> machine;
        std::unique_ptr<session::DraftSource> drafts;
    };
    const auto held = std::make_shared<Held>();
    held->machine = std::move(prepared.machine);
    const double least = settings.drafts.least_probability;
    if (settings.drafts.prediction) {
        held->drafts = std::make_unique<session::PredictionDrafts>(std::move(engine), vocabulary, least);
    } else {
        held->drafts = std::make_unique<session::ModelDrafts>(std::move(engine), vocabulary, least);
    }
    return {held, held->drafts.get()};
}

std::vector<std::string> plan_draft_model(const ModelSettings& settings, Machine& machine, DraftUse use,
                                          const std::optional<std::filesystem::path>& rig) {
    std::vector<std::string> lines;
    if (!is_asked_for(settings.drafts)) return lines;
    const Prepared prepared = prepare(settings, use, rig);
    const PlannedModel planned =
        plan_model(prepared.model.file, prepared.machine->registry, prepared.machine->hardware, prepared.options);
    const Plan& plan = planned.plan;
    for (const Notice& notice : prepared.notices) lines.push_back(of_draft(settings, notice).text);
    for (DeviceIndex device = 0; device < plan.devices.size(); ++device) {
        const uint64_t bytes = own_bytes(settings, plan, device);
        if (bytes == 0) continue;
        lines.push_back(fmt::format("{}{} takes {} of {} for a context of {} tokens, which the plan below leaves free",
                                    which(settings), prepared.model.path.filename().string(), size_text(bytes),
                                    plan.devices[device]->id, planned.context));
    }
    take_memory(settings, machine, plan);
    return lines;
}

}  // namespace tessera
