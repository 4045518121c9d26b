#include "apps/tessera/answer_form.hpp"

#include "apps/structure/answer_grammar.hpp"
#include "apps/structure/reasoning_limit.hpp"
#include "apps/tessera/usage_error.hpp"
#include "core/base/error.hpp"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <memory>
#include <utility>

namespace tessera::app {

void AnswerForm::hold(session::Request& request, const text::ReplySyntax* reply) {
    hold_to_form(request, reply);
    if (!reply || !reply->reasoning) return;
    const uint64_t room =
        request.context > request.prompt.size() ? request.context - request.prompt.size() : UINT32_MAX;
    const bool demanded = settings_.grammar || settings_.json_schema;
    const uint32_t tokens = structure::reasoning_tokens(settings_.reasoning_budget,
                                                        std::min<uint64_t>(request.max_new_tokens, room), demanded);
    if (tokens == structure::ReasoningLimit::kNone) return;
    if (settings_.reasoning_budget.value_or(-1) > 0 && !structure::can_end_reasoning(*reply, tokenizer_))
        throw UsageError(
            fmt::format("--reasoning-budget: cannot be enforced with this model: its vocabulary cannot spell "
                        "{}, which ends reasoning; leave the flag out",
                        reply->reasoning_end));
    request.make_constraint = [inner = std::move(request.make_constraint), syntax = *reply, &tokenizer = tokenizer_,
                               tokens] {
        return structure::limit_reasoning(inner ? inner() : nullptr, syntax, tokenizer, {tokens, nullptr});
    };
}

void AnswerForm::hold_to_form(session::Request& request, const text::ReplySyntax* reply) {
    if (!settings_.grammar && !settings_.json_schema) return;
    const char* const flag = settings_.grammar ? "--grammar" : "--json-schema";
    try {
        const structure::Body body = settings_.grammar ? structure::gbnf_body(*settings_.grammar, tokenizer_)
                                                       : structure::schema_body(*settings_.json_schema);
        auto grammar = helper_.compile(reply ? structure::answer_grammar(body, *reply, tokenizer_)
                                             : structure::answer_grammar(body));
        request.make_constraint = [grammar = std::move(grammar)] { return grammar->begin(); };
    } catch (const Error& error) {
        if (error.code() == TSR_NOT_FOUND) {
            fail(TSR_NOT_FOUND,
                 "{}: answers are held to a form by llguidance, which is not installed ({}): run tools/setup "
                 "--structured where the program was built",
                 flag, error.what());
        }
        if (error.code() == TSR_IO_ERROR) throw;
        throw UsageError(fmt::format("{}: answers cannot be held to it: {}", flag, error.what()));
    }
}

}  // namespace tessera::app
