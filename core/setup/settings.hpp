// A user's settings, in the terms of the core.
#pragma once

#include "core/gguf/metadata.hpp"
#include "core/model/rope_settings.hpp"
#include "core/session/drafts/draft_options.hpp"
#include "core/session/engine.hpp"
#include "core/session/sampler.hpp"
#include "core/text/python_json.hpp"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tessera {

// GPUs that a user leaves out, and memory of them that is to stay free.
struct DeviceChoice {
    std::optional<std::vector<std::string>> gpus;  // ids (-dev); in the order in which -ts names shares; none: all
    std::optional<uint32_t> only;                  // one GPU alone, by its place among those (-sm none, -mg)
    std::vector<uint64_t> margins;  // bytes of each GPU that stay free (-fitt); the last is that of the others too
};

// Settings of all commands.
struct CommonSettings {
    bool verbose = false;
    std::optional<std::filesystem::path> config;
    std::vector<std::filesystem::path> plugin_folders;
    std::optional<std::filesystem::path> model;  // none: the bundled one
    std::vector<gguf::Override> overrides;
    RopeSettings rope;
    DeviceChoice devices;
};

// Drafts of answers, which change how fast they come and not what they are.
struct DraftSettings {
    bool repeat = false;                    // what prompt and answer have (--spec-type ngram)
    uint32_t most = session::kMostDrafted;  // tokens of one
    uint32_t least = 1;                     // a shorter one is not verified

    // The draft model, or the model's own layer that predicts further tokens (--mtp), with what is said of it alone;
    // all else is as of the model.
    std::optional<std::filesystem::path> model;
    bool prediction = false;
    double least_probability = 0;  // a less likely token ends a draft
    uint32_t context = 0;          // tokens that its cache holds; 0: as many as the model's, or as fit
    uint32_t threads = 0, prompt_threads = 0;
    std::optional<std::vector<std::string>> gpus;
    int gpu_layers = PlacementOptions().gpu_layers;
    int cpu_expert_layers = 0;
    std::vector<TensorRule> rules;
    tsr_type cache_type_k = TSR_TYPE_F16, cache_type_v = TSR_TYPE_F16;

    bool any() const noexcept { return most > 0 && (repeat || model || prediction); }
};

struct ModelSettings {
    CommonSettings common;
    EngineOptions engine;             // without context, sequences and the config's placement rules
    std::optional<uint32_t> context;  // -c
    std::optional<int64_t> predict;   // -n: none, or below 0, is until the end
    uint32_t parallel = 1;
    bool check_values = false;                    // all weights are read before the load, and NaN and infinity refused
    bool value_type_given = false;                // -ctv
    std::optional<std::string> latent_attention;  // lowering of latent attention (-mla)

    DraftSettings drafts;

    session::SamplingParameters sampling;
    std::vector<std::string_view> sampling_given;  // what the user set of it: names of fields, and "sequence"
    bool seed_given = false;
    bool ignore_end = false;
    std::vector<std::string> stop;
    std::optional<std::string> grammar;                       // GBNF that answers are held to
    std::optional<std::string> json_schema;                   // the same
    std::optional<std::filesystem::path> structured_library;  // llguidance's; none: the one that is installed

    std::optional<std::string> prompt;  // with -e done
    std::optional<std::string> file;
    std::optional<std::string> system;
    std::optional<std::string> chat_template;       // of a built-in one
    std::optional<std::string> chat_template_text;  // a Jinja program
    std::vector<text::PythonMember> template_variables;
    std::optional<bool> thinking;             // before the answer, if the template supports it
    std::optional<int64_t> reasoning_budget;  // tokens of thinking at most; none or negative: any number
    std::optional<bool> chat;                 // --chat or --raw
    bool parse_special = true;                // control tokens written out in a raw prompt
    bool add_bos = true;                      // before a raw prompt, where the vocabulary asks for it
    bool single_turn = false;                 // a conversation of one question
    bool timings = true;                      // are reported at the end
    bool escape = false;
    bool special = false;
    bool verbose_prompt = false;
};

}  // namespace tessera
