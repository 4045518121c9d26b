#include "device.hpp"

#include <cstring>

namespace tessera::cuda {

using sdk::Failure;

bool Device::can_reach(tsr_device* peer) {
    if (!peer || !peer->interop || std::strcmp(peer->interop, kInterop) != 0 || !peer->native_context) return false;
    const Context other = peer->native_context(peer);
    if (other == context_) return true;  // the same card, opened again
    const std::lock_guard lock(peers_mutex_);
    if (const auto known = peers_.find(other); known != peers_.end()) return known->second;
    DeviceNumber number = 0;
    {
        const CurrentContext current(driver_, other);
        check(driver_.context_device(&number), "cuCtxGetDevice", "asking for a peer");
    }
    int can = 0;
    check(driver_.can_access_peer(&can, number_, number), "cuDeviceCanAccessPeer", "asking for a peer");
    if (can) {
        // Memory of the peer, also what it allocates later, becomes readable here.
        const Result enabled = driver_.enable_peer(other, 0);
        if (is_final(enabled)) check(enabled, "cuCtxEnablePeerAccess", "reaching a peer");
        can = enabled == kSuccess || enabled == kPeerAccessAlreadyEnabled;  // a card has a limited number of peers
    }
    peers_[other] = can != 0;
    return can != 0;
}

void Device::copy_from_peer(tsr_queue queue, void* to, tsr_device* peer, const void* from, uint64_t bytes) {
    require_queue(queue);
    if (!can_reach(peer)) {
        throw Failure(TSR_UNSUPPORTED, id_ + ": copying from " +
                                           (peer && peer->info && peer->info->id ? peer->info->id : "a device") +
                                           ", which this card cannot reach: copy through host memory");
    }
    if (bytes == 0) return;
    check(driver_.copy_peer(reinterpret_cast<Address>(to), context_, reinterpret_cast<Address>(from),
                            peer->native_context(peer), bytes, queue),
          "cuMemcpyPeerAsync", "copying " + std::to_string(bytes) + " bytes from a peer");
}

}  // namespace tessera::cuda
