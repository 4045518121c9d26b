#include "core/text/tokenizer.hpp"

#include "core/base/error.hpp"
#include "core/base/text.hpp"
#include "core/text/bpe.hpp"
#include "core/text/byte_level.hpp"
#include "core/text/known_tokens.hpp"
#include "core/text/nfc.hpp"
#include "core/text/pretokenizer.hpp"
#include "core/text/sentencepiece.hpp"
#include "core/text/special_tokens.hpp"
#include "core/text/utf8.hpp"

#include <spdlog/fmt/ranges.h>

#include <algorithm>
#include <array>
#include <limits>
#include <optional>

namespace tessera::text {
namespace {

constexpr std::string_view kBlankLetter = "\u2581";
constexpr std::string_view kByteLevelModel = "gpt2", kSentencePieceModel = "llama", kGemma4Model = "gemma4";

// What others have besides: of encoders, of embedding models, or of architectures that are not known here.
struct OtherModel {
    std::string_view name, kind;
};
constexpr OtherModel kOtherModels[] = {
    {"t5", "SentencePiece's unigrams"},
    {"bert", "WordPiece"},
    {"rwkv", "the longest token of RWKV's World"},
    {"plamo2", "PLaMo 2's best path over suffixes"},
    {"hybriddna", "BPE with k-mers of DNA"},
    {"whitespace", "words between blanks"},
    {"none", "a model without a vocabulary"},
    {"no_vocab", "a model without a vocabulary"},
};

std::string replace_all(std::string_view text, std::string_view from, char to) {
    std::string out;
    out.reserve(text.size());
    for (size_t hit; (hit = text.find(from)) != std::string_view::npos; text.remove_prefix(hit + from.size())) {
        out += text.substr(0, hit);
        out += to;
    }
    out += text;
    return out;
}

// Whether the id is that of a token or none.
bool is_known(Token id, size_t size) {
    return id == kNoToken || (id >= 0 && static_cast<size_t>(id) < size);
}

// Ends and beginnings shape every text, so that a wrong one is an error; who knows better can say so.
void check_id(Token id, const char* key, size_t size) {
    if (is_known(id, size)) return;
    fail(TSR_CORRUPT_DATA,
         Notice(fmt::format("tokenizer.ggml.{}: expected a token below {}, or -1 for none, found {}", key, size, id),
                {{AdviceCode::kOtherMetadata, fmt::format("tokenizer.ggml.{}=int:N", key)}}));
}

void drop_if_unknown(Token& id, const char* key, size_t size, std::vector<std::string>& notes) {
    if (is_known(id, size)) return;
    notes.push_back(fmt::format("tokenizer.ggml.{} is {}, but there are {} tokens: taken as none", key, id, size));
    id = kNoToken;
}

void settle_types(VocabularyData& data) {
    constexpr int32_t kUndefined = 0, kLast = static_cast<int32_t>(TokenType::kByte);
    size_t undefined = 0;
    for (size_t id = 0; id < data.types.size(); ++id) {
        const auto value = static_cast<int32_t>(data.types[id]);
        if (value < kUndefined || value > kLast)
            fail(TSR_CORRUPT_DATA, "tokenizer.ggml.token_type: expected 1 to {}, found {} for token {}", kLast, value,
                 id);
        if (value != kUndefined) continue;
        data.types[id] = TokenType::kNormal;
        if (undefined++ == 0)
            data.notes.push_back(
                fmt::format("tokenizer.ggml.token_type is 0 (undefined) for token {}: taken as normal", id));
    }
    if (undefined > 1) data.notes.back() += fmt::format(", as are {} more", undefined - 1);
}

// Checks the vocabulary and mends what is not needed.
void settle_vocabulary(VocabularyData& data) {
    if (data.model != kByteLevelModel && data.model != kSentencePieceModel && data.model != kGemma4Model) {
        const auto* const other = std::ranges::find(kOtherModels, data.model, &OtherModel::name);
        fail(
            TSR_UNSUPPORTED,
            "tokenizer.ggml.model: expected 'gpt2' (byte-level BPE), 'llama' (SentencePiece's BPE) or 'gemma4' (BPE "
            "over characters), found '{}'{}",
            printable(data.model, 60),
            other == std::end(kOtherModels) ? "" : fmt::format(" ({}), which this version does not have", other->kind));
    }
    const size_t size = data.tokens.size();
    if (size == 0) fail(TSR_CORRUPT_DATA, "tokenizer.ggml.tokens: the vocabulary is empty");
    if (size > static_cast<size_t>(std::numeric_limits<Token>::max()))
        fail(TSR_CORRUPT_DATA, "tokenizer.ggml.tokens: {} tokens are more than can be numbered", size);
    if (!data.types.empty() && data.types.size() != size)
        fail(TSR_CORRUPT_DATA, "tokenizer.ggml.token_type: expected {} entries, one a token, found {}", size,
             data.types.size());
    settle_types(data);
    if (data.add_bos == false) {
        drop_if_unknown(data.bos, "bos_token_id", size, data.notes);
    } else {
        check_id(data.bos, "bos_token_id", size);
    }
    check_id(data.eos, "eos_token_id", size);
    drop_if_unknown(data.eot, "eot_token_id", size, data.notes);
    drop_if_unknown(data.eom, "eom_token_id", size, data.notes);
    drop_if_unknown(data.unk, "unknown_token_id", size, data.notes);
    drop_if_unknown(data.pad, "padding_token_id", size, data.notes);
    for (Token& id : data.other_ends) drop_if_unknown(id, "fim_*_token_id", size, data.notes);
    std::erase(data.other_ends, kNoToken);
    if (data.add_bos.value_or(false) && data.bos == kNoToken)
        fail(TSR_CORRUPT_DATA,
             Notice("tokenizer.ggml.add_bos_token is true, but there is no tokenizer.ggml.bos_token_id",
                    {{AdviceCode::kOtherMetadata, "tokenizer.ggml.bos_token_id=int:N"},
                     {AdviceCode::kOtherMetadata, "tokenizer.ggml.add_bos_token=bool:false"}}));
    if (data.add_eos.value_or(false) && data.eos == kNoToken)
        fail(TSR_CORRUPT_DATA, "tokenizer.ggml.add_eos_token is true, but there is no tokenizer.ggml.eos_token_id");
}

}  // namespace

struct Tokenizer::State {
    VocabularyData data;
    std::vector<std::string> bytes;
    TokensBySpelling by_spelling;
    SpecialTokens user_defined;      // always taken whole
    SpecialTokens user_and_control;  // when asked to
    std::vector<Token> ends;
    bool add_bos = false;
    bool add_eos = false;
    bool add_space_prefix = false;
    bool nfc = false;
    bool drops_bytes = false;              // some have no token, and no unknown token stands for them
    bool blank_letters = false;            // tokens spell a blank as U+2581
    const PretokenizerRow* row = nullptr;  // of BPE
    size_t longest = 4;                    // bytes of a token, or of a character that an unknown token stands for
    const Pretokenizer* pretokenizer = nullptr;
    std::optional<BytePairModel> pairs;
    std::optional<SentencePieceModel> sentencepiece;

