// A step as a graph of actions: runs of nodes, copies between devices, and what the host writes and reads.
//
// Tracks work through their actions in order, independently of each other. The host track is the thread that takes
// steps and, within it, the thread team: it does an action when the step's list comes to it. A device has a track for
// kernels and one for copies in each direction; the host puts actions on them as it goes through the list, and they are
// done later. Apart from the order within a track, and from what the host had done before it put an action on a track,
// only the waits listed here order two actions.
#pragma once

#include <cstdint>
#include <vector>

namespace tessera {

using DeviceIndex = uint32_t;  // in Plan::devices
using InstanceId = uint32_t;   // in Plan::instances
using TrackIndex = uint32_t;
using ActionId = uint32_t;  // in Step::actions

enum class TrackKind : uint8_t { kHost, kCompute, kUpload, kDownload };

struct Track {
    DeviceIndex device = 0;
    TrackKind kind = TrackKind::kHost;
};

enum class ActionKind : uint8_t {
    kInputs,    // the host has written the block of inputs
    kNodes,     // nodes of one device
    kUpload,    // into a device: from an instance on the host, or the block of inputs (from == 0)
    kDownload,  // from a device to an instance on the host
    kOutputs,   // the host reads the outputs of the graph
};

struct Action {
    ActionKind kind = ActionKind::kNodes;
    TrackIndex track = 0;
    uint32_t first = 0, count = 0;  // kNodes: in Plan::nodes
    InstanceId from = 0, to = 0;    // copies: the actual rows of a storage
    uint64_t maximum_bytes = 0;
    // kUpload of what a kDownload brought from another device: that instance there. Devices that reach each other copy
    // from it directly.
    InstanceId peer = 0;
    // Actions of other device tracks that have to end first: of this step, and of the step before.
    std::vector<ActionId> after, after_previous;
    bool signals = false;  // some action, or the end of the step, waits for it
};

struct Step {
    std::vector<Track> tracks;    // [0] is the host
    std::vector<Action> actions;  // in the order in which the host goes through them
    std::vector<ActionId> last;   // of each device track, where it has one: when all have ended, the step has
    uint32_t slots = 1;           // steps that can be under way at once

    DeviceIndex device_of(const Action& action) const { return tracks[action.track].device; }
};

}  // namespace tessera
