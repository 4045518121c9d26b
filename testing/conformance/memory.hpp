// Memory in which every wrong access is noticed.
#pragma once

#include <cstddef>
#include <string>

namespace tessera::conformance {

// Pages of their own between pages that nobody may touch. The data end as close to the upper one as an alignment of
// 64 bytes allows; what is left over around them holds a pattern. At most 64 live at once.
class GuardedBuffer {
  public:
    // `name`: for messages, "input 1 (weight)". Throws std::bad_alloc.
    GuardedBuffer(std::string name, size_t bytes);
    ~GuardedBuffer();
    GuardedBuffer(const GuardedBuffer&) = delete;
    GuardedBuffer& operator=(const GuardedBuffer&) = delete;

    std::byte* data() const noexcept { return data_; }
    size_t size() const noexcept { return bytes_; }
    const std::string& name() const noexcept { return name_; }
    // From now on writing ends the process, or does not.
    void protect(bool on) noexcept;
    // Throws std::runtime_error if what surrounds the data was written to.
    void check_margins() const;

  private:
    std::string name_;
    size_t bytes_, mapped_;
    std::byte *map_, *data_;
    size_t slot_;
};

// Installs a handler of invalid accesses: writes "fault TAB what happened" with the buffer's name to `descriptor` and
// ends the process.
void report_faults_to(int descriptor) noexcept;
constexpr int kFaultExit = 70;

}  // namespace tessera::conformance