    explicit State(VocabularyData given) : data(std::move(given)) {
        settle_vocabulary(data);
        if (data.model == kGemma4Model) data.pre = "gemma4";
        row = data.model == kSentencePieceModel ? nullptr : find_pretokenizer(data.pre.empty() ? "default" : data.pre);
        blank_letters = data.model == kSentencePieceModel || (row && row->spelling == WordSpelling::kPlainBlanks);
        by_spelling.reserve(data.tokens.size());
        for (size_t id = 0; id < data.tokens.size(); ++id) by_spelling.emplace(data.tokens[id], static_cast<Token>(id));
        ends = settle_known_tokens(data, by_spelling);
        fill_bytes();
        for (size_t id = 0; id < data.tokens.size(); ++id) {
            const auto token = static_cast<Token>(id);
            const TokenType kind = type(token);
            if (kind == TokenType::kUserDefined) user_defined.add(bytes[id], token);
            if (kind == TokenType::kUserDefined || kind == TokenType::kControl) user_and_control.add(bytes[id], token);
        }
        if (ends.empty()) data.notes.emplace_back("no end token is known: answers end only where they are cut");
        bool default_bos = true;
        if (data.model == kSentencePieceModel) {
            sentencepiece.emplace(data);
        } else {
            settle_row();
            default_bos = row->adds_bos;
            nfc = row->nfc;
            // Files of Kimi-K2 may have no merges; its own code ranks a pair by the number of the token it makes.
            const bool ranks_are_ids = data.merges.empty() && row->names.front() == "kimi-k2";
            if (data.merges.empty() && !ranks_are_ids)
                fail(TSR_CORRUPT_DATA, "tokenizer.ggml.merges: a '{}' vocabulary needs its merges, found none",
                     data.model);
            pretokenizer = &compiled_pretokenizer(*row);
            pairs.emplace(data, bytes,
                          BytePairModel::Rules{.whole_words = row->whole_words,
                                               .ranks_are_ids = ranks_are_ids,
                                               .characters = row->spelling == WordSpelling::kPlainBlanks},
                          data.notes);
            find_missing_bytes();
        }
        add_bos = data.add_bos.value_or(default_bos && data.bos != kNoToken);
        if (!add_bos && row && row->always_bos && data.bos != kNoToken) {
            data.notes.emplace_back("tokenizer.ggml.add_bos_token is false, but Gemma 4 needs BOS: taken as true");
            add_bos = true;
        }
        add_eos = data.add_eos.value_or(false);
        add_space_prefix = sentencepiece && data.add_space_prefix.value_or(true);
    }

