#include "core/text/bpe.hpp"

#include "core/base/error.hpp"
#include "core/base/text.hpp"

#include <algorithm>
#include <limits>

namespace tessera::text {
namespace {

uint64_t pair_key(Token left, Token right) {
    return static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32 | static_cast<uint32_t>(right);
}

// Words are made of these; control, user-defined and unknown tokens never result from merging.
bool is_word_part(const VocabularyData& data, size_t id) {
    if (data.types.empty()) return true;
    const TokenType type = data.types[id];
    return type == TokenType::kNormal || type == TokenType::kUnused || type == TokenType::kByte;
}

constexpr uint32_t kEnd = std::numeric_limits<uint32_t>::max();

struct Symbol {
    Token token;
    uint32_t previous;
    uint32_t next;
};

struct Candidate {
    int32_t rank;
    uint32_t at;
    Token left;
    Token right;
    Token result;
};

// Heap order: best rank first, of equals the leftmost.
bool worse(const Candidate& a, const Candidate& b) {
    return a.rank != b.rank ? a.rank > b.rank : a.at > b.at;
}

}  // namespace

BytePairModel::BytePairModel(const VocabularyData& data, const std::vector<std::string>& bytes, const Rules& rules,
                             std::vector<std::string>& notes)
    : bytes_(&bytes), rules_(rules) {
    byte_tokens_.fill(kNoToken);
    for (size_t id = 0; id < bytes.size(); ++id) {
        if (!is_word_part(data, id) || bytes[id].empty()) continue;
        const bool is_byte = !data.types.empty() && data.types[id] == TokenType::kByte;
        if (bytes[id].size() == 1 && (is_byte || !rules.characters)) {
            Token& slot = byte_tokens_[static_cast<uint8_t>(bytes[id][0])];
            if (slot == kNoToken) slot = static_cast<Token>(id);
        }
        if ((rules.whole_words || rules.ranks_are_ids || rules.characters) && !(is_byte && rules.characters))
            by_bytes_.emplace(bytes[id], static_cast<Token>(id));
        longest_ = std::max(longest_, bytes[id].size());
    }
    if (!rules.ranks_are_ids) add_merges(data, notes);
}

void BytePairModel::add_merges(const VocabularyData& data, std::vector<std::string>& notes) {
    boost::unordered_flat_map<std::string_view, Token> by_text;
    by_text.reserve(data.tokens.size());
    for (size_t id = 0; id < data.tokens.size(); ++id) {
        const auto [place, is_new] = by_text.emplace(data.tokens[id], static_cast<Token>(id));
        // Padding tokens may repeat a text; the normal token wins.
        if (!is_new && is_word_part(data, id) && !is_word_part(data, static_cast<size_t>(place->second)))
            place->second = static_cast<Token>(id);
    }
    const auto token_of = [&](std::string_view text) {
        const auto found = by_text.find(text);
        return found == by_text.end() ? kNoToken : found->second;
    };
    size_t left_out = 0;
    merges_.reserve(data.merges.size());
    std::string joined;
    for (size_t i = 0; i < data.merges.size(); ++i) {
        const std::string_view entry = data.merges[i];
        const size_t blank = entry.find(' ');
        if (blank == std::string_view::npos || blank == 0 || blank + 1 == entry.size() ||
            entry.find(' ', blank + 1) != std::string_view::npos)
            fail(TSR_CORRUPT_DATA,
                 "tokenizer.ggml.merges: entry {} is '{}', expected two tokens with one blank between them", i,
                 printable(entry, 60));
        joined.assign(entry.substr(0, blank)).append(entry.substr(blank + 1));
        const Token left = token_of(entry.substr(0, blank)), right = token_of(entry.substr(blank + 1));
        const Token result = token_of(joined);
        if (left == kNoToken || right == kNoToken || result == kNoToken) {
            const std::string_view missing = left == kNoToken    ? entry.substr(0, blank)
                                             : right == kNoToken ? entry.substr(blank + 1)
                                                                 : std::string_view(joined);
            if (left_out++ == 0) {
                notes.push_back(
                    fmt::format("tokenizer.ggml.merges: entry {} is '{}', but there is no token '{}': left out", i,
                                printable(entry, 60), printable(missing, 60)));
            }
            continue;
        }
        merges_.emplace(pair_key(left, right), Merge{static_cast<int32_t>(i), result});
    }
    if (left_out > 1) notes.back() += fmt::format(", as are {} more of {}", left_out - 1, data.merges.size());
}

bool BytePairModel::find_merge(Token left, Token right, Merge& found) const {
    if (left < 0 || right < 0) return false;
    if (!rules_.ranks_are_ids) {
        const auto place = merges_.find(pair_key(left, right));
        if (place == merges_.end()) return false;
        found = place->second;
        return true;
    }
    const std::string& a = (*bytes_)[static_cast<size_t>(left)];
    const std::string& b = (*bytes_)[static_cast<size_t>(right)];
    if (a.size() + b.size() > longest_) return false;
    const auto place = by_bytes_.find(a + b);
    if (place == by_bytes_.end()) return false;
    found = {place->second, place->second};
    return true;
}

void BytePairModel::refuse_word(size_t bytes) {
    fail(TSR_DOES_NOT_FIT,
         "a single word of {} bytes, without a blank or a change of kind, is more than the {} that "
         "the tokenizer takes",
         bytes, kLongestWord);
}

void BytePairModel::merge(std::vector<Token>& out, size_t first) const {
    const size_t count = out.size() - first;
    if (count < 2) return;
    std::vector<Symbol> symbols(count);
    std::vector<Candidate> heap;
    heap.reserve(count);
    const auto offer = [&](uint32_t at) {
        const uint32_t next = symbols[at].next;
        Merge merge;
        if (next == kEnd || !find_merge(symbols[at].token, symbols[next].token, merge)) return false;
        heap.push_back({merge.rank, at, symbols[at].token, symbols[next].token, merge.result});
        return true;
    };
    for (uint32_t i = 0; i < count; ++i)
        symbols[i] = {out[first + i], i == 0 ? kEnd : i - 1, i + 1 == count ? kEnd : i + 1};
    for (uint32_t i = 0; i + 1 < count; ++i) offer(i);
    std::ranges::make_heap(heap, worse);

    while (!heap.empty()) {
        std::ranges::pop_heap(heap, worse);
        const Candidate best = heap.back();
        heap.pop_back();
        Symbol& left = symbols[best.at];
        // Stale if either side has been joined to something else since; a symbol that was swallowed holds no token.
        if (left.token != best.left || left.next == kEnd || symbols[left.next].token != best.right) continue;
        Symbol& right = symbols[left.next];
        left.token = best.result;
        left.next = right.next;
        right.token = kNoToken;
        if (left.next != kEnd) symbols[left.next].previous = best.at;
        if (left.previous != kEnd && offer(left.previous)) std::ranges::push_heap(heap, worse);
        if (offer(best.at)) std::ranges::push_heap(heap, worse);
    }
    size_t kept = first;
    for (uint32_t i = 0; i != kEnd; i = symbols[i].next) out[kept++] = symbols[i].token;
    out.resize(kept);
}

}  // namespace tessera::text
