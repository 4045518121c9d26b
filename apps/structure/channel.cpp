#include "apps/structure/channel.hpp"

#include "core/base/error.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace tessera::structure {
namespace {

using Clock = std::chrono::steady_clock;

// Room for the numbers of files, aligned as the system wants it.
union Control {
    cmsghdr header;
    char bytes[CMSG_SPACE(sizeof(int) * kMostFiles)];
};

[[noreturn]] void fail_call(const char* what) {
    fail(TSR_IO_ERROR, "cannot {}: {}", what, std::strerror(errno));
}

// Whether something can be read by then.
bool readable(int number, std::optional<Clock::time_point> until) {
    for (;;) {
        timespec left{};
        if (until) {
            const auto nanoseconds =
                std::chrono::duration_cast<std::chrono::nanoseconds>(std::max(*until - Clock::now(), {})).count();
            left = {nanoseconds / 1'000'000'000, nanoseconds % 1'000'000'000};
        }
        pollfd poll{number, POLLIN, 0};
        const int found = ppoll(&poll, 1, until ? &left : nullptr, nullptr);
        if (found > 0) return true;
        if (found == 0) return false;
        if (errno != EINTR) fail_call("wait for a message");
    }
}

}  // namespace

void OpenFile::close() noexcept {
    if (number_ >= 0) ::close(number_);
    number_ = -1;
}

std::pair<OpenFile, OpenFile> make_channel() {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) fail_call("make a channel between processes");
    return {OpenFile(ends[0]), OpenFile(ends[1])};
}

void send_message(const OpenFile& channel, std::string_view bytes, std::initializer_list<int> files) {
    iovec part{const_cast<char*>(bytes.data()), bytes.size()};
    msghdr header{};
    header.msg_iov = &part;
    header.msg_iovlen = 1;
    Control control{};
    if (files.size() > 0) {
        header.msg_control = control.bytes;
        header.msg_controllen = CMSG_SPACE(sizeof(int) * files.size());
        cmsghdr* const rights = CMSG_FIRSTHDR(&header);
        rights->cmsg_level = SOL_SOCKET;
        rights->cmsg_type = SCM_RIGHTS;
        rights->cmsg_len = CMSG_LEN(sizeof(int) * files.size());
        std::memcpy(CMSG_DATA(rights), files.begin(), sizeof(int) * files.size());
    }
    ssize_t sent;
    do sent = sendmsg(channel.number(), &header, MSG_NOSIGNAL | MSG_DONTWAIT);
    while (sent < 0 && errno == EINTR);
    if (sent != static_cast<ssize_t>(bytes.size())) fail_call("send a message to another process");
}

Received receive_message(const OpenFile& channel, Message& message, std::optional<Clock::time_point> until) {
    if (!readable(channel.number(), until)) return Received::kNothingYet;
    message = {};
    message.bytes.resize(kMostMessageBytes);
    iovec part{message.bytes.data(), message.bytes.size()};
    Control control{};
    msghdr header{};
    header.msg_iov = &part;
    header.msg_iovlen = 1;
    header.msg_control = control.bytes;
    header.msg_controllen = sizeof control.bytes;
    ssize_t received;
    // The other end has been closed before it read all: that is told once, and what it sent comes behind.
    do received = recvmsg(channel.number(), &header, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
    while (received < 0 && (errno == EINTR || errno == ECONNRESET));
    if (received < 0 && errno == EAGAIN) return Received::kNothingYet;
    if (received < 0) fail_call("receive a message of another process");
    size_t taken = 0;
    for (cmsghdr* rights = CMSG_FIRSTHDR(&header); rights; rights = CMSG_NXTHDR(&header, rights)) {
        if (rights->cmsg_level != SOL_SOCKET || rights->cmsg_type != SCM_RIGHTS) continue;
        for (size_t at = 0; CMSG_LEN(at + sizeof(int)) <= rights->cmsg_len; at += sizeof(int)) {
            int number;
            std::memcpy(&number, CMSG_DATA(rights) + at, sizeof number);
            OpenFile file(number);
            if (taken < kMostFiles) message.files[taken++] = std::move(file);
        }
    }
    if (received <= 0) return Received::kClosed;
    if (header.msg_flags & (MSG_TRUNC | MSG_CTRUNC))
        fail(TSR_CORRUPT_DATA, "a message of another process is longer than any is");
    message.bytes.resize(static_cast<size_t>(received));
    return Received::kMessage;
}

}  // namespace tessera::structure
