#include "apps/server/tool_constraint.hpp"

#include "apps/server/api_error.hpp"
#include "apps/structure/lenient_constraint.hpp"
#include "core/base/error.hpp"
#include "core/base/log.hpp"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace tessera::server {
namespace {

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
        const text::ReplySyntax reply = syntax();
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

    // What the answer is held to has none of the other forms that its reader takes for calls.
    text::ReplySyntax syntax() const {
        text::ReplySyntax reply = read_.chat.syntax;
        reply.exact = true;
        return reply;
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
                structure::calls_body(syntax(), tools, {.any = false, .several = false}, *model_.tokenizer);
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

// Tokens that are never drawn.
bool has_bans(const session::Request& request) {
    return std::ranges::any_of(request.sampling.logit_bias, [](const auto& bias) { return std::isinf(bias.second); });
}

}  // namespace

void hold_to_calls(ChatRequest& read, AskedCalls asked, const structure::Body* otherwise, const ModelText& model) {
    if (read.chat.syntax.content_begun && !asked.count.any)
        throw ApiError(400, fmt::format("{}: the message to be continued is not held to calls", asked.field),
                       asked.field);
    if (!asked.optional) return ToolCompiler(read, asked, otherwise, model).run();
    std::vector<std::string> names;
    for (const structure::CallableTool& tool : asked.tools) names.push_back("tools." + tool.name);
    try {
        text::ReplySyntax exact = read.chat.syntax;
        exact.exact = true;
        if (!structure::calls_stand_in_text(exact))
            throw ApiError(400, "calls of the model have no mark of their own, or text before them has marks, too");
        if (has_bans(read.request))
            throw ApiError(400, "of the tokens that schemas leave, logit_bias or ignore_eos may forbid all");
        ToolCompiler(read, asked, otherwise, model).run();
    } catch (const ApiError& error) {
        log().debug("calls of tools are not held to their schemas: {}", error.what());
        read.delivery.unenforced.insert(read.delivery.unenforced.end(), names.begin(), names.end());
        return;
    }
    read.request.make_constraint = [make = std::move(read.request.make_constraint)] {
        return structure::free_where_it_fails(make);
    };
}

}  // namespace tessera::server
