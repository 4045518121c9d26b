// Calls of tools by random tokens, for calls_test.py.
#pragma once

#include "core/text/tokenizer.hpp"

#include <boost/json/object.hpp>

#include <memory>

namespace tessera::structure {

class Helper;

class CallsWalker {
  public:
    explicit CallsWalker(const text::VocabularyData& vocabulary);
    ~CallsWalker();

    // {"syntaxes": true}: {"syntaxes": [NAME...]}, all that have calls.
    // {"syntax": NAME, "tools": [{"name": ..., "parameters": {...}, "held": BOOL}...], "walks": N, "seed": N,
    //  "several": BOOL, "any": BOOL, "calling": BOOL, "special": BOOL, "reasoning": BOOL}: {"refused": WHY} or
    //  {"texts":
    // [{"text": ..., "ended": BOOL, "content": ..., "reasoning": ..., "calls": [[NAME, ARGUMENTS]...]}...]}. special:
    // the marks of the formats are control tokens. calling: what begins calls is begun now and then.
    boost::json::object answer(const boost::json::object& asked) const;

  private:
    struct Model {
        std::unique_ptr<text::Tokenizer> tokenizer;
        std::unique_ptr<Helper> helper;
    };
    Model plain_, special_;
};

}  // namespace tessera::structure
