#include "core/text/detokenizer.hpp"

#include "core/text/utf8.hpp"

namespace tessera::text {

std::string StreamingDetokenizer::push(Token token) {
    const std::string_view bytes = tokenizer_->bytes(token);
    if (tokenizer_->type(token) == TokenType::kControl && !show_control_) return {};
    held_ += bytes;
    std::string out;
    std::string_view rest = held_;
    while (!rest.empty()) {
        const size_t valid = utf8_valid_prefix(rest);
        out += rest.substr(0, valid);
        rest.remove_prefix(valid);
        if (rest.empty()) break;
        const Utf8Step step = utf8_step(rest);
        if (step.kind == Utf8Kind::kIncomplete) break;
        out += kReplacementCharacter;
        rest.remove_prefix(step.length);
    }
    held_.erase(0, held_.size() - rest.size());
    return out;
}

std::string StreamingDetokenizer::finish() {
    std::string out = utf8_replace_invalid(held_);
    held_.clear();
    return out;
}

}  // namespace tessera::text
