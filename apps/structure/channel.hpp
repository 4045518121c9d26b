// Messages between the program and `tessera-constrain`, with open files, over sockets that keep messages apart.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tessera::structure {

// A file descriptor that is closed with the object. Movable.
class OpenFile {
  public:
    OpenFile() = default;
    explicit OpenFile(int number) : number_(number) {}
    ~OpenFile() { close(); }
    OpenFile(OpenFile&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
    OpenFile& operator=(OpenFile&& other) noexcept {
        if (this != &other) {
            close();
            number_ = std::exchange(other.number_, -1);
        }
        return *this;
    }
    int number() const noexcept { return number_; }
    explicit operator bool() const noexcept { return number_ >= 0; }

  private:
    void close() noexcept;
    int number_ = -1;
};

inline constexpr size_t kMostMessageBytes = 16 << 10;
inline constexpr size_t kMostFiles = 2;

struct Message {
    std::string bytes;
    std::array<OpenFile, kMostFiles> files;
};

// Both ends. Throws Error(TSR_IO_ERROR) where the system gives none.
std::pair<OpenFile, OpenFile> make_channel();

// Throws Error(TSR_IO_ERROR) if the other end is closed, or does not read.
void send_message(const OpenFile& channel, std::string_view bytes, std::initializer_list<int> files = {});

enum class Received : uint8_t { kMessage, kNothingYet, kClosed };

// The next message, waited for until then; without a time for as long as it takes. Throws Error(TSR_CORRUPT_DATA) for
// one that is longer than any is, and Error(TSR_IO_ERROR).
Received receive_message(const OpenFile& channel, Message& message,
                         std::optional<std::chrono::steady_clock::time_point> until = {});

}  // namespace tessera::structure
