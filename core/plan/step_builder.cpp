#include "core/plan/step_builder.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

namespace tessera {
namespace {

using ItemId = uint32_t;
constexpr ItemId kNone = UINT32_MAX;

// A node or a copy. Items are listed in an order in which they could be done one after the other.
struct Item {
    ActionKind kind = ActionKind::kNodes;
    TrackIndex track = 0;
    uint32_t node = 0;  // in Plan::nodes
    InstanceId from = 0, to = 0, peer = 0;
    uint64_t maximum_bytes = 0;
    std::vector<ItemId> after;  // of other tracks
    bool ends_action = false;   // an item of another track comes after it
};

// Items of one track that are put on it together.
struct Group {
    std::vector<ItemId> items;
    std::vector<uint32_t> after;  // groups
};

class Builder {
  public:
    Builder(Plan& plan, const FindInstance& find_instance) : plan_(plan), find_instance_(find_instance) {}

    void run() {
        track_of(0, TrackKind::kHost);
        list_items();
        find_ends();
        group_items();
        for (const size_t group : order_groups()) emit(groups_[group]);
        plan_.nodes.swap(ordered_);
    }

  private:
    const Graph& graph() const { return plan_.graph; }
    const Storage& storage(InstanceId id) const { return graph().storage(plan_.instances[id].storage); }

    TrackIndex track_of(DeviceIndex device, TrackKind kind) {
        auto& tracks = plan_.step.tracks;
        const auto at =
            std::ranges::find_if(tracks, [&](const Track& one) { return one.device == device && one.kind == kind; });
        if (at == tracks.end()) return tracks.push_back({device, kind}), static_cast<TrackIndex>(tracks.size() - 1);
        return static_cast<TrackIndex>(at - tracks.begin());
    }

    TrackIndex track_of_nodes(DeviceIndex device) {
        return track_of(device, device == 0 ? TrackKind::kHost : TrackKind::kCompute);
    }

    // ---- items, and what each comes after ----

    ItemId add(Item item) {
        items_.push_back(std::move(item));
        return static_cast<ItemId>(items_.size() - 1);
    }

    void come_after(ItemId later, ItemId earlier) {
        if (earlier == kNone || earlier == later || items_[earlier].track == items_[later].track) return;
        items_[later].after.push_back(earlier);
    }

    void read(ItemId item, InstanceId id) {
        Contents& contents = contents_[id];
        come_after(item, contents.writer);
        contents.readers.push_back(item);
    }

    void write(ItemId item, InstanceId id) {
        Contents& contents = contents_[id];
        come_after(item, contents.writer);
        for (const ItemId reader : contents.readers) come_after(item, reader);
        contents = {item, {}};
    }

    // The inputs are in the memory of each device that computes.
    void copy_inputs() {
        const ItemId written = add({.kind = ActionKind::kInputs});
        inputs_[0] = written;
        for (const PlannedNode& node : plan_.nodes) {
            if (inputs_.contains(node.device)) continue;
            const ItemId upload =
                add({.kind = ActionKind::kUpload, .track = track_of(node.device, TrackKind::kUpload)});
            come_after(upload, written);
            inputs_[node.device] = upload;
        }
    }

    // Brings the current contents of a storage from one device to another, through the host where neither is it.
    void copy(InstanceId from, InstanceId to) {
        const DeviceIndex source = plan_.instances[from].device, target = plan_.instances[to].device;
        const uint64_t bytes = plan_.instances[to].bytes;
        InstanceId host = source == 0 ? from : to;
        if (source != 0 && target != 0) {
            Instance staging;
            staging.storage = plan_.instances[from].storage;
            staging.bytes = bytes;
            staging.place = Place::kStaging;
            plan_.instances.push_back(std::move(staging));
            host = static_cast<InstanceId>(plan_.instances.size() - 1);
        }
        if (source != 0) {
            const ItemId down = add({.kind = ActionKind::kDownload,
                                     .track = track_of(source, TrackKind::kDownload),
                                     .from = from,
                                     .to = host,
                                     .maximum_bytes = bytes});
            read(down, from);
            write(down, host);
        }
        if (target != 0) {
            const ItemId up = add({.kind = ActionKind::kUpload,
                                   .track = track_of(target, TrackKind::kUpload),
                                   .from = host,
                                   .to = to,
                                   .peer = source != 0 ? from : 0,
                                   .maximum_bytes = bytes});
            read(up, host);
            if (source != 0) read(up, from);
            write(up, to);
        }
    }

    void require(StorageId storage, DeviceIndex device) {
        auto& current = current_[storage];
        if (current.empty() || current.contains(device)) return;
        copy(find_instance_(storage, home_[storage]), find_instance_(storage, device));
        current.insert(device);
    }

    void list_items() {
        copy_inputs();
        for (uint32_t i = 0; i < plan_.nodes.size(); ++i) {
            const PlannedNode& node = plan_.nodes[i];
            const size_t inputs = graph().nodes()[node.node].inputs.size();
            for (const InstanceId id : node.operands) {
                if (id && storage(id).role == TSR_ROLE_ACTIVATION) require(plan_.instances[id].storage, node.device);
            }
            const ItemId item = add({.track = track_of_nodes(node.device), .node = i});
            come_after(item, inputs_[node.device]);
            for (size_t k = 0; k < node.operands.size(); ++k) {
                const InstanceId id = node.operands[k];
                if (id == 0 || storage(id).role != TSR_ROLE_ACTIVATION) continue;
                if (k < inputs) {
                    read(item, id);
                    continue;
                }
                write(item, id);
                current_[plan_.instances[id].storage] = {node.device};
                home_[plan_.instances[id].storage] = node.device;
            }
        }
        for (const auto& [name, value] : graph().outputs()) require(graph().storage_of(value), 0);
        const ItemId outputs = add({.kind = ActionKind::kOutputs});
        for (const auto& [name, value] : graph().outputs()) read(outputs, find_instance_(graph().storage_of(value), 0));
    }

