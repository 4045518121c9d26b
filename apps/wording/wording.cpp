#include "apps/wording/wording.hpp"

#include <spdlog/fmt/fmt.h>

namespace tessera {
namespace {

// What Advice says, as something to do.
std::string clause(const Advice& advice) {
    const std::string& value = advice.value;
    const auto with_bytes = [&](std::string_view to_do, std::string_view what) {
        return value.empty() ? std::string(to_do) : fmt::format("{} ({} {})", to_do, what, value);
    };
    switch (advice.code) {
        case AdviceCode::kLeaveOut:
            return "leave it out";
        case AdviceCode::kWeightsInPlace:
            return value.empty() ? "use the weights as they lie in the file with -nr" : "-nr asks for the same";
        case AdviceCode::kExpertsOnCpu:
            return with_bytes("keep routed experts on the CPU with --cpu-moe", "they take");
        case AdviceCode::kFewerGpuLayers:
            return "try a smaller -ngl";
        case AdviceCode::kSmallerContext:
            return with_bytes("try a smaller -c", "the cache takes");
        case AdviceCode::kLargerContext:
            return "allow more with a larger -c";
        case AdviceCode::kShorterPrompt:
            return "shorten the prompt";
        case AdviceCode::kSmallerSteps:
            return "try a smaller -ub or -amb";
        case AdviceCode::kSmallerModel:
            return "take a smaller model";
        case AdviceCode::kFreeTheCard:
            return "end what else uses the card";
        case AdviceCode::kStartAgain:
            return "start again to plan with what is left";
        case AdviceCode::kLargerMargin:
            return fmt::format("start again with -fitt {}, which leaves so many MiB more for it", value);
        case AdviceCode::kFewerThreads:
            return "use fewer threads with -t";
        case AdviceCode::kMoreProcesses:
            return "raise the limit (ulimit -u)";
        case AdviceCode::kSpreadOverNodes:
            return "--numa distribute uses the memory and the cores of all alike";
        case AdviceCode::kPackAtLoad:
            return "-rtr packs them before the first";
        case AdviceCode::kNameModel:
            return "name a model with -m FILE";
        case AdviceCode::kNamePluginFolder:
            return "name a folder with --plugin-dir";
        case AdviceCode::kSeeWhyNotUsed:
            return "'tessera plugins --why' says why";
        case AdviceCode::kBuildForCuda:
            return "'tools/setup --cuda' and 'tools/build release -DTSR_CUDA=ON' build those for NVIDIA GPUs";
        case AdviceCode::kCheckFile:
            if (value.empty()) return "'tessera inspect --check' lists all broken weights";
            return fmt::format(
                "keys or values may be beyond the range of {}, the cache's type: -ctk bf16 -ctv bf16 hold them; if "
                "they "
                "are not, 'tessera inspect --check' lists all broken weights",
                value);
        case AdviceCode::kRopeScaling:
            return fmt::format("give --rope-scaling {}", value);
        case AdviceCode::kOtherMetadata:
            return value.empty() ? "set another value with --override-kv"
                                 : fmt::format("set another with --override-kv {}", value);
        case AdviceCode::kAllowUnused:
            return "go on without with --allow-unused-tensors";
        case AdviceCode::kNameTemplate:
            return value.empty() ? "name one with --chat-template"
                                 : fmt::format("name one with --chat-template, of {}", value);
        case AdviceCode::kRawPrompt:
            return "give the prompt as it is with --raw";
        case AdviceCode::kSeeAllNotes:
            return "-v shows them";
    }
    return {};
}

}  // namespace

std::string_view flag_of(Setting setting) noexcept {
    switch (setting) {
        case Setting::kDevices:
            return "-dev";
        case Setting::kOneDevice:
            return "-mg";
        case Setting::kDeviceMargins:
            return "-fitt";
        case Setting::kGpuLayers:
            return "-ngl";
        case Setting::kTensorSplit:
            return "-ts";
        case Setting::kTensorRules:
            return "-ot";
        case Setting::kThreads:
            return "-t";
        case Setting::kNuma:
            return "--numa";
        case Setting::kLatentAttention:
            return "-mla";
        case Setting::kValueCacheType:
            return "-ctv";
        case Setting::kValueBasis:
            return "-vhad";
        case Setting::kExpertReduction:
            return "-ser";
        case Setting::kPluginFolder:
            return "--plugin-dir";
        case Setting::kRig:
            return "--rig";
        case Setting::kMetadata:
            return "--override-kv";
        case Setting::kRopeScale:
            return "--rope-scale";
        case Setting::kYarnOriginalContext:
            return "--yarn-orig-ctx";
        case Setting::kYarnExtFactor:
            return "--yarn-ext-factor";
        case Setting::kYarnAttnFactor:
            return "--yarn-attn-factor";
        case Setting::kYarnBetaFast:
            return "--yarn-beta-fast";
        case Setting::kYarnBetaSlow:
            return "--yarn-beta-slow";
    }
    return {};
}

std::string worded(const Notice& notice) {
    std::string text;
    for (const Setting setting : notice.about) text += fmt::format("{}{}", text.empty() ? "" : ", ", flag_of(setting));
    if (!notice.value.empty()) text += " " + notice.value;
    if (!text.empty()) text += ": ";
    text += notice.text;
    for (size_t i = 0; i < notice.advice.size(); ++i) {
        text += i == 0 ? "; " : i + 1 == notice.advice.size() ? " or " : ", ";
        text += clause(notice.advice[i]);
    }
    return text;
}

std::string worded(const Error& error) {
    const std::string text = worded(error.notice());
    return error.code() == TSR_DEVICE_LOST ? text + " (-dev lists the devices to use)" : text;
}

}  // namespace tessera
