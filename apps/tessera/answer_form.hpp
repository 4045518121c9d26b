// Answers of run and chat that are held to a grammar or a schema.
#pragma once

#include "apps/structure/helper.hpp"
#include "core/session/generation.hpp"
#include "core/setup/settings.hpp"
#include "core/text/reply_parser.hpp"
#include "core/text/tokenizer.hpp"

#include <optional>
#include <string>

namespace tessera::app {

class AnswerForm {
  public:
    // `settings` and `tokenizer` outlive it.
    AnswerForm(const ModelSettings& settings, const text::Tokenizer& tokenizer)
        : settings_(settings), tokenizer_(tokenizer), helper_(tokenizer, settings.structured_library) {}

    // Holds the request's answer to what the flags say, after the reasoning with which answers of `reply` begin; null:
    // there is none. Ends that reasoning as --reasoning-budget says. The request has its prompt. Throws UsageError that
    // names the flag for what cannot be held to, and Error(TSR_NOT_FOUND) with the command that installs what is
    // missing.
    void hold(session::Request& request, const text::ReplySyntax* reply);

  private:
    void hold_to_form(session::Request& request, const text::ReplySyntax* reply);

    const ModelSettings& settings_;
    const text::Tokenizer& tokenizer_;
    structure::Helper helper_;
};

}  // namespace tessera::app
