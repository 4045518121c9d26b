#include "device.hpp"

#include <utility>

namespace tessera::cuda {
namespace {

using sdk::Failure;

// CU_STREAM_CAPTURE_MODE_THREAD_LOCAL: what other threads do, also other plugins', does not end the capture.
constexpr int kThreadLocal = 1;

}  // namespace

void Device::begin_recording(tsr_queue queue) {
    check(driver_.begin_capture(queue, kThreadLocal), "cuStreamBeginCapture", "beginning a recording");
    recorded_queue_ = queue;
    recorder_.store(std::this_thread::get_id());
    spoilt_.clear();
}

tsr_recording Device::end_recording(tsr_queue queue) {
    if (!recorded_queue_) throw Failure(TSR_INVALID_ARGUMENT, id_ + ": end_recording without begin_recording");
    require_queue(queue);
    if (!spoilt_.empty()) {
        const std::string why = spoilt_;
        discard_recording();
        throw Failure(TSR_INVALID_ARGUMENT, id_ + ": the recording cannot be used, since a call failed: " + why);
    }
    recorded_queue_ = nullptr;
    recorder_.store({});
    Graph graph = nullptr;
    check(driver_.end_capture(queue, &graph), "cuStreamEndCapture", "ending a recording");
    struct Destroy {
        const Driver& driver;
        Graph graph;
        ~Destroy() { driver.destroy_graph(graph); }
    } destroy{driver_, graph};
    ExecutableGraph executable = nullptr;
    check(driver_.instantiate(&executable, graph, 0), "cuGraphInstantiateWithFlags", "making a recording ready");
    // Its memory is allocated now, so that a replay allocates nothing.
    const Result uploaded = driver_.upload_graph(executable, queue);
    const Result ended = uploaded == kSuccess ? driver_.synchronize_stream(queue) : uploaded;
    if (ended != kSuccess) {
        driver_.destroy_executable(executable);
        check(uploaded, "cuGraphUpload", "making a recording ready");
        check(ended, "cuStreamSynchronize", "making a recording ready");
    }
    return executable;
}

void Device::discard_recording() noexcept {
    if (!recorded_queue_) return;
    recorder_.store({});
    Graph graph = nullptr;
    // A capture that a failure has ended gives no graph and an error, which was told when it happened.
    if (driver_.end_capture(std::exchange(recorded_queue_, nullptr), &graph) == kSuccess && graph)
        driver_.destroy_graph(graph);
    spoilt_.clear();
}

void Device::destroy_recording(tsr_recording recording) {
    check(driver_.destroy_executable(recording), "cuGraphExecDestroy", "destroying a recording");
}

void Device::replay(tsr_queue queue, tsr_recording recording) {
    check(driver_.launch_graph(recording, queue), "cuGraphLaunch", "replaying a recording");
}

}  // namespace tessera::cuda
