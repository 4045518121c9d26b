// Reads the body of a kernel: declarations, labels, statements.
#pragma once

#include "translate.hpp"

#include <unordered_map>

namespace tessera::cuda::ptx {

class Body {
  public:
    Body(Translation& translation, const Surroundings& around) : translation_(translation), around_(around) {}

    // From behind ".entry" on.
    void read(std::string_view text, uint32_t line);

  private:
    struct Prefix {
        std::string_view name;
        uint32_t first, count;
    };
    struct Fixup {
        size_t instruction;
        std::string_view label;
        uint32_t line;
    };

    void read_parameters(Tokens& tokens);
    void place_shared(const Variable& variable);
    void read_block(Tokens& tokens);
    void read_directive(Tokens& tokens, std::string_view directive);
    void read_registers(Tokens& tokens);
    void read_statement(Tokens& tokens, std::string_view first);
    Operand read_operand(Tokens& tokens);
    Operand read_address(Tokens& tokens);
    Operand read_number(Tokens& tokens, std::string_view token, bool negative);
    bool find_register(std::string_view name, uint32_t& number);
    bool find_special(std::string_view name, uint32_t& number);
    bool find_symbol(std::string_view name, uint64_t& address) const;

    Translation& translation_;
    const Surroundings& around_;
    std::vector<std::pair<std::string_view, uint32_t>> single_;  // registers by name, innermost scope last
    std::vector<Prefix> prefixes_;
    std::unordered_map<std::string_view, uint64_t> symbols_;  // of shared, local and parameter memory
    std::unordered_map<std::string_view, uint32_t> labels_;
    std::vector<Fixup> fixups_;
    uint64_t shared_ = 0;
    Statement statement_;
    uint64_t used_bytes_ = ~0ull;  // of the next load
};

}  // namespace tessera::cuda::ptx
