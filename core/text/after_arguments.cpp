#include "core/text/after_arguments.hpp"

#include "core/text/json_text.hpp"

#include <string_view>

namespace tessera::text {

AfterArguments::Kind AfterArguments::read(char c) {
    constexpr std::string_view kSeparators = ",;", kSuperfluous = "}]\"`";
    const bool separates = is_json_space(c) || kSeparators.find(c) != kSeparators.npos;
    held_ += c;
    if (opened_) {
        if (is_json_space(c)) return Kind::kUndecided;
        is_object_ = c == '"' || c == '}';
        return is_object_ ? Kind::kCall : Kind::kContent;
    }
    if (c == '{' && separates_) {
        opened_ = true;
        object_ = held_.size() - 1;
        return Kind::kUndecided;
    }
    separates_ &= separates;
    return separates || kSuperfluous.find(c) != kSuperfluous.npos ? Kind::kUndecided : Kind::kContent;
}

std::string AfterArguments::take() {
    std::string text = held_.substr(is_object_ ? object_ : 0);
    begin();
    return text;
}

}  // namespace tessera::text
