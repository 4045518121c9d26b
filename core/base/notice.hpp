// What a user is told about settings of his, and what he could do. The core knows settings by what they mean; how they
// are spelt, and by which command something is done, an application says (apps/wording).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace tessera {

// A setting that a message is about.
enum class Setting : uint8_t {
    kDevices,        // GPUs that are used
    kOneDevice,      // the only one
    kDeviceMargins,  // memory of each that stays free
    kGpuLayers,
    kTensorSplit,
    kTensorRules,  // which weights go where
    kThreads,
    kNuma,
    kLatentAttention,
    kValueCacheType,
    kValueBasis,
    kExpertReduction,
    kPluginFolder,
    kRig,
    kMetadata,  // keys that the user sets in place of the file's
    kRopeScale,
    kYarnOriginalContext,
    kYarnExtFactor,
    kYarnAttnFactor,
    kYarnBetaFast,
    kYarnBetaSlow,
};
inline constexpr size_t kSettings = static_cast<size_t>(Setting::kYarnBetaSlow) + 1;

// What the user could do. In parentheses: what Advice::value is.
enum class AdviceCode : uint8_t {
    kLeaveOut,        // the setting that the message is about
    kWeightsInPlace,  // weights are used as the file has them (not empty: they are already)
    kExpertsOnCpu,    // (bytes that routed experts take)
    kFewerGpuLayers,
    kSmallerContext,  // (bytes that the cache takes)
    kLargerContext,
    kShorterPrompt,
    kSmallerSteps,  // fewer rows, or less scratch memory for attention
    kSmallerModel,
    kFreeTheCard,   // of other processes
    kStartAgain,    // another plan uses what is free then
    kLargerMargin,  // the same with it (MiB)
    kFewerThreads,
    kMoreProcesses,    // a higher limit of the system
    kSpreadOverNodes,  // of NUMA
    kPackAtLoad,
    kNameModel,
    kNamePluginFolder,
    kSeeWhyNotUsed,  // of plugins
    kBuildForCuda,
    kCheckFile,      // all values of the model's file (a cache's type, which may be the cause)
    kRopeScaling,    // (types of scaling)
    kOtherMetadata,  // another value of a key ("KEY=TYPE:VALUE", or empty)
    kAllowUnused,    // tensors and keys of the file
    kNameTemplate,   // a chat template (names)
    kRawPrompt,      // without a chat template
    kSeeAllNotes,
};
inline constexpr size_t kAdviceCodes = static_cast<size_t>(AdviceCode::kSeeAllNotes) + 1;

struct Advice {
    AdviceCode code;
    std::string value;

    friend bool operator==(const Advice&, const Advice&) = default;
};

struct Notice {
    std::string text;  // complete without what follows
    std::vector<Advice> advice;
    std::vector<Setting> about;  // settings that the text is on
    std::string value;           // of them, as the user gave it

    Notice() = default;
    Notice(std::string line, std::vector<Advice> what_to_do = {})
        : text(std::move(line)), advice(std::move(what_to_do)) {}

    static Notice on(Setting setting, std::string given, std::string line, std::vector<Advice> what_to_do = {}) {
        Notice notice(std::move(line), std::move(what_to_do));
        notice.about = {setting};
        notice.value = std::move(given);
        return notice;
    }

    friend bool operator==(const Notice&, const Notice&) = default;
};

}  // namespace tessera
