#include <tessera/cuda/driver.hpp>

#include <dlfcn.h>

#include <algorithm>
#include <iterator>
#include <optional>

namespace tessera::cuda {
namespace {

using sdk::Failure;

struct Opened {
    std::optional<Driver> driver;
    tsr_code code = TSR_NOT_FOUND;
    std::string why;
};

Opened open_driver() {
    Opened opened;
    // The .1 name is the driver's; stubs that only programs are linked with have the other one. It stays open: drivers
    // cannot be unloaded.
    void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        const char* why = dlerror();
        opened.why = std::string("no NVIDIA driver: ") + (why ? why : "libcuda.so.1 cannot be opened");
        return opened;
    }
    Driver driver{};
    opened.code = TSR_UNSUPPORTED;
#define TESSERA_CUDA_FUNCTION(field, symbol, parameters)                                                \
    driver.field = reinterpret_cast<Result(*) parameters>(dlsym(library, #symbol));                     \
    if (!driver.field) {                                                                                \
        opened.why = "the NVIDIA driver lacks the function " #symbol ": expected release 525 or later"; \
        return opened;                                                                                  \
    }
    TESSERA_CUDA_FUNCTIONS(TESSERA_CUDA_FUNCTION)
#undef TESSERA_CUDA_FUNCTION
    constexpr int kRecordsOverlaps = 12030;
    int version = 0;
    if (driver.driver_version(&version) == kSuccess && version >= kRecordsOverlaps)
        driver.launch_overlapping =
            reinterpret_cast<decltype(driver.launch_overlapping)>(dlsym(library, "cuLaunchKernelEx"));
    try {
        driver.check(driver.init(0), "cuInit", "");
    } catch (const Failure& failure) {
        opened.why = failure.what();
        return opened;
    }
    opened.driver = driver;
    return opened;
}

// Errors of the manual that say that the context, or the driver, is of no use any more.
constexpr Result kFinal[] = {
    4,    // DEINITIALIZED
    46,   // DEVICE_UNAVAILABLE
    214,  // ECC_UNCORRECTABLE
    220,  // NVLINK_UNCORRECTABLE
    226,  // CONTAINED
    700,  // ILLEGAL_ADDRESS
    702,  // LAUNCH_TIMEOUT
    709,  // CONTEXT_IS_DESTROYED
    710,  // ASSERT
    714,  // HARDWARE_STACK_ERROR
    715,  // ILLEGAL_INSTRUCTION
    716,  // MISALIGNED_ADDRESS
    717,  // INVALID_ADDRESS_SPACE
    718,  // INVALID_PC
    719,  // LAUNCH_FAILED
    721,  // TENSOR_MEMORY_LEAK
    802,  // SYSTEM_NOT_READY
    805,  // MPS_CONNECTION_FAILED
    807,  // MPS_SERVER_NOT_READY
    911,  // EXTERNAL_DEVICE
    999,  // UNKNOWN
};

}  // namespace

const Driver& Driver::get() {
    static const Opened opened = open_driver();
    if (!opened.driver) throw Failure(opened.code, opened.why);
    return *opened.driver;
}

bool is_final(Result result) noexcept {
    return std::ranges::find(kFinal, result) != std::end(kFinal);
}

void Driver::check(Result result, const char* call, const std::string& what) const {
    if (result == kSuccess) return;
    const char *name = nullptr, *text = nullptr;
    if (error_name(result, &name) != kSuccess || !name) name = "an unknown error";
    if (error_string(result, &text) != kSuccess || !text) text = "";
    const tsr_code code = result == kOutOfMemory ? TSR_DOES_NOT_FIT
                          : is_final(result)     ? TSR_DEVICE_LOST
                                                 : TSR_DEVICE_ERROR;
    throw Failure(code, (what.empty() ? "" : what + ": ") + call + " returned " + name + " (" + std::to_string(result) +
                            (*text ? std::string(", ") + text : "") + ")");
}

CurrentContext::CurrentContext(const Driver& driver, Context context) : driver_(driver) {
    driver.check(driver.push_context(context), "cuCtxPushCurrent", "");
}

CurrentContext::~CurrentContext() {
    Context popped = nullptr;
    driver_.pop_context(&popped);
}

}  // namespace tessera::cuda
