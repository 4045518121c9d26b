#include "core/text/special_tokens.hpp"

namespace tessera::text {

uint32_t SpecialTokens::child(uint32_t node, uint8_t byte) const {
    if (node == 0) return first_[byte];
    const auto found = children_.find(static_cast<uint64_t>(node) << 8 | byte);
    return found == children_.end() ? 0 : found->second;
}

void SpecialTokens::add(std::string_view text, Token token) {
    if (text.empty()) return;
    uint32_t node = 0;
    for (const char c : text) {
        const auto byte = static_cast<uint8_t>(c);
        uint32_t next = child(node, byte);
        if (next == 0) {
            next = static_cast<uint32_t>(token_at_.size());
            token_at_.push_back(kNoToken);
            if (node == 0) {
                first_[byte] = next;
            } else {
                children_.emplace(static_cast<uint64_t>(node) << 8 | byte, next);
            }
        }
        node = next;
    }
    if (token_at_[node] == kNoToken) token_at_[node] = token;
}

}  // namespace tessera::text
