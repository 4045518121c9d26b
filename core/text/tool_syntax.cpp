// Names of the ways to write calls.
#include "core/text/reply_parser.hpp"

namespace tessera::text {

// Without a default, so that the compiler names one that is missing.
const char* name_of(ToolSyntax syntax) noexcept {
    switch (syntax) {
        case ToolSyntax::kNone:
            return "none";
        case ToolSyntax::kDeepSeekV3:
            return "deepseek-v3";
        case ToolSyntax::kDeepSeekV31:
            return "deepseek-v3.1";
        case ToolSyntax::kDeepSeekV32:
            return "deepseek-v3.2";
        case ToolSyntax::kHermes:
            return "hermes";
        case ToolSyntax::kLlama3:
            return "llama3";
        case ToolSyntax::kDeepSeekV4:
            return "deepseek-v4";
        case ToolSyntax::kKimi:
            return "kimi";
        case ToolSyntax::kGlm:
            return "glm";
        case ToolSyntax::kQwenXml:
            return "qwen-xml";
        case ToolSyntax::kSeedXml:
            return "seed";
        case ToolSyntax::kMiniMax:
            return "minimax";
        case ToolSyntax::kFunctionary:
            return "functionary";
        case ToolSyntax::kMistral:
            return "mistral";
        case ToolSyntax::kMistralNamed:
            return "mistral-named";
        case ToolSyntax::kGranite:
            return "granite";
        case ToolSyntax::kGemma:
            return "gemma";
        case ToolSyntax::kLfm2:
            return "lfm2";
        case ToolSyntax::kNemotron:
            return "nemotron";
        case ToolSyntax::kApriel:
            return "apriel";
        case ToolSyntax::kCommandR:
            return "command-r";
        case ToolSyntax::kGigaChat:
            return "gigachat";
        case ToolSyntax::kFireFunction:
            return "firefunction";
        case ToolSyntax::kActions:
            return "actions";
        case ToolSyntax::kChannels:
            return "channels";
        case ToolSyntax::kApertus:
            return "apertus";
        case ToolSyntax::kGigaChat31:
            return "gigachat-3.1";
        case ToolSyntax::kRecipient:
            return "functionary-3.2";
        case ToolSyntax::kKimiK3:
            return "kimi-k3";
        case ToolSyntax::kMiniMaxM1:
            return "minimax-m1";
        case ToolSyntax::kMiniMaxM3:
            return "minimax-m3";
        case ToolSyntax::kMuse:
            return "muse";
        case ToolSyntax::kMiniCpm:
            return "minicpm";
        case ToolSyntax::kHunyuan:
            return "hunyuan";
        case ToolSyntax::kHunyuanOpen:
            return "hunyuan-open";
        case ToolSyntax::kSolar:
            return "solar";
    }
    return "none";
}

}  // namespace tessera::text
