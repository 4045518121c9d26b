// Graphs that are captured from streams, and their replay.
#include "state.hpp"

#include <algorithm>

namespace tessera::cuda::emulated {

void invalidate(Driver&, const std::shared_ptr<Capture>& capture) {
    capture->invalid = true;
}

Result refuse_while_capturing(Driver& d) {
    constexpr int kGlobal = 0, kThreadLocal = 1;
    bool refused = false;
    for (const auto& capture : d.captures) {
        const bool own = capture->thread == std::this_thread::get_id();
        if (capture->mode == kGlobal || (capture->mode == kThreadLocal && own)) {
            capture->invalid = true;
            refused = true;
        }
    }
    return refused ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED : CUDA_SUCCESS;
}

// Nodes one after another, in a random order that their dependencies allow.
Work replay(Driver& d, std::shared_ptr<ExecutableGraph> graph) {
    std::vector<std::shared_ptr<HostSide>> hosts;
    for (const auto& node : graph->nodes) hosts.push_back(watch_host(d, *node));
    return [graph = std::move(graph), hosts = std::move(hosts)](const Execution& whole) -> Ended {
        Execution execution = whole;
        execution.ancestors = graph->ancestors.get();
        const auto& nodes = graph->nodes;
        std::vector<size_t> waits(nodes.size(), 0), ready;
        std::vector<std::vector<size_t>> next(nodes.size());
        for (size_t i = 0; i < nodes.size(); ++i) {
            waits[i] = nodes[i]->after.size();
            for (const size_t before : nodes[i]->after) next[before].push_back(i);
            if (waits[i] == 0) ready.push_back(i);
        }
        while (!ready.empty()) {
            std::swap(ready[next_random(whole.stream->random_state) % ready.size()], ready.back());
            const size_t i = ready.back();
            ready.pop_back();
            execution.moment.node = i;
            if (Ended ended = run_node(*nodes[i], hosts[i].get(), execution); ended.result != CUDA_SUCCESS)
                return ended;
            for (const size_t after : next[i]) {
                if (--waits[after] == 0) ready.push_back(after);
            }
        }
        return {};
    };
}

namespace {

void end(Driver& d, const std::shared_ptr<Capture>& capture) {
    for (Stream* stream : capture->streams) {
        stream->capture = nullptr;
        stream->tail.clear();
    }
    capture->streams.clear();
    d.captures.erase(capture);
}

// All that lies before `nodes`, themselves included.
size_t count_before(const Capture& capture, const std::vector<size_t>& nodes) {
    std::vector<bool> seen(capture.nodes.size());
    std::vector<size_t> open = nodes;
    size_t count = 0;
    while (!open.empty()) {
        const size_t node = open.back();
        open.pop_back();
        if (seen[node]) continue;
        seen[node] = true;
        ++count;
        open.insert(open.end(), capture.nodes[node]->after.begin(), capture.nodes[node]->after.end());
    }
    return count;
}

std::shared_ptr<const Ancestors> ancestors_of(const Graph& graph) {
    std::vector<std::vector<size_t>> after;
    for (const auto& node : graph.nodes) after.push_back(node->after);
    return std::make_shared<const Ancestors>(after);
}

// What kernels of a graph need is there before the graph is launched.
Result take_for_kernels(const std::vector<std::shared_ptr<Node>>& nodes) {
    for (const auto& node : nodes) {
        if (!node->function) continue;
        const Result result = take_for_local(*node->function->module->context->card, node->function->image->local);
        if (result != CUDA_SUCCESS) return result;
    }
    return CUDA_SUCCESS;
}

template <class T>
std::shared_ptr<T> find(const std::map<T*, std::shared_ptr<T>>& objects, void* handle) {
    const auto found = objects.find(static_cast<T*>(handle));
    return found == objects.end() ? nullptr : found->second;
}

}  // namespace
}  // namespace tessera::cuda::emulated

using namespace tessera::cuda::emulated;

TSR_EXPORT Result cuStreamBeginCapture_v2(void* handle, int mode) {
    const Call call(Call::kNothing, handle);
    if (!call) return call.result;
    Stream& stream = *call.stream;
    if (mode < 0 || mode > 2) return CUDA_ERROR_INVALID_VALUE;
    if (stream.capture) {
        invalidate(call.d, stream.capture);
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    }
    auto capture = std::make_shared<Capture>();
    capture->origin = &stream;
    capture->mode = mode;
    capture->thread = std::this_thread::get_id();
    capture->streams.insert(&stream);
    stream.capture = capture;
    stream.tail.clear();
    call.d.captures.insert(std::move(capture));
    return CUDA_SUCCESS;
}

TSR_EXPORT Result cuStreamIsCapturing(void* handle, int* status) {
    const Call call(Call::kNothing);
    const auto stream = find(call.d.streams, handle);
    if (!stream) return CUDA_ERROR_INVALID_HANDLE;
    if (!status) return CUDA_ERROR_INVALID_VALUE;
    *status = !stream->capture ? 0 : stream->capture->invalid ? 2 : 1;
    return CUDA_SUCCESS;
}

