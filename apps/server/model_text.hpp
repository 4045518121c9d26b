// What requests need of a model before they reach its engine.
#pragma once

#include "apps/structure/helper.hpp"
#include "core/session/generation.hpp"
#include "core/setup/prompts.hpp"
#include "core/text/infill.hpp"

#include <memory>
#include <optional>
#include <string>

namespace tessera::server {

// Constant once it has been made, so any thread may use it.
struct ModelText {
    std::string name;  // to clients
    std::unique_ptr<text::Tokenizer> tokenizer;
    std::unique_ptr<structure::Helper> structure;  // null: no answer can be held to a form
    std::string structure_fault;                   // why there is no structured output; empty: there is
    std::unique_ptr<ChatWriter> writer;            // null: the file has no template that is known
    std::string writer_fault;                      // why
    session::SamplingParameters sampling;          // where a request says nothing
    std::optional<int64_t> reasoning_budget;       // tokens, where a request says nothing; negative: any number
    std::string reasoning_budget_fault;            // why it cannot be enforced; empty: it can
    bool random_seed = true;                       // each request that says none gets another
    // Of hidden states, where a request says nothing; nothing: as the file asks, which is not computed.
    std::optional<session::Pooling> pooling = session::Pooling::kLast;
    text::InfillTokens infill;     // of the vocabulary
    uint32_t embedding = 0;        // values of a hidden state; 0: not known
    uint32_t context = 0;          // tokens that the engine's cache holds
    uint32_t request_context = 0;  // those of one request at most; 0: as many as the cache
    uint32_t context_of_request() const noexcept { return request_context ? request_context : context; }
};

}  // namespace tessera::server
