#include "apps/server/tool_constraint.hpp"

#include "apps/server/api_error.hpp"
#include "apps/structure/lenient_constraint.hpp"
#include "core/base/error.hpp"
#include "core/base/log.hpp"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

namespace tessera::server {
namespace {

// Returns the syntax without the other forms that the reader takes for calls: a held answer has none of them.
text::ReplySyntax exact_syntax(const ChatRequest& read) {
    text::ReplySyntax syntax = read.chat.syntax;
    syntax.exact = true;
    return syntax;
}

// Tools whose schemas llguidance does not compile are called with any object, if they allow that.
class ToolCompiler {
  public:
    ToolCompiler(ChatRequest& read, AskedCalls& asked, const structure::Body* otherwise, const ModelText& model)
        : read_(read), asked_(asked), otherwise_(otherwise), model_(model) {}

    void run() {
        if (try_all()) return;
        std::vector<size_t> lenient;
        for (size_t i = 0; i < asked_.tools.size(); ++i)
            if (asked_.tools[i].held && asked_.tools[i].allow_unenforced) lenient.push_back(i);
        free_faulty(lenient);
        if (try_all()) return;
        // Each compiles by itself: together they are too large.
        for (const size_t i : lenient) free(i);
        hold();
    }

  private:
    // False: the grammar is refused, and a tool can be called with any object instead.
    bool try_all() {
        const bool last = std::ranges::none_of(
            asked_.tools, [](const structure::CallableTool& tool) { return tool.held && tool.allow_unenforced; });
        try {
            hold();
            return true;
        } catch (const ApiError& error) {
            if (last || error.status() != 400) throw;
            return false;
        }
    }

    void hold() {
        const text::ReplySyntax reply = exact_syntax(read_);
        structure::Body body;
        structure::GrammarText grammar;
        try {
            body = structure::calls_body(reply, asked_.tools, asked_.count, *model_.tokenizer, otherwise_);
            grammar = structure::answer_grammar(body, reply, *model_.tokenizer);
        } catch (const Error& error) {
            throw ApiError(400, fmt::format("{}: {}", asked_.field, error.what()), asked_.field);
        }
        hold_to(read_.request, grammar, model_, asked_.field, read_.delivery);
        std::vector<std::string>& unenforced = read_.delivery.unenforced;
        for (const std::string& name : freed_) unenforced.push_back("tools." + name);
        for (const std::string& place : body.unenforced) unenforced.push_back("tools." + place);
    }

    void free(size_t tool) {
        structure::CallableTool& freed = asked_.tools[tool];
        if (!freed.input_grammar.empty()) {
            freed.input_grammar.clear();
            freed_.push_back(freed.name + "/format/definition");
        } else if (std::exchange(freed.held, false)) {
            freed_.push_back(freed.name);
        }
    }

    // By halves, as most compile.
    void free_faulty(std::span<const size_t> tools) {
        if (tools.empty() || compile(tools)) return;
        if (tools.size() == 1) return free(tools.front());
        free_faulty(tools.first(tools.size() / 2));
        free_faulty(tools.subspan(tools.size() / 2));
    }

    bool compile(std::span<const size_t> numbers) {
        std::vector<structure::CallableTool> tools;
        for (const size_t i : numbers) tools.push_back(asked_.tools[i]);
        try {
            const structure::Body body =
                structure::calls_body(exact_syntax(read_), tools, {.any = false, .several = false}, *model_.tokenizer);
            model_.structure->compile(structure::answer_grammar(body));
            return true;
        } catch (const Error& error) {
            if (error.code() != TSR_INVALID_ARGUMENT) throw;
            return false;
        }
    }

    ChatRequest& read_;
    AskedCalls& asked_;
    const structure::Body* const otherwise_;
    const ModelText& model_;
    std::vector<std::string> freed_;
};

// Returns why an answer whose calls are optional stays free; empty: it can be held to them.
std::string free_reason(const ChatRequest& read) {
    if (!structure::calls_stand_in_text(exact_syntax(read)))
        return "calls of the model have no mark of their own, or text before them has marks, too";
    if (std::ranges::any_of(read.request.sampling.logit_bias, [](const auto& bias) { return std::isinf(bias.second); }))
        return "of the tokens that schemas leave, logit_bias or ignore_eos may forbid all";
    return {};
}

// Holds the answer to the tools, or reports each of them.
void hold_where_possible(ChatRequest& read, AskedCalls& asked, const structure::Body* otherwise,
                         const ModelText& model) {
    std::vector<std::string> names;
    for (const structure::CallableTool& tool : asked.tools) names.push_back("tools." + tool.name);
    std::string reason = free_reason(read);
    try {
        if (reason.empty()) ToolCompiler(read, asked, otherwise, model).run();
    } catch (const ApiError& error) {
        reason = error.what();
    }
    if (!reason.empty()) {
        log().debug("calls of tools are not held to their schemas: {}", reason);
        std::ranges::move(names, std::back_inserter(read.delivery.unenforced));
        return;
    }
    read.request.make_constraint = [make = std::move(read.request.make_constraint)] {
        return structure::free_where_it_fails(make);
    };
}

}  // namespace

void hold_to_calls(ChatRequest& read, AskedCalls asked, const structure::Body* otherwise, const ModelText& model) {
    if (read.chat.syntax.content_begun && !asked.count.any)
        throw ApiError(400, fmt::format("{}: the message to be continued is not held to calls", asked.field),
                       asked.field);
    if (asked.optional) return hold_where_possible(read, asked, otherwise, model);
    ToolCompiler(read, asked, otherwise, model).run();
}

}  // namespace tessera::server