TSR_EXPORT Result cuStreamEndCapture(void* handle, void** made) {
    const Call call(Call::kNothing);
    Driver& d = call.d;
    const auto stream = find(d.streams, handle);
    if (!stream) return CUDA_ERROR_INVALID_HANDLE;
    if (!made) return CUDA_ERROR_INVALID_VALUE;
    *made = nullptr;
    const std::shared_ptr<Capture> capture = stream->capture;
    if (!capture) return CUDA_ERROR_INVALID_VALUE;
    if (capture->origin != stream.get()) {
        invalidate(d, capture);
        return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
    }
    constexpr int kRelaxed = 2;
    if (capture->mode != kRelaxed && capture->thread != std::this_thread::get_id())
        return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
    const bool joined = count_before(*capture, stream->tail) == capture->nodes.size();
    end(d, capture);
    if (stream->context.card->error != CUDA_SUCCESS) return stream->context.card->error;
    if (capture->invalid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    if (!joined) return CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
    auto graph = std::make_shared<Graph>();
    graph->nodes = capture->nodes;
    *made = graph.get();
    d.graphs.emplace(graph.get(), std::move(graph));
    return CUDA_SUCCESS;
}

TSR_EXPORT Result cuGraphGetNodes(void* handle, void** nodes, size_t* count) {
    const Call call(Call::kNothing);
    Driver& d = call.d;
    const auto graph = find(d.graphs, handle);
    if (!graph || !count) return CUDA_ERROR_INVALID_VALUE;
    if (nodes) {
        for (size_t i = 0; i < *count; ++i) nodes[i] = i < graph->nodes.size() ? graph->nodes[i].get() : nullptr;
    }
    *count = nodes ? std::min(*count, graph->nodes.size()) : graph->nodes.size();
    return CUDA_SUCCESS;
}

TSR_EXPORT Result cuGraphDestroy(void* handle) {
    const Call call(Call::kNothing);
    Driver& d = call.d;
    return d.graphs.erase(static_cast<Graph*>(handle)) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

TSR_EXPORT Result cuGraphInstantiateWithFlags(void** made, void* handle, unsigned long long flags) {
    const Call call(Call::kWork);
    if (!call) return call.result;
    Driver& d = call.d;
    const auto graph = find(d.graphs, handle);
    if (!made || !graph || flags != 0) return CUDA_ERROR_INVALID_VALUE;
    if (const Result result = take_for_kernels(graph->nodes); result != CUDA_SUCCESS) return result;
    auto executable =
        std::make_shared<ExecutableGraph>(ExecutableGraph{call.context, graph->nodes, ancestors_of(*graph)});
    *made = executable.get();
    d.executables.emplace(executable.get(), std::move(executable));
    return CUDA_SUCCESS;
}

TSR_EXPORT Result cuGraphExecDestroy(void* handle) {
    const Call call(Call::kNothing);
    Driver& d = call.d;
    return d.executables.erase(static_cast<ExecutableGraph*>(handle)) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

namespace {

Result launch(Call& call, void* handle, bool only_upload) {
    if (!call) return call.result;
    Driver& d = call.d;
    Stream& stream = *call.stream;
    const auto executable = find(d.executables, handle);
    if (!executable) return CUDA_ERROR_INVALID_VALUE;
    if (stream.capture) {
        invalidate(d, stream.capture);
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    }
    if (only_upload) return submit(d, stream, {});
    // A copy: what it does later does not change with an update of the graph.
    enqueue(d, stream, replay(d, std::make_shared<ExecutableGraph>(*executable)));
    for (const auto& node : executable->nodes) {
        static constexpr const char* kNames[] = {"node: kernel", "node: copy", "node: set", "node: empty"};
        const char* const name = node->host_bytes == 0 ? kNames[node->kind]
                                 : node->to_host       ? "node: copy down"
                                                       : "node: copy up";
        count(d, *stream.context.card, name, node->host_bytes);
    }
    return CUDA_SUCCESS;
}

}  // namespace

TSR_EXPORT Result cuGraphUpload(void* handle, void* stream) {
    Call call(Call::kNothing, stream);
    return launch(call, handle, true);
}

TSR_EXPORT Result cuGraphLaunch(void* handle, void* stream) {
    Call call(Call::kNothing, stream);
    return launch(call, handle, false);
}

struct UpdateResult {  // CUgraphExecUpdateResultInfo
    int result;
    void* error_node;
    void* error_from_node;
};

TSR_EXPORT Result cuGraphExecUpdate_v2(void* handle, void* graph_handle, UpdateResult* why) {
    const Call call(Call::kNothing);
    Driver& d = call.d;
    const auto executable = find(d.executables, handle);
    const auto graph = find(d.graphs, graph_handle);
    if (!executable || !graph || !why) return CUDA_ERROR_INVALID_VALUE;
    constexpr int kTopology = 2, kNodeType = 3, kFunction = 4, kParameters = 5;
    *why = {0, nullptr, nullptr};
    const auto refuse = [&](int result, Node* node) {
        *why = {result, node, nullptr};
        return CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
    };
    if (executable->nodes.size() != graph->nodes.size()) return refuse(kTopology, nullptr);
    for (size_t i = 0; i < graph->nodes.size(); ++i) {
        Node& to = *graph->nodes[i];
        const Node& from = *executable->nodes[i];
        if (to.after != from.after) return refuse(kTopology, &to);
        if (to.kind != from.kind) return refuse(kNodeType, &to);
        if (to.kind == Node::kKernel && to.function->module->context != from.function->module->context)
            return refuse(kFunction, &to);
        if (to.shape != from.shape) return refuse(kParameters, &to);
    }
    if (const Result result = take_for_kernels(graph->nodes); result != CUDA_SUCCESS) return result;
    executable->nodes = graph->nodes;
    executable->ancestors = ancestors_of(*graph);
    return CUDA_SUCCESS;
}
