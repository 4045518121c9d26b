// The command line is wrong.
#pragma once

#include <stdexcept>

namespace tessera::app {

// what() says where the command line is wrong and what to write instead. The program ends with kExitUsage.
class UsageError : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

}  // namespace tessera::app
