#include "core/text/pretokenizer.hpp"

namespace tessera::text {
namespace {

bool continues_character(char c) {
    return (static_cast<uint8_t>(c) & 0xC0) == 0x80;
}

size_t character_after(std::string_view text, size_t at) {
    do ++at;
    while (at < text.size() && continues_character(text[at]));
    return at;
}

size_t characters(std::string_view text) {
    size_t count = 0;
    for (const char c : text) count += !continues_character(c);
    return count;
}

}  // namespace

Pretokenizer::Pretokenizer(const std::vector<SplitStep>& steps) {
    steps_.reserve(steps.size());
    for (const SplitStep& step : steps) steps_.push_back({step.kind, SplitAutomaton(step.expression)});
}

std::vector<std::string_view> Pretokenizer::split(std::string_view text) const {
    std::vector<std::string_view> pretokens;
    split(text, [&](std::string_view pretoken) {
        pretokens.push_back(pretoken);
        return true;
    });
    return pretokens;
}

void Pretokenizer::split(std::string_view text, const std::function<bool(std::string_view)>& use) const {
    if (!text.empty()) split_pretoken(0, text, use);
}

// False: `use` has had enough.
bool Pretokenizer::split_pretoken(size_t step, std::string_view pretoken,
                                  const std::function<bool(std::string_view)>& use) const {
    if (step == steps_.size()) return use(pretoken);
    const auto& [kind, automaton] = steps_[step];
    size_t from = 0;     // where the search continues
    size_t pending = 0;  // start of the gap that has not been passed on
    const auto pass_on = [&](size_t end) {
        const std::string_view part = pretoken.substr(pending, end - pending);
        pending = end;
        return part.empty() || split_pretoken(step + 1, part, use);
    };
    while ((from = automaton.skip(pretoken, from)) < pretoken.size()) {
        const size_t end = automaton.match(pretoken, from);
        if (end == from) {
            from = character_after(pretoken, from);
            continue;
        }
        if (kind != SplitStep::Kind::kCutBeforeThousands && !pass_on(from)) return false;
        if (kind != SplitStep::Kind::kMatches) {
            size_t left = characters(pretoken.substr(from, end - from));
            for (size_t at = from; at < end; --left) {
                if (left % 3 == 0 && !pass_on(at)) return false;
                at = character_after(pretoken, at);
            }
        }
        if (kind != SplitStep::Kind::kCutBeforeThousands && !pass_on(end)) return false;
        from = end;
    }
    return pass_on(pretoken.size());
}

}  // namespace tessera::text