    // Bytes of UTF-8 that no token spells are left out of texts where no unknown token stands for them, as the package
    // tokenizers does (Falcon lacks 14 control characters).
    void find_missing_bytes() {
        if (data.unk != kNoToken) return;
        std::string missing;
        size_t count = 0;
        for (int byte = 0; byte < 0xF5; ++byte) {
            if (byte == 0xC0 || byte == 0xC1 || pairs->byte_token(static_cast<uint8_t>(byte)) != kNoToken) continue;
            if (++count <= 20) missing += fmt::format("{}0x{:02X}", count > 1 ? ", " : "", byte);
        }
        drops_bytes = count > 0;
        if (drops_bytes)
            data.notes.push_back(
                fmt::format("no token spells {} of the bytes of texts ({}{}), and there is no unknown "
                            "token: they are left out of texts",
                            count, missing, count > 20 ? ", ..." : ""));
    }

    // Sees to it that there is a row: what the file names, or what ik_llama.cpp and llama.cpp take where it names none.
    void settle_row() {
        if (row && !data.pre.empty()) return;
        const std::string fit = fmt::format("{}", fmt::join(pretokenizers_that_fit(word_parts(), 6), ", "));
        if (row) {
            data.notes.push_back(
                fmt::format("tokenizer.ggml.pre is missing: 'default' is taken, as ik_llama.cpp and llama.cpp do; the "
                            "tokens fit: {}",
                            fit));
            return;
        }
        std::vector<std::string_view> names;
        for (const PretokenizerRow& one : known_pretokenizers()) names.push_back(one.names.front());
        std::ranges::sort(names);
        fail(TSR_UNSUPPORTED,
             Notice(fmt::format("tokenizer.ggml.pre: '{}' is not known; the tokens fit those of: {}; known are: {}",
                                printable(data.pre, 60), fit, fmt::join(names, ", ")),
                    {{AdviceCode::kOtherMetadata, "tokenizer.ggml.pre=str:NAME"}}));
    }

    // What texts are made of, without tokens that are taken whole.
    std::vector<std::string> word_parts() const {
        std::vector<std::string> parts;
        for (size_t id = 0; id < bytes.size(); ++id)
            if (type(static_cast<Token>(id)) == TokenType::kNormal) parts.push_back(bytes[id]);
        return parts;
    }

    TokenType type(Token token) const {
        return data.types.empty() ? TokenType::kNormal : data.types[static_cast<size_t>(token)];
    }

