// structure_walk MODEL: for tests in Python. Reads requests from standard input, a line of JSON each:
//   {"schema": SCHEMA, "texts": [TEXT...]}      whether each text is one that the schema's grammar has: "ok" or why not
//   {"schema": SCHEMA, "walks": N, "seed": N}   so many texts of random tokens that its masks allow; null: did not end
// and answers each with a line, {"refused": WHY} or {"texts": [...]}.
#include "apps/structure/answer_grammar.hpp"
#include "core/gguf/reader.hpp"
#include "core/setup/prompts.hpp"
#include "core/text/utf8.hpp"

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include <bit>
#include <chrono>
#include <iostream>
#include <random>

namespace {

using namespace tessera;
using namespace tessera::structure;
namespace json = boost::json;

constexpr size_t kMostTokens = 200;

class Walker {
  public:
    explicit Walker(const char* model)
        : file_(gguf::GgufFile::open(model)), tokenizer_(make_tokenizer(file_)), helper_(*tokenizer_) {}

    std::string missing() const { return helper_.missing(); }

    json::object answer(const json::object& asked) {
        std::shared_ptr<const Grammar> grammar;
        try {
            grammar = helper_.compile(answer_grammar(schema_body(asked.at("schema"))));
        } catch (const Error& error) {
            return {{"refused", error.what()}};
        }
        json::array texts;
        if (asked.contains("texts")) {
            for (const json::value& text : asked.at("texts").as_array())
                texts.push_back(json::value(held(*grammar, std::string_view(text.as_string()))));
        } else {
            std::mt19937 random(static_cast<unsigned>(asked.at("seed").to_number<int64_t>()));
            for (int64_t i = 0; i < asked.at("walks").to_number<int64_t>(); ++i)
                texts.push_back(walk(*grammar, random));
        }
        return {{"texts", std::move(texts)}};
    }

  private:
    static void wait(session::TokenConstraint& constraint) {
        if (!constraint.wait(std::chrono::steady_clock::now() + std::chrono::seconds(30)))
            fail(TSR_IO_ERROR, "there was no mask for 30 s");
    }
    static bool allows(session::TokenConstraint& constraint, text::Token token) {
        const auto number = static_cast<size_t>(token);
        const session::TokenMask mask = constraint.allowed();
        return number / 32 < mask.size() && (mask[number / 32] >> number % 32 & 1) != 0;
    }

    std::string held(const Grammar& grammar, std::string_view text) {
        try {
            const auto constraint = grammar.begin();
            for (const text::Token token : tokenizer_->encode(text, {.add_special = false})) {
                wait(*constraint);
                if (!allows(*constraint, token)) return "refused";
                constraint->accept(std::span(&token, 1));
            }
            wait(*constraint);
            return allows(*constraint, tokenizer_->generation_ends().front()) ? "ok" : "not over";
        } catch (const Error& error) {
            return error.what();
        }
    }

    // What a model with random logits would write; texts end more often than they would.
    json::value walk(const Grammar& grammar, std::mt19937& random) {
        const auto chance = [&](unsigned percent) { return random() % 100 < percent; };
        try {
            const auto constraint = grammar.begin();
            std::string text;
            for (size_t count = 0; count < kMostTokens; ++count) {
                wait(*constraint);
                const std::vector<text::Token> forced(constraint->forced().begin(), constraint->forced().end());
                std::vector<text::Token> tokens = forced;
                if (forced.empty()) {
                    std::vector<text::Token> allowed, closing;
                    const session::TokenMask mask = constraint->allowed();
                    bool may_end = false;
                    for (size_t word = 0; word < mask.size(); ++word) {
                        for (uint32_t bits = mask[word]; bits != 0; bits &= bits - 1) {
                            const auto token = static_cast<text::Token>(32 * word) + std::countr_zero(bits);
                            if (static_cast<size_t>(token) >= tokenizer_->size()) continue;
                            allowed.push_back(token);
                            may_end |= tokenizer_->ends_generation(token);
                            const std::string_view bytes = tokenizer_->bytes(token);
                            if (bytes == "\"" || bytes == "]" || bytes == "}" || bytes == "\"}")
                                closing.push_back(token);
                        }
                    }
                    if (allowed.empty()) fail(TSR_INTERNAL, "no token is allowed");
                    if (may_end && (allowed.size() == 1 || chance(60))) return json::value(text);
                    const auto& from = !closing.empty() && chance(40) ? closing : allowed;
                    tokens = {from[random() % from.size()]};
                }
                for (const text::Token token : tokens) {
                    if (tokenizer_->ends_generation(token)) return json::value(text);
                    text += tokenizer_->bytes(token);
                }
                constraint->accept(tokens);
            }
            return nullptr;
        } catch (const Error& error) {
            return json::object{{"error", error.what()}};
        }
    }

    const gguf::GgufFile file_;
    const std::unique_ptr<text::Tokenizer> tokenizer_;
    Helper helper_;
};

}  // namespace

int main(int count, char** words) {
    if (count != 2) return 2;
    Walker walker(words[1]);
    if (const std::string missing = walker.missing(); !missing.empty()) {
        std::cout << json::serialize(json::object{{"missing", missing}}) << std::endl;
        return 0;
    }
    std::string line;
    json::parse_options options;
    options.max_depth = 500;
    while (std::getline(std::cin, line)) {
        const json::value asked = json::parse(line, {}, options);
        std::cout << json::serialize(walker.answer(asked.as_object())) << std::endl;
    }
    return 0;
}
