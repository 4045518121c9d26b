#include "apps/server/given_file.hpp"

#include "core/base/byte_order_mark.hpp"
#include "core/base/error.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

namespace tessera::server {

GivenFile read_given_file(std::string_view flag, const std::filesystem::path& path, uint64_t most) {
    const auto unreadable = [&](tsr_code code) {
        fail(code, "{} {}: the file cannot be read: {}", flag, path.string(), std::generic_category().message(errno));
    };
    const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (descriptor < 0) unreadable(TSR_NOT_FOUND);
    struct Closing {
        int descriptor;
        ~Closing() { close(descriptor); }
    } const closing{descriptor};
    struct stat status {};
    if (fstat(descriptor, &status) != 0) unreadable(TSR_IO_ERROR);
    if (!S_ISREG(status.st_mode)) {
        fail(TSR_INVALID_ARGUMENT, "{} {}: expected a regular file, found {}", flag, path.string(),
             S_ISDIR(status.st_mode)    ? "a directory"
             : S_ISFIFO(status.st_mode) ? "a pipe"
             : S_ISSOCK(status.st_mode) ? "a socket"
                                        : "a device");
    }
    GivenFile file;
    file.for_all = (status.st_mode & S_IROTH) != 0;
    char part[65536];
    for (ssize_t bytes; (bytes = read(descriptor, part, sizeof part)) != 0;) {
        if (bytes < 0 && errno == EINTR) continue;
        if (bytes < 0) unreadable(TSR_IO_ERROR);
        file.text.append(part, static_cast<size_t>(bytes));
        if (file.text.size() > most)
            fail(TSR_INVALID_ARGUMENT, "{} {}: has more than {} bytes, which are all that is expected", flag,
                 path.string(), most);
    }
    if (file.text.starts_with(kByteOrderMark)) file.text.erase(0, kByteOrderMark.size());
    return file;
}

}  // namespace tessera::server
