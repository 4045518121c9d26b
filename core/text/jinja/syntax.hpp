// A parsed program: expressions and statements as trees.
#pragma once

#include "core/text/jinja/value.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tessera::text::jinja {

struct Expression;
using ExpressionPtr = std::unique_ptr<Expression>;

enum class Operation : uint8_t {
    kConstant,     // value
    kName,         // name
    kTuple,        // operands
    kList,         // operands
    kDictionary,   // operands: key, value, key, value
    kAttribute,    // operands[0].name
    kSubscript,    // operands[0][operands[1]]
    kSlice,        // operands[0][operands[1]:operands[2]:operands[3]], null where absent
    kCall,         // operands[0](operands[1..], named, *more, **more_named)
    kFilter,       // operands[0] | name(the same)
    kTest,         // operands[0] is name(the same)
    kNot,          //
    kNegate,       //
    kPlus,         //
    kAnd,          //
    kOr,           //
    kAdd,          //
    kSubtract,     //
    kMultiply,     //
    kDivide,       //
    kFloorDivide,  //
    kModulo,       //
    kPower,        //
    kConcatenate,  // operands[0] ~ operands[1] ~ ...
    kCompare,      // operands[0] comparisons[0] operands[1] comparisons[1] ...
    kConditional   // operands[0] if operands[1] else operands[2], null where absent
};
enum class Comparison : uint8_t { kEqual, kNotEqual, kLess, kLessEqual, kGreater, kGreaterEqual, kIn, kNotIn };

struct Expression {
    Operation operation = Operation::kConstant;
    uint32_t line = 0;
    uint32_t depth = 1;       // of the tree
    std::string name;         // of kSubscript: the text of a constant index
    std::string_view source;  // a part of Template::source
    Value value;
    std::vector<ExpressionPtr> operands;
    std::vector<Comparison> comparisons;
    std::vector<std::pair<std::string, ExpressionPtr>> named;
    ExpressionPtr more, more_named;  // *list and **dictionary
};

struct Statement;
using Block = std::vector<Statement>;

// What a statement assigns to: a name, a member of a namespace, or several of them.
struct Target {
    std::string name;
    std::string member;
    std::vector<Target> parts;  // not empty: a tuple
    bool is_tuple = false;
};

struct Macro {
    std::string name;
    std::vector<std::pair<std::string, ExpressionPtr>> parameters;  // with their defaults; null: none
    Block body;
    // Which of the names that a macro has without parameters it reads.
    bool takes_more = false, takes_more_named = false, takes_caller = false;
};

struct Statement {
    enum class Kind : uint8_t {
        kText,      // text
        kPrint,     // expressions
        kIf,        // branches; the last may have no condition
        kFor,       // target in expression, if condition: body, else otherwise
        kSet,       // target = expression
        kSetBlock,  // target = what body writes, through the filters
        kWith,      // assignments, body
        kMacro,     // macro
        kCall,      // expression, a call, with macro as its caller
        kFilter,    // what body writes, through the filters
        kScope,     // body, with variables of its own
        kDo,        // expression
        kBreak,
        kContinue,
        kRefused  // text: why, when it is reached
    };

    Kind kind = Kind::kText;
    uint32_t line = 0;
    std::string text;
    std::string_view source;
    ExpressionPtr expression;  // of filters: a chain of them, with kConstant at its end for what is filtered
    ExpressionPtr condition;
    Target target;
    std::vector<std::pair<Target, ExpressionPtr>> assignments;
    std::vector<std::pair<ExpressionPtr, Block>> branches;
    Block body;
    Block otherwise;
    std::unique_ptr<Macro> macro;
    bool recursive = false;
};

struct Template {
    std::string source;
    Block block;
};

// Throws Error(TSR_UNSUPPORTED), with the line, for what is not Jinja, is nested too deeply, or uses statements,
// filters or tests that are not known where they are reached for certain. `program` as in a model file.
std::unique_ptr<const Template> parse(std::string_view program);

}  // namespace tessera::text::jinja
