// structure_walk MODEL: for tests in Python. Reads requests from standard input, a line of JSON each:
//   {"schema": SCHEMA, "texts": [TEXT...]}      whether each text is one that the schema's grammar has: "ok" or why not
//   {"schema": SCHEMA, "walks": N, "seed": N}   with "allow": true what cannot be enforced is left out; so many texts
//   of random tokens that its masks allow; null: did not end
// and those of calls_walk.hpp, and answers each with a line, {"refused": WHY} or {"texts": [...]}.
#include "apps/structure/answer_grammar.hpp"
#include "core/gguf/reader.hpp"
#include "core/setup/prompts.hpp"
#include "core/text/vocabulary_from_gguf.hpp"
#include "tests/structure/calls_walk.hpp"
#include "tests/structure/walking.hpp"

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

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
        : file_(gguf::GgufFile::open(model)),
          tokenizer_(make_tokenizer(file_)),
          helper_(*tokenizer_),
          calls_(text::vocabulary_from_gguf(file_.metadata())) {}

    std::string missing() const { return helper_.missing(); }

    json::object answer(const json::object& asked) {
        if (!asked.contains("schema")) return calls_.answer(asked);
        std::shared_ptr<const Grammar> grammar;
        json::array unenforced;
        try {
            const json::value* const allow = asked.if_contains("allow");
            const Body body = schema_body(asked.at("schema"), {.allow_unenforced = allow && allow->as_bool()});
            for (const std::string& place : body.unenforced) unenforced.push_back(json::value(place));
            grammar = helper_.compile(answer_grammar(body));
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
                texts.push_back(walked(*grammar, random));
        }
        return {{"texts", std::move(texts)}, {"unenforced", std::move(unenforced)}};
    }

  private:
    std::string held(const Grammar& grammar, std::string_view text) {
        try {
            const auto constraint = grammar.begin();
            for (const text::Token token : tokenizer_->encode(text, {.add_special = false})) {
                wait_for_mask(*constraint);
                if (!is_allowed(*constraint, token)) return "refused";
                constraint->accept(std::span(&token, 1));
            }
            wait_for_mask(*constraint);
            return is_allowed(*constraint, tokenizer_->generation_ends().front()) ? "ok" : "not over";
        } catch (const Error& error) {
            return error.what();
        }
    }

    json::value walked(const Grammar& grammar, std::mt19937& random) {
        static const std::vector<std::string> hints = {"\"", "]", "}", "\"}"};
        try {
            Walked made = walk(grammar, *tokenizer_, hints, kMostTokens, random);
            return made.ended ? json::value(made.text) : json::value(nullptr);
        } catch (const Error& error) {
            return json::object{{"error", error.what()}};
        }
    }

    const gguf::GgufFile file_;
    const std::unique_ptr<text::Tokenizer> tokenizer_;
    Helper helper_;
    const CallsWalker calls_;
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
