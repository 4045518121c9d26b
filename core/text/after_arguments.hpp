// Text between the arguments of a call and the mark that ends them.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

namespace tessera::text {

// Decides byte by byte what such a text is: brackets, quotes and separators only, which are superfluous; another
// object, which is another call of the same function; or anything else, which is content. One thread at a time.
class AfterArguments {
  public:
    enum class Kind : uint8_t { kUndecided, kCall, kContent };

    void begin() { *this = AfterArguments(); }
    bool empty() const noexcept { return held_.empty(); }
    // Reads a byte; after kCall and kContent take() returns all that was read.
    Kind read(char c);
    // kCall: from the bracket that begins the object.
    std::string take();
    // The same where nothing follows: empty if it is superfluous.
    std::string take_at_end() { return opened_ ? take() : (begin(), std::string()); }

  private:
    std::string held_;
    size_t object_ = 0;       // bytes of held_ before its bracket
    bool separates_ = true;   // nothing but spaces and separators was read
    bool opened_ = false;     // a bracket that may begin an object was
    bool is_object_ = false;  // and a key or its end after it
};

}  // namespace tessera::text
