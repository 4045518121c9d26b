// What belongs to the whole process and a library may change while it is mapped.
#pragma once

#include <sys/types.h>

#include <array>
#include <csignal>
#include <optional>
#include <string>
#include <vector>

namespace tessera {

// The working directory, the umask, the actions of signals and the signals that the calling thread blocks, as they are
// now. One thread of the process at a time.
class ProcessState {
  public:
    ProcessState() noexcept;
    ~ProcessState();
    ProcessState(const ProcessState&) = delete;
    ProcessState& operator=(const ProcessState&) = delete;

    // Sets back what has changed since, and returns the name of each such thing: "the working directory", "the action
    // of signal 11". What cannot be set back is in the list, too.
    std::vector<std::string> restore() const;

  private:
    int directory_ = -1;  // a descriptor; -1: it cannot be opened
    std::optional<mode_t> umask_;
    std::array<struct sigaction, NSIG> actions_{};
    sigset_t blocked_{};
};

}  // namespace tessera