    // Whether blanks behind a special token belong to it.
    bool strips_after(Token token) const {
        if (!data.strips_after_special) return false;
        const std::string_view spelling = data.tokens[static_cast<size_t>(token)];
        return spelling != "<unk>" && spelling != "<s>" && spelling != "<|endoftext|>";
    }

    size_t index(Token token) const {
        if (token < 0 || static_cast<size_t>(token) >= data.tokens.size())
            fail(TSR_INVALID_ARGUMENT, "token {} is not in the vocabulary, which has {}", token, data.tokens.size());
        return static_cast<size_t>(token);
    }

    void fill_bytes() {
        bytes.reserve(data.tokens.size());
        for (size_t id = 0; id < data.tokens.size(); ++id) {
            std::string text = data.tokens[id];
            const TokenType kind = type(static_cast<Token>(id));
            if (kind == TokenType::kByte) {
                const int byte = parse_byte_token(text);
                if (byte < 0)
                    fail(TSR_CORRUPT_DATA, "token {} has type byte, expected a text like <0x0A>, found '{}'", id,
                         printable(text, 40));
                text.resize(1);
                text[0] = static_cast<char>(byte);
            } else if (blank_letters) {
                if (kind != TokenType::kControl) text = replace_all(text, kBlankLetter, ' ');
            } else if (kind == TokenType::kNormal || kind == TokenType::kUnused) {
                // A text outside the byte-level alphabet is taken literally.
                if (auto decoded = byte_level_decode(text)) text = std::move(*decoded);
            }
            longest = std::max(longest, text.size());
            bytes.push_back(std::move(text));
        }
    }

    // Bytes of a text that become one token at most. Composing characters makes a text three times shorter at most, as
    // does a blank for U+2581.
    size_t bytes_each() const { return longest * (nfc || blank_letters ? 3 : 1); }

    size_t fewest(size_t bytes_of_text) const {
        return data.remove_extra_blanks || drops_bytes ? 0 : bytes_of_text / bytes_each();
    }

