#include "core/hardware/speed_file.hpp"

#include "core/base/error.hpp"
#include "core/base/folders.hpp"
#include "core/base/toml.hpp"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <string>
#include <string_view>

namespace tessera {
namespace {

namespace fs = std::filesystem;
using std::chrono::system_clock;

// Measured speed over predicted speed from which a run shows that the kept figures are too low.
constexpr double kOutrun = 1.2;
// A second measurement that is faster by less than this confirms the first.
constexpr double kFaster = 1.05;
// Share that a figure older than a day keeps at least.
constexpr double kOldShare = 0.9;

int64_t mega(double value) {
    return static_cast<int64_t>(value / 1e6);
}

int64_t seconds_of(system_clock::time_point time) {
    return std::chrono::duration_cast<std::chrono::seconds>(time.time_since_epoch()).count();
}

uint64_t hash_of(std::string_view text) {
    uint64_t hash = 14695981039346656037ull;  // FNV-1a
    for (const unsigned char c : text) hash = (hash ^ c) * 1099511628211ull;
    return hash;
}

std::string toml_text(std::string_view text) {
    std::string safe = "\"";
    for (const char c : text) safe += c == '"' || c == '\\' || static_cast<unsigned char>(c) < ' ' ? '_' : c;
    return safe + '"';
}

bool is_complete(const MachineSpeed& speed) {
    return speed.clock_hz > 0 && speed.thread_bandwidth > 0 && speed.memory_bandwidth > 0;
}

// A time in the future, by more than clocks differ, is of a clock that was wrong.
bool is_older(const KeptSpeed& kept, system_clock::time_point now, system_clock::duration age) {
    return now - kept.measured > age || kept.measured - now > std::chrono::minutes(10);
}

// A figure that changes little stays as it is: what is known of earlier runs is kept by these figures.
double followed(double kept, double now, bool is_day_old) {
    if (now > kFaster * kept) return now;
    return is_day_old && now < kOldShare * kept ? kOldShare * kept : kept;
}

KeptSpeed measured_again(const KeptSpeed& kept, const MachineSpeed& now, system_clock::time_point time,
                         bool is_day_old) {
    const MachineSpeed& old = kept.speed;
    KeptSpeed fresh{
        {followed(old.clock_hz, now.clock_hz, is_day_old),
         followed(old.thread_bandwidth, now.thread_bandwidth, is_day_old),
         followed(old.memory_bandwidth, now.memory_bandwidth, is_day_old), old.is_disturbed && now.is_disturbed},
        time};
    const bool is_faster = fresh.speed.thread_bandwidth > old.thread_bandwidth ||
                           fresh.speed.memory_bandwidth > old.memory_bandwidth || fresh.speed.clock_hz > old.clock_hz;
    fresh.is_confirmed = kept.is_outrun && !is_faster && !is_day_old;
    return fresh;
}

}  // namespace

std::optional<fs::path> default_speed_file(const DeviceDescription& cpu) {
    const std::optional<fs::path> folder = user_cache_folder();
    if (!folder) return std::nullopt;
    return *folder / fmt::format("speed-{:016x}-{}.toml", hash_of(cpu.name), cpu.threads);
}

std::optional<KeptSpeed> read_speed(const fs::path& file, const DeviceDescription& cpu) {
    std::error_code error;
    if (!fs::exists(file, error)) return std::nullopt;
    try {
        const TomlFile toml = TomlFile::read(file);
        TomlFile::Table root = toml.root();
        constexpr int64_t kMaximum = 100'000'000;
        constexpr int64_t kMaximumMhz = 8000;  // no processor is faster: a file that says so was measured wrongly
        constexpr int64_t kLatest = int64_t{1} << 33;  // seconds since 1970, far in the future
        const std::string name = root.need(root.string("processor"), "processor");
        const int64_t threads = root.need(root.integer("threads", 1, 1 << 16), "threads");
        KeptSpeed kept;
        MachineSpeed& speed = kept.speed;
        speed.clock_hz = 1e6 * static_cast<double>(root.need(root.integer("clock_mhz", 100, kMaximumMhz), "clock_mhz"));
        speed.thread_bandwidth =
            1e6 * static_cast<double>(root.need(root.integer("thread_mb_s", 1, kMaximum), "thread_mb_s"));
        speed.memory_bandwidth =
            1e6 * static_cast<double>(root.need(root.integer("memory_mb_s", 1, kMaximum), "memory_mb_s"));
        speed.is_disturbed = root.boolean("disturbed").value_or(false);
        // Older versions wrote no time: their figures count as older than a day.
        kept.measured =
            system_clock::time_point(std::chrono::seconds(root.integer("measured_at", 0, kLatest).value_or(0)));
        kept.is_outrun = root.boolean("outrun").value_or(false);
        kept.is_confirmed = root.boolean("confirmed").value_or(false);
        root.finish();
        if (toml_text(name) != toml_text(cpu.name) || threads != cpu.threads) return std::nullopt;
        return kept;
    } catch (const Error&) {
        return std::nullopt;  // measured anew, and the file replaced
    }
}

void write_speed(const fs::path& file, const DeviceDescription& cpu, const KeptSpeed& kept) noexcept {
    try {
        std::error_code error;
        fs::create_directories(file.parent_path(), error);
        // Written under a name of this process and then renamed: readers see the old file or the new one.
        const fs::path fresh = fmt::format("{}.{}", file.string(), getpid());
        std::ofstream out(fresh);
        out << "# Measured by tessera; it is measured again when this file is removed.\n"
            << fmt::format(
                   "processor = {}\nthreads = {}\nclock_mhz = {}\nthread_mb_s = {}\nmemory_mb_s = {}\ndisturbed = {}\n"
                   "measured_at = {}\noutrun = {}\nconfirmed = {}\n",
                   toml_text(cpu.name), cpu.threads, mega(kept.speed.clock_hz), mega(kept.speed.thread_bandwidth),
                   mega(kept.speed.memory_bandwidth), kept.speed.is_disturbed, seconds_of(kept.measured),
                   kept.is_outrun, kept.is_confirmed);
        out.close();
        if (out) fs::rename(fresh, file, error);
        if (!out || error) fs::remove(fresh, error);
    } catch (const std::exception&) {
        return;
    }
}

void apply_speed(Hardware& hardware, const std::optional<fs::path>& file, const SpeedSource& source) {
    if (hardware.is_rig()) return;
    const DeviceDescription& cpu = hardware.cpu_description();
    const system_clock::time_point now = source.now();
    std::optional<KeptSpeed> kept = file ? read_speed(*file, cpu) : std::nullopt;
    const bool is_day_old = kept && is_older(*kept, now, std::chrono::hours(24));
    const bool is_disturbed = kept && kept->speed.is_disturbed && is_older(*kept, now, std::chrono::minutes(10));
    if (!kept || is_day_old || is_disturbed || kept->is_outrun) {
        const MachineSpeed fresh = source.measure(cpu);
        if (is_complete(fresh)) {
            kept = kept ? measured_again(*kept, fresh, now, is_day_old) : KeptSpeed{fresh, now};
            if (file) write_speed(*file, cpu, *kept);
        }
    }
    if (!kept || !is_complete(kept->speed)) return;
    if (kept->speed.is_disturbed) {
        hardware.add_note(
            "other processes kept this machine busy while its speed was measured: predictions may be too low");
    }
    hardware.set_speed(kept->speed.clock_hz, kept->speed.thread_bandwidth, kept->speed.memory_bandwidth);
}

void note_run_speed(const fs::path& file, const DeviceDescription& cpu, double ratio) noexcept {
    if (!(ratio > kOutrun)) return;
    try {
        std::optional<KeptSpeed> kept = read_speed(file, cpu);
        if (!kept || kept->is_outrun || kept->is_confirmed) return;
        kept->is_outrun = true;
        write_speed(file, cpu, *kept);
    } catch (const std::exception&) {
        return;
    }
}

}  // namespace tessera
