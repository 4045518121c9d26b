#include "core/text/sentencepiece.hpp"

#include "core/base/error.hpp"
#include "core/text/utf8.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

namespace tessera::text {

struct SentencePieceModel::Symbol {
    std::string_view text;  // empty once it has been joined to the one before
    uint32_t previous;
    uint32_t next;
};

struct SentencePieceModel::Candidate {
    float score;
    uint32_t at;
    uint32_t size;  // bytes of the joint text, by which a change of either side is detected
    Token token;

    // Heap order: highest score first, of equals the leftmost.
    bool operator<(const Candidate& other) const { return score != other.score ? score < other.score : at > other.at; }
};

// What is used again for every word.
struct SentencePieceModel::Work {
    std::vector<Symbol> symbols;
    std::vector<Candidate> heap;
};

namespace {

constexpr std::string_view kBlank = "\xE2\x96\x81";  // U+2581
constexpr uint32_t kNoPiece = std::numeric_limits<uint32_t>::max();

TokenType type_of(const VocabularyData& data, size_t id) {
    return data.types.empty() ? TokenType::kNormal : data.types[id];
}

// Where the next blank is that follows another character, from `from` on, or the end.
size_t next_word(std::string_view text, size_t from) {
    for (size_t at = from; (at = text.find(kBlank, at)) != text.npos; at += kBlank.size())
        if (at > from && !text.substr(0, at).ends_with(kBlank)) return at;
    return text.size();
}

}  // namespace

int parse_byte_token(std::string_view spelling) noexcept {
    if (spelling.size() != 6 || spelling.substr(0, 3) != "<0x" || spelling[5] != '>') return -1;
    int value = 0;
    for (const char c : spelling.substr(3, 2)) {
        const int digit = c >= '0' && c <= '9'   ? c - '0'
                          : c >= 'A' && c <= 'F' ? c - 'A' + 10
                          : c >= 'a' && c <= 'f' ? c - 'a' + 10
                                                 : -1;
        if (digit < 0) return -1;
        value = value * 16 + digit;
    }
    return value;
}

SentencePieceModel::SentencePieceModel(const VocabularyData& data) : data_(data) {
    if (data.scores.size() != data.tokens.size())
        fail(TSR_CORRUPT_DATA,
             "tokenizer.ggml.scores: a 'llama' vocabulary needs one score a token, expected {}, found {}",
             data.tokens.size(), data.scores.size());
    byte_tokens_.fill(kNoToken);
    pieces_.reserve(data.tokens.size());
    for (size_t id = 0; id < data.tokens.size(); ++id) {
        if (std::isnan(data.scores[id])) fail(TSR_CORRUPT_DATA, "tokenizer.ggml.scores: entry {} is not a number", id);
        const std::string& spelling = data.tokens[id];
        switch (type_of(data, id)) {
            case TokenType::kByte:
                if (const int byte = parse_byte_token(spelling); byte >= 0)
                    byte_tokens_[static_cast<size_t>(byte)] = static_cast<Token>(id);
                break;
            case TokenType::kNormal:
            case TokenType::kUserDefined:
            case TokenType::kUnused:
                if (spelling.empty()) break;
                pieces_.emplace(spelling, static_cast<Token>(id));
                blanks_begin_words_ = blanks_begin_words_ && next_word(spelling, 0) == spelling.size();
                longest_ = std::max(longest_, spelling.size());
                break;
            case TokenType::kUnknown:
            case TokenType::kControl:
                break;
        }
    }
}

void SentencePieceModel::encode(std::string_view text, bool prefix, bool one_blank, std::vector<Token>& out) const {
    if (one_blank) {
        text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
        text = text.substr(0, text.find_last_not_of(' ') + 1);
    }
    if (text.empty()) return;
    std::string escaped;
    escaped.reserve(text.size() + text.size() / 4 + kBlank.size());
    if (prefix) escaped += kBlank;
    for (size_t i = 0; i < text.size(); ++i) {
        if (text[i] != ' ') {
            escaped += text[i];
        } else if (!one_blank || text[i - 1] != ' ') {  // the first is none
            escaped += kBlank;
        }
    }
    if (escaped.size() >= kNoPiece)
        fail(TSR_DOES_NOT_FIT, "a text of {} bytes is more than the tokenizer can take", text.size());

    // Where no piece has a blank behind another character, words are joined with nothing, each by itself: small heaps.
    Work work;
    for (size_t at = 0; at < escaped.size();) {
        const size_t end = blanks_begin_words_ ? next_word(escaped, at) : escaped.size();
        encode_word(std::string_view(escaped).substr(at, end - at), work, out);
        at = end;
    }
}

void SentencePieceModel::encode_word(std::string_view word, Work& work, std::vector<Token>& out) const {
    std::vector<Symbol>& symbols = work.symbols;
    symbols.clear();
    for (std::string_view rest = word; !rest.empty();) {
        const size_t length = utf8_step(rest).length;  // an ill-formed part is a symbol that no piece matches
        const auto index = static_cast<uint32_t>(symbols.size());
        symbols.push_back({rest.substr(0, length), index == 0 ? kNoPiece : index - 1, index + 1});
        rest.remove_prefix(length);
    }
    symbols.back().next = kNoPiece;

    std::vector<Candidate>& heap = work.heap;
    heap.clear();
    // Where a piece of type "unused" was joined, so that it can be split again: bytes of its left part.
    boost::unordered_flat_map<std::string_view, size_t> unused_splits;
    const auto offer = [&](uint32_t at) {
        const uint32_t next = symbols[at].next;
        if (next == kNoPiece) return false;
        const std::string_view left = symbols[at].text;
        const size_t size = left.size() + symbols[next].text.size();
        if (size > longest_) return false;
        const std::string_view joined(left.data(), size);
        const auto found = pieces_.find(joined);
        if (found == pieces_.end()) return false;
        heap.push_back(
            {data_.scores[static_cast<size_t>(found->second)], at, static_cast<uint32_t>(size), found->second});
        if (type_of(data_, static_cast<size_t>(found->second)) == TokenType::kUnused)
            unused_splits.emplace(joined, left.size());
        return true;
    };
    for (uint32_t i = 0; i + 1 < symbols.size(); ++i) offer(i);
    std::ranges::make_heap(heap, std::less());
    while (!heap.empty()) {
        std::ranges::pop_heap(heap, std::less());
        const Candidate best = heap.back();
        heap.pop_back();
        Symbol& left = symbols[best.at];
        if (left.text.empty() || left.next == kNoPiece ||
            left.text.size() + symbols[left.next].text.size() != best.size)
            continue;
        Symbol& right = symbols[left.next];
        left.text = {left.text.data(), best.size};
        left.next = right.next;
        right.text = {};
        if (left.next != kNoPiece) symbols[left.next].previous = best.at;
        if (left.previous != kNoPiece && offer(left.previous)) std::ranges::push_heap(heap, std::less());
        if (offer(best.at)) std::ranges::push_heap(heap, std::less());
    }
    for (uint32_t i = 0; i != kNoPiece; i = symbols[i].next) emit(symbols[i].text, unused_splits, out);
}

void SentencePieceModel::emit(std::string_view piece,
                              const boost::unordered_flat_map<std::string_view, size_t>& unused_splits,
                              std::vector<Token>& out) const {
    const auto found = pieces_.find(piece);
    if (found != pieces_.end()) {
        const auto split = unused_splits.find(piece);
        if (type_of(data_, static_cast<size_t>(found->second)) != TokenType::kUnused || split == unused_splits.end()) {
            out.push_back(found->second);
            return;
        }
        // As deep as a piece is long at most, since each part is shorter.
        emit(piece.substr(0, split->second), unused_splits, out);
        emit(piece.substr(split->second), unused_splits, out);
        return;
    }
    const bool spelt =
        std::ranges::all_of(piece, [&](char c) { return byte_tokens_[static_cast<uint8_t>(c)] != kNoToken; });
    if (spelt) {
        for (const char c : piece) out.push_back(byte_tokens_[static_cast<uint8_t>(c)]);
    } else if (data_.unk != kNoToken) {
        out.push_back(data_.unk);
    } else {
        fail(TSR_UNSUPPORTED,
             "the vocabulary has no token for '{}', none for its bytes (<0xNN>) and no tokenizer.ggml.unknown_token_id",
             utf8_replace_invalid(piece));
    }
}

}  // namespace tessera::text