    // Plain text, no special tokens in it, until there are more than `most` in `out`.
    void encode_plain(std::string_view text, size_t most, std::vector<Token>& out) const {
        if (out.size() > most) return;
        // What so long a text begins with is more tokens already, also without the last, incomplete character.
        const size_t enough = most - out.size();
        if (const size_t least = fewest(text.size()); least > enough && least - enough > 2) {
            size_t end = (enough + 2) * bytes_each();
            for (int i = 0; i < 3 && (static_cast<uint8_t>(text[end]) & 0xC0) == 0x80; ++i) --end;
            text = text.substr(0, end);
        }
        if (sentencepiece) {
            sentencepiece->encode(text, add_space_prefix, data.remove_extra_blanks, out);
            return;
        }
        const auto missing = [&](uint8_t) { return data.unk; };
        std::string buffer, blanks;
        // What stands for a blank in tokens is one in texts, too.
        if (blank_letters && text.find(kBlankLetter) != text.npos) text = blanks = replace_all(text, kBlankLetter, ' ');
        while (!text.empty() && out.size() <= most) {
            const size_t valid = utf8_valid_prefix(text);
            const std::string_view given = text.substr(0, valid);
            pretokenizer->split(nfc ? to_nfc(given, buffer) : given, [&](std::string_view word) {
                pairs->encode(word, out, missing);
                return out.size() <= most;
            });
            text.remove_prefix(valid);
            if (text.empty()) break;
            const size_t bad = utf8_step(text).length;
            const std::string_view part = text.substr(0, bad);
            const bool spelt = std::ranges::all_of(
                part, [&](char c) { return pairs->byte_token(static_cast<uint8_t>(c)) != kNoToken; });
            if (spelt) {
                for (const char c : part) out.push_back(pairs->byte_token(static_cast<uint8_t>(c)));
            } else {
                pairs->encode(kReplacementCharacter, out, missing);
            }
            text.remove_prefix(bad);
        }
    }
};

Tokenizer::Tokenizer(VocabularyData data) : state_(std::make_unique<const State>(std::move(data))) {}
Tokenizer::~Tokenizer() = default;

std::vector<Token> Tokenizer::encode(std::string_view text, const EncodeOptions& options) const {
    const State& s = *state_;
    std::vector<Token> out;
    // One more, since a BOS may be taken away.
    const size_t most = options.most_tokens == SIZE_MAX ? SIZE_MAX : options.most_tokens + 1;
    out.reserve(std::min(text.size() / 3, most) + 2);
    if (options.add_special && s.add_bos) out.push_back(s.data.bos);
    const SpecialTokens& whole = options.parse_special ? s.user_and_control : s.user_defined;
    const auto accepts = [&](const SpecialTokens::Hit& hit) {
        // The first part that ends behind the token's beginning.
        const auto part = std::ranges::upper_bound(options.plain, hit.begin, {}, &TextRange::end);
        if (part == options.plain.end() || part->begin >= hit.begin + hit.length) return true;
        const bool inside = part->begin <= hit.begin && hit.begin + hit.length <= part->end;
        return inside && s.type(hit.token) == TokenType::kUserDefined &&
               !std::ranges::binary_search(options.not_in_plain, hit.token);
    };
    size_t at = 0;
    SpecialTokens::Hit hit{};
    while (out.size() <= most && whole.find(text, at, hit, accepts)) {
        s.encode_plain(text.substr(at, hit.begin - at), most, out);
        out.push_back(hit.token);
        at = hit.begin + hit.length;
        if (s.strips_after(hit.token)) at = std::min(text.find_first_not_of(" \t\n\v\f\r", at), text.size());
    }
    s.encode_plain(text.substr(at), most, out);
    // Prompts that are copied from a template begin with BOS, and no model was trained on two.
    if (options.add_special && s.add_bos && out.size() > 1 && out[1] == s.data.bos) out.erase(out.begin());
    if (options.add_special && s.add_eos) out.push_back(s.data.eos);
    return out;
}

size_t Tokenizer::fewest_tokens(size_t bytes) const noexcept {
    return state_->data.strips_after_special ? 0 : state_->fewest(bytes);
}

std::string Tokenizer::decode(std::span<const Token> tokens, const DecodeOptions& options) const {
    std::string raw;
    bool at_start = true;
    for (const Token token : tokens) {
        std::string_view part = bytes(token);
        const TokenType kind = state_->type(token);
        if (kind == TokenType::kControl) {
            if (options.show_control) raw += part;
            continue;
        }
        if (at_start && options.drop_prefix_space && state_->add_space_prefix && part.starts_with(' '))
            part.remove_prefix(1);
        at_start = false;
        raw += part;
    }
    return utf8_replace_invalid(raw);
}

size_t Tokenizer::size() const noexcept {
    return state_->data.tokens.size();
}
const std::vector<std::string>& Tokenizer::notes() const noexcept {
    return state_->data.notes;
}
std::string_view Tokenizer::bytes(Token token) const {
    return state_->bytes[state_->index(token)];
}
std::string_view Tokenizer::spelling(Token token) const {
    return state_->data.tokens[state_->index(token)];
}
TokenType Tokenizer::type(Token token) const {
    return state_->type(static_cast<Token>(state_->index(token)));
}

Token Tokenizer::find(std::string_view spelling) const {
    const auto found = state_->by_spelling.find(spelling);
    return found == state_->by_spelling.end() ? kNoToken : found->second;
}

Token Tokenizer::bos() const noexcept {
    return state_->data.bos;
}
Token Tokenizer::eos() const noexcept {
    return state_->data.eos;
}
Token Tokenizer::unk() const noexcept {
    return state_->data.unk;
}
Token Tokenizer::pad() const noexcept {
    return state_->data.pad;
}
bool Tokenizer::adds_bos() const noexcept {
    return state_->add_bos;
}
bool Tokenizer::adds_eos() const noexcept {
    return state_->add_eos;
}
bool Tokenizer::adds_space_prefix() const noexcept {
    return state_->add_space_prefix;
}
bool Tokenizer::ends_generation(Token token) const noexcept {
    return std::ranges::binary_search(state_->ends, token);
}
const std::vector<Token>& Tokenizer::generation_ends() const noexcept {
    return state_->ends;
}

}  // namespace tessera::text
