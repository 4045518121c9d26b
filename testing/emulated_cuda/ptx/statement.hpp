// Statements of a kernel's body as they are written, names resolved.
#pragma once

#include "lexer.hpp"
#include "program.hpp"

#include <string_view>
#include <vector>

namespace tessera::cuda::ptx {

enum class OperandKind : uint8_t { kRegister, kInteger, kFloat32, kFloat64, kAddress, kVector, kSink, kLabel };

struct Operand {
    OperandKind kind = OperandKind::kSink;
    bool negated = false;          // !%p
    bool joined = false;           // the second of %r1|%p1
    Type type;                     // of the register
    uint32_t reg = kNowhere;       // number of the register, or of an address's; kNowhere: an address without one
    uint64_t bits = 0;             // of a number, or an address's offset
    uint32_t first = 0, size = 0;  // of a vector: which of Statement::parts
    std::string_view text;         // of a label
};

struct Statement {
    uint32_t line = 0;
    std::string_view opcode;
    std::vector<Operand> operands, parts;
    uint32_t guard = kNowhere;  // number of the predicate
    bool guard_negated = false;
    uint64_t used_bytes = ~0ull;  // bit i: byte i of what it loads is used
};

}  // namespace tessera::cuda::ptx
