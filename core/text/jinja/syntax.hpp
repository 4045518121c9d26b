// A parsed program: expressions and statements as trees.
#pragma once

#include "core/text/jinja/value.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace tessera::text::jinja {

struct Expression;
using ExpressionPtr = std::unique_ptr<Expression>;

enum class Operation : uint8_t {
    kConstant,      // value
    kName,          // name
    kTuple,         // operands
    kList,          // operands
    kDictionary,    // operands: key, value, key, value
    kAttribute,     // operands[0].name
    kSubscript,     // operands[0][operands[1]]
    kSlice,         // operands[0][operands[1]:operands[2]:operands[3]], null where absent
    kCall,          // operands[0](operands[1..], named)
    kFilter,        // operands[0] | name(operands[1..], named)
    kTest,          // operands[0] is name(operands[1..])
    kNot,           //
    kNegate,        //
    kAnd,           //
    kOr,            //
    kAdd,           //
    kSubtract,      //
    kMultiply,      //
    kFloorDivide,   //
    kModulo,        //
    kConcatenate,   // ~
    kEqual,         //
    kNotEqual,      //
    kLess,          //
    kLessEqual,     //
    kGreater,       //
    kGreaterEqual,  //
    kIn,            //
    kNotIn,         //
    kConditional    // operands[0] if operands[1] else operands[2], null where absent
};

struct Expression {
    Operation operation = Operation::kConstant;
    uint32_t line = 0;
    uint32_t depth = 1;  // of the tree
    std::string name;
    Value value;
    std::vector<ExpressionPtr> operands;
    std::vector<std::pair<std::string, ExpressionPtr>> named;
};

struct Statement;
using Block = std::vector<Statement>;

struct Macro {
    std::string name;
    std::vector<std::pair<std::string, ExpressionPtr>> parameters;  // with their defaults; null: none
    Block body;
};

struct Statement {
    enum class Kind : uint8_t {
        kText,       // text
        kPrint,      // expression
        kIf,         // branches; the last may have no condition
        kFor,        // targets in expression, if condition: body, else otherwise
        kSet,        // targets = expression
        kSetMember,  // targets[0].targets[1] = expression
        kSetBlock,   // targets[0] = what body writes
        kMacro,      // macro
        kBreak,
        kContinue
    };

    Kind kind = Kind::kText;
    uint32_t line = 0;
    std::string text;
    ExpressionPtr expression;
    ExpressionPtr condition;
    std::vector<std::string> targets;
    std::vector<std::pair<ExpressionPtr, Block>> branches;
    Block body;
    Block otherwise;
    std::unique_ptr<Macro> macro;
};

// Throws Error(TSR_UNSUPPORTED), with the line, for what is not Jinja, is nested too deeply, or uses statements or
// operators that are not known; filters, tests and functions are looked up when they are reached. `program` as in a
// model file.
Block parse(std::string_view program);

}  // namespace tessera::text::jinja
