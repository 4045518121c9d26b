#include "tests/fuzz/tokenizer_target.hpp"

#include "core/base/error.hpp"
#include "core/base/text.hpp"
#include "core/text/detokenizer.hpp"
#include "core/text/pretokenizer.hpp"
#include "core/text/tokenizer.hpp"
#include "core/text/utf8.hpp"
#include "core/text/vocabulary_from_gguf.hpp"
#include "tests/fuzz/promises.hpp"

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace tessera::fuzz {
namespace {

using namespace text;

std::string_view take(std::string_view& rest, char end) {
    const size_t at = std::min(rest.find(end), rest.size());
    const std::string_view part = rest.substr(0, at);
    rest.remove_prefix(std::min(at + 1, rest.size()));
    return part;
}

gguf::StringArray strings(std::string_view record) {
    gguf::StringArray list;
    while (!record.empty()) list.push_back(take(record, '\x1f'));
    return list;
}

struct Settings {
    std::string_view bytes;
    uint8_t at(size_t i) const { return i < bytes.size() ? static_cast<uint8_t>(bytes[i]) : 0; }
};

gguf::Metadata metadata_of(const Settings& settings, std::string_view& rest) {
    constexpr std::array<const char*, 4> models = {"gpt2", "llama", "gemma4", "bert"};
    gguf::Metadata metadata("input");
    metadata.add("tokenizer.ggml.model", std::string(models[settings.at(0) % models.size()]));
    const std::vector<PretokenizerRow>& rows = known_pretokenizers();
    if (const size_t row = settings.at(1) % (rows.size() + 2); row < rows.size())
        metadata.add("tokenizer.ggml.pre", std::string(rows[row].names.front()));
    else if (row == rows.size())
        metadata.add("tokenizer.ggml.pre", std::string("no-such"));
    metadata.add("tokenizer.ggml.tokens", gguf::Array(strings(take(rest, '\x1e'))));
    const std::string_view types = take(rest, '\x1e'), scores = take(rest, '\x1e'), merges = take(rest, '\x1e');
    if (!types.empty()) {
        std::vector<int32_t> list;
        for (const char type : types) list.push_back(type);
        metadata.add("tokenizer.ggml.token_type", gguf::Array(std::move(list)));
    }
    if (!scores.empty()) {
        std::vector<float> list;
        for (const char score : scores) list.push_back(score == 127 ? std::numeric_limits<float>::quiet_NaN() : score);
        metadata.add("tokenizer.ggml.scores", gguf::Array(std::move(list)));
    }
    if (!merges.empty()) metadata.add("tokenizer.ggml.merges", gguf::Array(strings(merges)));
    const uint8_t flags = settings.at(2);
    size_t next = 3;
    for (const char* name : {"bos", "eos", "eot", "eom", "unknown", "padding", "fim_pad"})
        if (const uint8_t id = settings.at(next++); id != 0)
            metadata.add(fmt::format("tokenizer.ggml.{}_token_id", name), int32_t{id} - 2);
    if (flags & 1) metadata.add("tokenizer.ggml.add_bos_token", (flags & 2) != 0);
    if (flags & 4) metadata.add("tokenizer.ggml.add_eos_token", (flags & 8) != 0);
    if (flags & 16) metadata.add("tokenizer.ggml.add_space_prefix", (flags & 32) != 0);
    if (flags & 64) metadata.add("tokenizer.ggml.remove_extra_whitespaces", true);
    if (flags & 128) metadata.add("general.name", std::string("Phi-3"));
    return metadata;
}

void use_tokenizer(const Tokenizer& tokenizer, std::string_view text, size_t most) {
    for (const bool parse : {false, true}) {
        const auto all = attempt([&] { return tokenizer.encode(text, {.add_special = true, .parse_special = parse}); });
        if (!all) continue;
        for (const Token token : *all)
            expect(token >= 0 && static_cast<size_t>(token) < tokenizer.size(), "a token of the vocabulary");
        expect(is_utf8(tokenizer.decode(*all)), "text of tokens");
        const auto some = attempt(
            [&] { return tokenizer.encode(text, {.add_special = true, .parse_special = parse, .most_tokens = most}); });
        expect(some.has_value(), "a part of a text can be spelt where the whole can");
        expect(all->size() > most ? some->size() > most : *some == *all, "more than the most, or all");
    }
    const auto inner = attempt([&] { return tokenizer.encode(text, {.add_special = false}); });
    if (!inner) return;
    expect(tokenizer.fewest_tokens(text.size()) <= inner->size(), "fewest tokens");
    for (const bool show : {false, true}) {
        StreamingDetokenizer stream(tokenizer, show);
        std::string streamed;
        for (const Token token : *inner) streamed += stream.push(token);
        streamed += stream.finish();
        expect(streamed == tokenizer.decode(*inner, {.show_control = show, .drop_prefix_space = false}),
               "the same text in parts");
    }
    const std::array<TextRange, 1> whole = {{{0, text.size()}}};
    const auto plain =
        attempt([&] { return tokenizer.encode(text, {.add_special = false, .parse_special = true, .plain = whole}); });
    expect(plain == inner, "plain text holds no control tokens");
}

void use_pretokenizer(size_t row, std::string_view text) {
    const std::vector<PretokenizerRow>& rows = known_pretokenizers();
    const Pretokenizer& one = compiled_pretokenizer(rows[row % rows.size()]);
    const std::string valid = utf8_replace_invalid(text);
    size_t at = 0;
    one.split(valid, [&](std::string_view pretoken) {
        expect(!pretoken.empty() && pretoken.data() == valid.data() + at, "pre-tokens in order");
        at += pretoken.size();
        expect(is_utf8(pretoken), "pre-tokens are of whole characters");
        return true;
    });
    expect(at == valid.size(), "pre-tokens are the text");
    attempt([&] { return static_cast<int>(parse_split_expression(text).kind); });
}

}  // namespace

void run_tokenizer(std::string_view input) {
    std::string_view rest = input;
    const Settings settings{take(rest, '\x1e')};
    const gguf::Metadata metadata = metadata_of(settings, rest);
    use_pretokenizer(settings.at(1), rest);
    const auto tokenizer = attempt([&] { return std::make_shared<Tokenizer>(vocabulary_from_gguf(metadata)); });
    if (tokenizer) use_tokenizer(**tokenizer, rest, settings.at(10));
}

}  // namespace tessera::fuzz
