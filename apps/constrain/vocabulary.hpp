// The tokens of the model whose answers are constrained.
#pragma once

#include "apps/constrain/llguidance.hpp"
#include "apps/structure/shared_memory.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tessera::constrain {

class Vocabulary {
  public:
    // Of a file as protocol.hpp describes it. Throws Error(TSR_CORRUPT_DATA) for one that contradicts itself.
    Vocabulary(const Llguidance& library, structure::SharedMemory file);

    size_t size() const noexcept { return starts_.size() - 1; }
    std::string_view bytes(size_t token) const { return std::string_view(bytes_ + starts_[token], lengths_[token]); }
    // Begins with what no text has.
    bool is_special(size_t token) const { return bytes(token).starts_with('\xff'); }
    bool ends_text(size_t token) const { return ends_text_[token]; }
    const LlgTokenizer* tokenizer() const noexcept { return tokenizer_; }

  private:
    const structure::SharedMemory file_;
    std::span<const uint32_t> lengths_;
    const char* bytes_ = nullptr;
    std::vector<size_t> starts_;
    std::vector<bool> ends_text_;
    const LlgTokenizer* tokenizer_ = nullptr;  // lives as long as the process
};

}  // namespace tessera::constrain
