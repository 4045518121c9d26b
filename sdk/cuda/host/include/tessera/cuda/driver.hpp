// The CUDA driver, opened at run time. The functions and constants declared here are those of the CUDA Driver API
// reference manual; no header of NVIDIA's is needed, and a machine without a driver can map what is built on this.
#pragma once

#include <tessera/cpp/status.hpp>

#include <cstddef>
#include <cstdint>
#include <string>

namespace tessera::cuda {

using Result = int;  // CUresult
inline constexpr Result kSuccess = 0;
inline constexpr Result kInvalidValue = 1;
inline constexpr Result kOutOfMemory = 2;
inline constexpr Result kNotReady = 600;
inline constexpr Result kPeerAccessAlreadyEnabled = 704;

using DeviceNumber = int;       // CUdevice
using Address = uint64_t;       // CUdeviceptr
using Context = void*;          // CUcontext
using Stream = void*;           // CUstream
using Event = void*;            // CUevent
using LoadedModule = void*;     // CUmodule
using Function = void*;         // CUfunction
using Graph = void*;            // CUgraph
using ExecutableGraph = void*;  // CUgraphExec

// X(field, symbol of the library, parameters); all return Result.
#define TESSERA_CUDA_FUNCTIONS(X)                                                                                      \
    X(init, cuInit, (unsigned flags))                                                                                  \
    X(driver_version, cuDriverGetVersion, (int* version))                                                              \
    X(error_name, cuGetErrorName, (Result result, const char** text))                                                  \
    X(error_string, cuGetErrorString, (Result result, const char** text))                                              \
    X(device_count, cuDeviceGetCount, (int* count))                                                                    \
    X(device, cuDeviceGet, (DeviceNumber * device, int ordinal))                                                       \
    X(device_attribute, cuDeviceGetAttribute, (int* value, int attribute, DeviceNumber device))                        \
    X(device_pci_id, cuDeviceGetPCIBusId, (char* id, int capacity, DeviceNumber device))                               \
    X(retain_context, cuDevicePrimaryCtxRetain, (Context * context, DeviceNumber device))                              \
    X(release_context, cuDevicePrimaryCtxRelease_v2, (DeviceNumber device))                                            \
    X(push_context, cuCtxPushCurrent_v2, (Context context))                                                            \
    X(pop_context, cuCtxPopCurrent_v2, (Context * context))                                                            \
    X(context_device, cuCtxGetDevice, (DeviceNumber * device))                                                         \
    X(allocate, cuMemAlloc_v2, (Address * address, size_t bytes))                                                      \
    X(free, cuMemFree_v2, (Address address))                                                                           \
    X(memory_info, cuMemGetInfo_v2, (size_t * free, size_t * total))                                                   \
    X(host_allocate, cuMemHostAlloc, (void** address, size_t bytes, unsigned flags))                                   \
    X(host_free, cuMemFreeHost, (void* address))                                                                       \
    X(host_register, cuMemHostRegister_v2, (void* address, size_t bytes, unsigned flags))                              \
    X(host_unregister, cuMemHostUnregister, (void* address))                                                           \
    X(pointer_attribute, cuPointerGetAttribute, (void* value, int attribute, Address address))                         \
    X(upload, cuMemcpyHtoDAsync_v2, (Address to, const void* from, size_t bytes, Stream stream))                       \
    X(download, cuMemcpyDtoHAsync_v2, (void* to, Address from, size_t bytes, Stream stream))                           \
    X(copy, cuMemcpyDtoDAsync_v2, (Address to, Address from, size_t bytes, Stream stream))                             \
    X(copy_peer, cuMemcpyPeerAsync,                                                                                    \
      (Address to, Context to_context, Address from, Context from_context, size_t bytes, Stream stream))               \
    X(can_access_peer, cuDeviceCanAccessPeer, (int* can, DeviceNumber device, DeviceNumber peer))                      \
    X(enable_peer, cuCtxEnablePeerAccess, (Context peer, unsigned flags))                                              \
    X(create_stream, cuStreamCreate, (Stream * stream, unsigned flags))                                                \
    X(destroy_stream, cuStreamDestroy_v2, (Stream stream))                                                             \
    X(synchronize_stream, cuStreamSynchronize, (Stream stream))                                                        \
    X(stream_wait_event, cuStreamWaitEvent, (Stream stream, Event event, unsigned flags))                              \
    X(create_event, cuEventCreate, (Event * event, unsigned flags))                                                    \
    X(destroy_event, cuEventDestroy_v2, (Event event))                                                                 \
    X(record_event, cuEventRecord, (Event event, Stream stream))                                                       \
    X(query_event, cuEventQuery, (Event event))                                                                        \
    X(synchronize_event, cuEventSynchronize, (Event event))                                                            \
    X(elapsed, cuEventElapsedTime, (float* milliseconds, Event begin, Event end))                                      \
    X(load_module, cuModuleLoadData, (LoadedModule * module, const void* image))                                       \
    X(unload_module, cuModuleUnload, (LoadedModule module))                                                            \
    X(function, cuModuleGetFunction, (Function * function, LoadedModule module, const char* name))                     \
    X(function_attribute, cuFuncGetAttribute, (int* value, int attribute, Function function))                          \
    X(set_function_attribute, cuFuncSetAttribute, (Function function, int attribute, int value))                       \
    X(launch, cuLaunchKernel,                                                                                          \
      (Function function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y,       \
       unsigned block_z, unsigned shared_bytes, Stream stream, void** arguments, void** extra))                        \
    X(begin_capture, cuStreamBeginCapture_v2, (Stream stream, int mode))                                               \
    X(end_capture, cuStreamEndCapture, (Stream stream, Graph * graph))                                                 \
    X(instantiate, cuGraphInstantiateWithFlags, (ExecutableGraph * executable, Graph graph, unsigned long long flags)) \
    X(upload_graph, cuGraphUpload, (ExecutableGraph executable, Stream stream))                                        \
    X(launch_graph, cuGraphLaunch, (ExecutableGraph executable, Stream stream))                                        \
    X(destroy_executable, cuGraphExecDestroy, (ExecutableGraph executable))                                            \
    X(destroy_graph, cuGraphDestroy, (Graph graph))

// CUlaunchAttribute and CUlaunchConfig.
struct LaunchAttribute {
    int id;
    int padding;
    union {
        char bytes[64];
        int allowed;
    } value;
};
struct LaunchConfig {
    unsigned grid[3], block[3], shared_bytes;
    Stream stream;
    const LaunchAttribute* attributes;
    unsigned attribute_count;
};

struct Driver {
#define TESSERA_CUDA_FUNCTION(field, symbol, parameters) Result(*field) parameters;
    TESSERA_CUDA_FUNCTIONS(TESSERA_CUDA_FUNCTION)
#undef TESSERA_CUDA_FUNCTION
    // nullptr: the driver records no graph whose kernels may overlap (before CUDA 12.3).
    Result (*launch_overlapping)(const LaunchConfig* config, Function function, void** arguments, void** extra);

    // The driver of this machine, opened and initialised by the first call and never closed. Throws
    // sdk::Failure(TSR_NOT_FOUND or TSR_UNSUPPORTED), again with each call, if there is none, it is too old, or it
    // cannot be initialised. [any]
    static const Driver& get();

    // Throws sdk::Failure that names the function of the driver, its error and, if not empty, what was being done:
    // "CUDA0: allocating 1024 bytes". The code is TSR_DOES_NOT_FIT for memory that cannot be had, TSR_DEVICE_LOST for
    // errors after which the context cannot be used any more, else TSR_DEVICE_ERROR.
    void check(Result result, const char* call, const std::string& what) const;
};

// Whether the driver's error ends the context: every later call would return it, too.
bool is_final(Result result) noexcept;

// Makes a context current as long as this lives. Throws sdk::Failure.
class CurrentContext {
  public:
    CurrentContext(const Driver& driver, Context context);
    ~CurrentContext();
    CurrentContext(const CurrentContext&) = delete;
    CurrentContext& operator=(const CurrentContext&) = delete;

  private:
    const Driver& driver_;
};

}  // namespace tessera::cuda
