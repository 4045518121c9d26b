#include "core/session/generation.hpp"

namespace tessera::session {

std::string_view reason_name(FinishReason reason) noexcept {
    switch (reason) {
        case FinishReason::kEndOfText:
            return "end of text";
        case FinishReason::kStopString:
            return "stop string";
        case FinishReason::kLength:
            return "length";
        case FinishReason::kContextFull:
            return "context full";
        case FinishReason::kTimeUp:
            return "time up";
        case FinishReason::kEmbedded:
            return "embedded";
        case FinishReason::kCancelled:
            return "cancelled";
        case FinishReason::kFailed:
            return "failed";
    }
    return "";
}

}  // namespace tessera::session
