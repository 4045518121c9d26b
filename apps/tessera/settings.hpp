// What a command line asks for, in the terms of the core.
#pragma once

#include "apps/tessera/arguments.hpp"
#include "core/gguf/metadata.hpp"
#include "core/session/engine.hpp"
#include "core/session/sampler.hpp"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace tessera::app {

// What every command has.
struct CommonSettings {
    bool verbose = false;
    std::optional<std::filesystem::path> config;
    std::vector<std::filesystem::path> plugin_folders;
    std::optional<std::filesystem::path> model;  // none: the bundled one
    std::vector<gguf::Override> overrides;
};

struct ModelSettings {
    CommonSettings common;
    EngineOptions engine;             // without context, sequences and the config's placement rules
    std::optional<uint32_t> context;  // -c
    std::optional<int64_t> predict;   // -n: none, or below 0, is until the end
    uint32_t parallel = 1;
    bool value_type_given = false;   // -ctv
    std::optional<std::string> mla;  // -mla

    session::SamplingParameters sampling;
    bool temperature_given = false;
    bool seed_given = false;
    bool ignore_end = false;
    std::vector<std::string> stop;

    std::optional<std::string> prompt;  // with -e done
    std::optional<std::string> file;
    std::optional<std::string> system;
    std::optional<std::string> chat_template;
    std::optional<bool> chat;  // --chat or --raw
    bool escape = false;
    bool special = false;
    bool verbose_prompt = false;
};

// Both throw UsageError for values that cannot be.
CommonSettings read_common(Arguments& arguments);
ModelSettings read_model_settings(Arguments& arguments);

// "REGEX=DEVICE,REGEX=DEVICE": the regular expressions may hold commas and equals signs. Throws UsageError.
std::vector<TensorRule> parse_tensor_rules(std::string_view text);

// \n, \r, \t, \\, \", \' and \xNN become what they stand for; any other backslash stays.
std::string unescape(std::string_view text);

// A line of -p, -n, ... that a plan does not depend on; empty if there is none.
std::string idle_in_plan(const Arguments& arguments);

}  // namespace tessera::app
