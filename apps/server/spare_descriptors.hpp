// File descriptors that are kept for when all others are in use.
#pragma once

#include <cstddef>
#include <vector>

namespace tessera::server {

// Without a free descriptor nothing can be accepted, and whoever asks whether the server is well hears nothing. One
// thread at a time.
class SpareDescriptors {
  public:
    explicit SpareDescriptors(size_t count) : count_(count) {}
    ~SpareDescriptors();
    SpareDescriptors(const SpareDescriptors&) = delete;
    SpareDescriptors& operator=(const SpareDescriptors&) = delete;

    // Opens those that are missing, as far as the system has some.
    void fill();
    // Some are missing: the process has no others left.
    bool lacking() const noexcept { return held_.size() < count_; }
    // Closes one, so that another can be opened. False: there is none.
    bool free_one();

  private:
    const size_t count_;
    std::vector<int> held_;
};

}  // namespace tessera::server
