#include "core/session/sampling_stop_strings.hpp"

#include "core/base/error.hpp"

#include <algorithm>

namespace tessera::session {

StopStrings::StopStrings(std::span<const std::string> strings) {
    nodes_.emplace_back();
    for (size_t i = 0; i < strings.size(); ++i) {
        if (strings[i].empty())
            fail(TSR_INVALID_ARGUMENT, "stop string {} is empty; it would end every text before it begins", i);
        uint32_t node = 0;
        for (const char c : strings[i]) {
            const auto byte = static_cast<uint8_t>(c);
            uint32_t next = child(node, byte);
            if (next == 0) {
                next = static_cast<uint32_t>(nodes_.size());
                nodes_.emplace_back().depth = nodes_[node].depth + 1;
                auto& children = nodes_[node].children;
                children.insert(std::ranges::lower_bound(children, std::pair(byte, uint32_t{0})), {byte, next});
            }
            node = next;
        }
        if (nodes_[node].match < 0) {
            nodes_[node].match = static_cast<int>(i);
            nodes_[node].match_size = nodes_[node].depth;
        }
    }
    // Breadth first, so that shorter suffixes are known when they are needed.
    std::vector<uint32_t> queue{0};
    for (size_t at = 0; at < queue.size(); ++at) {
        const uint32_t node = queue[at];
        for (const auto& [byte, next] : nodes_[node].children) {
            nodes_[next].fail = node == 0 ? 0 : step(nodes_[node].fail, byte);
            const Node& suffix = nodes_[nodes_[next].fail];
            if (nodes_[next].match < 0) {
                nodes_[next].match = suffix.match;
                nodes_[next].match_size = suffix.match_size;
            }
            queue.push_back(next);
        }
    }
}

uint32_t StopStrings::child(uint32_t node, uint8_t byte) const {
    const auto& children = nodes_[node].children;
    const auto found = std::ranges::lower_bound(children, std::pair(byte, uint32_t{0}));
    return found != children.end() && found->first == byte ? found->second : 0;
}

uint32_t StopStrings::step(uint32_t node, uint8_t byte) const {
    for (;;) {
        if (const uint32_t next = child(node, byte)) return next;
        if (node == 0) return 0;
        node = nodes_[node].fail;
    }
}

bool StopStrings::push(std::string_view part, std::string& out) {
    if (stopped()) return true;
    for (size_t i = 0; i < part.size(); ++i) {
        state_ = step(state_, static_cast<uint8_t>(part[i]));
        if (nodes_[state_].match < 0) continue;
        match_ = nodes_[state_].match;
        held_ += part.substr(0, i + 1);
        held_.erase(held_.size() - nodes_[state_].match_size);
        out += held_;
        held_.clear();
        state_ = 0;
        return true;
    }
    held_ += part;
    const size_t safe = held_.size() - nodes_[state_].depth;
    out.append(held_, 0, safe);
    held_.erase(0, safe);
    return false;
}

void StopStrings::finish(std::string& out) {
    out += held_;
    held_.clear();
    state_ = 0;
}

void StopStrings::reset() {
    held_.clear();
    state_ = 0;
    match_ = -1;
}

}  // namespace tessera::session
