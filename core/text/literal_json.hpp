// Values as Python or Gemma writes them, turned into JSON while they arrive.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tessera::text {

// kPython: texts between quotes of either kind, True, False, None. kGemma: keys without quotes, texts between <|"|>.
enum class LiteralSyntax : uint8_t { kPython, kGemma };

// JSON is spaced as Python's json module writes it.
class LiteralJson {
  public:
    explicit LiteralJson(LiteralSyntax syntax) : syntax_(syntax) {}

    // One value follows.
    void begin_value();
    // Arguments of a call, behind the bracket that opens them: kPython NAME=VALUE, ...); kGemma KEY:VALUE,...}
    void begin_arguments();

    enum class Status : uint8_t { kOpen, kClosed, kBad };
    struct Progress {
        Status status;
        size_t bytes = 0;  // read; kOpen with less than the text: more has to be there
    };
    // Appends to `json`. kBad ends it.
    Progress read(std::string_view text, bool over, std::string& json);

  private:
    enum class State : uint8_t { kOpen, kItem, kKey, kBareKey, kSeparator, kValue, kWord, kText, kAfter, kClosed };
    enum class Step : uint8_t { kGoOn, kWait, kBad };

    Step step(std::string_view& rest, bool over, std::string& json);
    Step item(std::string_view& rest, std::string& json);
    Step key(std::string_view& rest, std::string& json);
    Step bare_key(std::string_view& rest, std::string& json);
    Step value(std::string_view& rest, bool over, std::string& json);
    Step word(std::string_view& rest, bool over, std::string& json);
    Step text(std::string_view& rest, bool over, std::string& json);
    Step escape(std::string_view& rest, bool over, std::string& json);
    Step after(std::string_view& rest, std::string& json);
    // Whether a text begins here: it is begun.
    bool begin_text(std::string_view& rest, std::string& json);
    Step open(char close, std::string& json);
    Step close(std::string& json);
    void end_value();
    void end_text(std::string& json);
    bool has_bare_keys() const { return syntax_ == LiteralSyntax::kGemma || closes_.back() == kArguments; }

    // In closes_: arguments end with the same bracket as tuples.
    static constexpr char kArguments = 'a', kTuple = ')';
    bool in_list() const { return closes_.back() == ']' || closes_.back() == kTuple; }
    char closing_bracket() const { return closes_.back() == kArguments ? ')' : closes_.back(); }

    const LiteralSyntax syntax_;
    State state_ = State::kClosed;
    bool first_ = true;         // nothing of the innermost bracket was read
    bool is_key_ = false;       // the text being read is one
    char quote_ = '\0';         // that ends the text; none: Gemma's
    std::string word_;          // or key, that is not complete
    std::vector<char> closes_;  // of the open brackets
};

// One value of Python as JSON; nothing if it is none.
std::optional<std::string> python_literal_as_json(std::string_view text);

}  // namespace tessera::text
