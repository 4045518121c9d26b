// What setters of the table of flags make of texts that are more than a number or a word. All throw WrongValue and
// RefusedValue.
#pragma once

#include "apps/flags/setter.hpp"
#include "core/setup/settings.hpp"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tessera::app {

inline constexpr int64_t kMaximumTokens = 1 << 26;

void add_plugin_folder(CommonSettings& common, std::string_view folder);
std::filesystem::path parse_file_name(std::string_view text);
void add_overrides(CommonSettings& common, std::string_view text);

void set_parallel(ModelSettings& settings, std::string_view text);
void add_stop(ModelSettings& settings, std::string_view text);
void add_bias(session::SamplingParameters& sampling, std::string_view text);

// none, ngram and its kinds of other programs, mtp, draft. None alone takes back --mtp.
void set_draft_types(DraftSettings& drafts, std::string_view text);

void keep_draft_experts(DraftSettings& drafts, std::string_view text);
void add_draft_rules(DraftSettings& drafts, std::string_view text);
uint32_t parse_threads(std::string_view text);
uint64_t parse_scratch(std::string_view mebibytes);
// "6,0.4"; "-1,0": no expert is left out.
ExpertReduction parse_expert_reduction(std::string_view text);
tsr_type parse_cache_type(std::string_view text);
void map_weights_if(EngineOptions& options, std::string_view text);
NumaMode parse_numa(std::string_view text);

// What other programs take for "as the model file says" is nothing: 0, or below it where 0 is a value.
std::optional<float> parse_rope_number(std::string_view text);
std::optional<float> parse_rope_share(std::string_view text);
std::optional<float> parse_rope_positive(std::string_view text);
std::optional<int64_t> parse_rope_context(std::string_view text);

int parse_gpu_layers(std::string_view text);
std::vector<double> parse_shares(std::string_view text);
std::optional<std::vector<std::string>> parse_gpus(std::string_view text);
std::vector<uint64_t> parse_margins(std::string_view mebibytes);
void add_tensor_rules(PlacementOptions& placement, std::string_view text);
void keep_experts(PlacementOptions& placement, std::string_view text);

// Numbers separated by commas or slashes.
std::vector<double> parse_numbers(std::string_view text, double minimum);
// "REGEX=DEVICE,REGEX=DEVICE": the regular expressions may hold commas and equals signs.
std::vector<TensorRule> parse_tensor_rules(std::string_view text);
// "KEY=TYPE:VALUE,KEY=TYPE:VALUE": a comma that no further key and type follow belongs to the value.
std::vector<std::string> split_overrides(std::string_view text);

}  // namespace tessera::app