    // ---- groups ----

    // Which nodes another track comes after. Where that are copies to the host alone, and all of its nodes that read
    // them need a later node of the same track, too, waiting for that one is enough: one run of nodes, not one for each
    // copy.
    void find_ends() {
        for (ItemId id = 0; id < items_.size(); ++id) {
            for (const ItemId other : items_[id].after)
                items_[other].ends_action |= !is_download(items_[other], items_[id]);
        }
        for (const Item& item : items_) {
            if (item.track != 0) {
                for (const ItemId other : item.after) {
                    // A copy on its way to another device.
                    if (items_[other].kind == ActionKind::kDownload) end_sources(items_[other]);
                }
                continue;
            }
            std::map<TrackIndex, ItemId> last;  // node of a track that the host's node needs
            for (const ItemId other : item.after) {
                for (const ItemId node : items_[other].after) {
                    if (!is_download(items_[node], items_[other])) continue;
                    ItemId& latest = last.try_emplace(items_[node].track, node).first->second;
                    latest = std::max(latest, node);
                }
            }
            for (const auto& [track, node] : last) items_[node].ends_action = true;
        }
    }

    static bool is_download(const Item& node, const Item& copy) {
        return node.kind == ActionKind::kNodes && copy.kind == ActionKind::kDownload;
    }

    void end_sources(const Item& copy) {
        for (const ItemId node : copy.after) items_[node].ends_action |= is_download(items_[node], copy);
    }

    // Nodes of a track stay together up to one that another track comes after, so that this one is told early, and from
    // one that has to wait for more than those before it, so that these need not.
    void group_items() {
        std::map<TrackIndex, size_t> open;                         // a track's group that can still take nodes
        std::map<std::pair<TrackIndex, TrackIndex>, ItemId> seen;  // up to which item of another track one has waited
        std::vector<size_t> group_of(items_.size());
        for (ItemId id = 0; id < items_.size(); ++id) {
            const Item& item = items_[id];
            bool waits = false;
            for (const ItemId other : item.after) {
                const auto [at, fresh] = seen.try_emplace({item.track, items_[other].track}, other);
                waits |= fresh || at->second < other;
                at->second = std::max(at->second, other);
            }
            const bool joins = item.kind == ActionKind::kNodes && open.contains(item.track) && !waits;
            if (!joins) {
                groups_.emplace_back();
                open[item.track] = groups_.size() - 1;
            }
            const size_t group = open[item.track];
            groups_[group].items.push_back(id);
            group_of[id] = group;
            for (const ItemId other : item.after)
                groups_[group].after.push_back(static_cast<uint32_t>(group_of[other]));
            if (item.kind != ActionKind::kNodes || item.ends_action) open.erase(item.track);
        }
    }

    // The host enqueues work on devices as early as it can, and computes its own when nothing is left to enqueue: so
    // that devices work meanwhile.
    std::vector<size_t> order_groups() const {
        std::map<TrackIndex, std::vector<size_t>> tracks;
        for (size_t group = 0; group < groups_.size(); ++group)
            tracks[items_[groups_[group].items.front()].track].push_back(group);
        std::map<TrackIndex, size_t> heads;
        std::vector<bool> done(groups_.size(), false);
        std::vector<size_t> order;
        while (order.size() < groups_.size()) {
            size_t best = groups_.size();
            bool best_is_host = true;
            for (const auto& [track, list] : tracks) {
                if (heads[track] == list.size()) continue;
                const size_t group = list[heads[track]];
                const bool ready =
                    std::ranges::all_of(groups_[group].after, [&](uint32_t other) { return done[other]; });
                const bool host = track == 0;
                if (!ready || std::tuple(host, group) >= std::tuple(best_is_host, best)) continue;
                best = group;
                best_is_host = host;
            }
            done[best] = true;
            ++heads[items_[groups_[best].items.front()].track];
            order.push_back(best);
        }
        return order;
    }

    void emit(const Group& group) {
        const Item& item = items_[group.items.front()];
        Action action;
        action.kind = item.kind;
        action.track = item.track;
        action.from = item.from;
        action.to = item.to;
        action.peer = item.peer;
        action.maximum_bytes = item.maximum_bytes;
        if (item.kind == ActionKind::kNodes) {
            action.first = static_cast<uint32_t>(ordered_.size());
            action.count = static_cast<uint32_t>(group.items.size());
            for (const ItemId id : group.items) ordered_.push_back(std::move(plan_.nodes[items_[id].node]));
        }
        plan_.step.actions.push_back(std::move(action));
    }

    struct Contents {
        ItemId writer = kNone;
        std::vector<ItemId> readers;  // since
    };

    Plan& plan_;
    const FindInstance& find_instance_;
    std::vector<Item> items_;
    std::vector<Group> groups_;
    std::deque<PlannedNode> ordered_;
    std::map<InstanceId, Contents> contents_;
    std::map<DeviceIndex, ItemId> inputs_;                // what brought the inputs to a device
    std::map<StorageId, DeviceIndex> home_;               // device that wrote it last
    std::map<StorageId, std::set<DeviceIndex>> current_;  // devices whose instance is up to date
};

}  // namespace

void build_step(Plan& plan, const FindInstance& find_instance) {
    Builder(plan, find_instance).run();
}

}  // namespace tessera
