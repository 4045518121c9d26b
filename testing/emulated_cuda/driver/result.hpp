// Results of driver functions: numbers and names of the CUDA Driver API manual, "CUresult".
#pragma once

namespace tessera::cuda::emulated {

// name, number, what cuGetErrorString says
#define TSR_CUDA_RESULTS(RESULT)                                                                                     \
    RESULT(SUCCESS, 0, "no error")                                                                                   \
    RESULT(ERROR_INVALID_VALUE, 1, "invalid argument")                                                               \
    RESULT(ERROR_OUT_OF_MEMORY, 2, "out of memory")                                                                  \
    RESULT(ERROR_NOT_INITIALIZED, 3, "initialization error")                                                         \
    RESULT(ERROR_DEVICE_UNAVAILABLE, 46, "CUDA-capable device(s) is/are busy or unavailable")                        \
    RESULT(ERROR_NO_DEVICE, 100, "no CUDA-capable device is detected")                                               \
    RESULT(ERROR_INVALID_DEVICE, 101, "invalid device ordinal")                                                      \
    RESULT(ERROR_INVALID_IMAGE, 200, "device kernel image is invalid")                                               \
    RESULT(ERROR_INVALID_CONTEXT, 201, "invalid device context")                                                     \
    RESULT(ERROR_NO_BINARY_FOR_GPU, 209, "no kernel image is available for execution on the device")                 \
    RESULT(ERROR_PEER_ACCESS_UNSUPPORTED, 217, "peer access is not supported between these two devices")             \
    RESULT(ERROR_INVALID_PTX, 218, "a PTX JIT compilation failed")                                                   \
    RESULT(ERROR_UNSUPPORTED_PTX_VERSION, 222, "the provided PTX was compiled with an unsupported toolchain")        \
    RESULT(ERROR_SHARED_OBJECT_INIT_FAILED, 303, "shared object initialization failed")                              \
    RESULT(ERROR_INVALID_HANDLE, 400, "invalid resource handle")                                                     \
    RESULT(ERROR_NOT_FOUND, 500, "named symbol not found")                                                           \
    RESULT(ERROR_NOT_READY, 600, "device not ready")                                                                 \
    RESULT(ERROR_ILLEGAL_ADDRESS, 700, "an illegal memory access was encountered")                                   \
    RESULT(ERROR_LAUNCH_OUT_OF_RESOURCES, 701, "too many resources requested for launch")                            \
    RESULT(ERROR_LAUNCH_TIMEOUT, 702, "the launch timed out and was terminated")                                     \
    RESULT(ERROR_PEER_ACCESS_ALREADY_ENABLED, 704, "peer access is already enabled")                                 \
    RESULT(ERROR_CONTEXT_IS_DESTROYED, 709, "context is destroyed")                                                  \
    RESULT(ERROR_HOST_MEMORY_ALREADY_REGISTERED, 712, "part or all of the requested memory range is already mapped") \
    RESULT(ERROR_HOST_MEMORY_NOT_REGISTERED, 713, "pointer does not correspond to a registered memory region")       \
    RESULT(ERROR_MISALIGNED_ADDRESS, 716, "misaligned address")                                                      \
    RESULT(ERROR_LAUNCH_FAILED, 719, "unspecified launch failure")                                                   \
    RESULT(ERROR_NOT_SUPPORTED, 801, "operation not supported")                                                      \
    RESULT(ERROR_STREAM_CAPTURE_UNSUPPORTED, 900, "operation not permitted when stream is capturing")                \
    RESULT(ERROR_STREAM_CAPTURE_INVALIDATED, 901, "operation failed due to a previous error during capture")         \
    RESULT(ERROR_STREAM_CAPTURE_MERGE, 902, "operation would result in a merge of separate capture sequences")       \
    RESULT(ERROR_STREAM_CAPTURE_UNMATCHED, 903, "capture was not ended in the same stream as it began")              \
    RESULT(ERROR_STREAM_CAPTURE_UNJOINED, 904, "capturing stream has unjoined work")                                 \
    RESULT(ERROR_STREAM_CAPTURE_ISOLATION, 905, "dependency created on uncaptured work in another stream")           \
    RESULT(ERROR_CAPTURED_EVENT, 907, "operation not permitted on an event last recorded in a capturing stream")     \
    RESULT(ERROR_STREAM_CAPTURE_WRONG_THREAD, 908,                                                                   \
           "attempt to terminate a thread-local capture sequence from another thread")                               \
    RESULT(ERROR_GRAPH_EXEC_UPDATE_FAILURE, 910,                                                                     \
           "the graph update was not performed because it included changes which violated constraints specific to "  \
           "instantiated graph update")                                                                              \
    RESULT(ERROR_UNKNOWN, 999, "unknown error")

enum Result : int {
#define TSR_RESULT(name, number, text) CUDA_##name = number,
    TSR_CUDA_RESULTS(TSR_RESULT)
#undef TSR_RESULT
};

}  // namespace tessera::cuda::emulated
