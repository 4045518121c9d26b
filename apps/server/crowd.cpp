#include "apps/server/crowd.hpp"

#include <boost/asio/ip/address.hpp>

#include <algorithm>
#include <map>
#include <tuple>

namespace tessera::server {
namespace {

using Clock = Occupant::Clock;

constexpr double kRateSeconds = 5;               // and half of them at least is what a rate is a mean of
constexpr std::chrono::seconds kSlowReader(10);  // without reading anything of what waits

double seconds_between(Clock::time_point from, Clock::time_point to) {
    return std::max(0.0, std::chrono::duration<double>(to - from).count());
}

bool reads_slowly(const Occupant& occupant, Clock::time_point now) {
    return occupant.unread_bytes() > 0 && now - occupant.last_progress() >= kSlowReader;
}

template <typename Sum>
std::map<std::string_view, uint64_t> by_client(const std::list<Occupant*>& all, Sum sum) {
    std::map<std::string_view, uint64_t> held;
    for (const Occupant* occupant : all) {
        if (const uint64_t bytes = sum(*occupant)) held[occupant->client] += bytes;
    }
    return held;
}

}  // namespace

void Occupant::enter(Stage stage) noexcept {
    stage_ = stage;
    since_ = progress_ = window_ = Clock::now();
    window_bytes_ = 0;
}

void Occupant::progress(uint64_t bytes) noexcept {
    progress_ = Clock::now();
    window_bytes_ += static_cast<double>(bytes);
    const double seconds = seconds_between(window_, progress_);
    if (seconds <= kRateSeconds) return;
    window_bytes_ *= kRateSeconds / 2 / seconds;
    window_ = progress_ - std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(kRateSeconds / 2));
}

double Occupant::rate(Clock::time_point now) const noexcept {
    return window_bytes_ / std::max(seconds_between(window_, now), 1e-3);
}

Crowd::Crowd(const Limits& limits)
    : limits_(limits),
      bodies_(limits.body_bytes),
      small_bodies_(std::max<uint64_t>(limits.body_bytes / 8, 8 << 20)),
      unread_(limits.unread_bytes) {}

size_t Crowd::count(std::string_view network) const {
    return static_cast<size_t>(
        std::ranges::count_if(all_, [&](const Occupant* o) { return !o->reserved && o->network == network; }));
}

Crowd::Network Crowd::largest_network() const {
    std::map<std::string_view, size_t> counts;
    for (const Occupant* occupant : all_) {
        if (!occupant->reserved) ++counts[occupant->network];
    }
    const auto most = std::ranges::max_element(counts, {}, [](const auto& pair) { return pair.second; });
    return most == counts.end() ? Network{} : Network{most->first, most->second};
}

// What costs its client least goes first: a request that was refused, then those of which least has come, each the
// longest ago; then responses that are not read, then the youngest response.
template <typename May>
Occupant* Crowd::first_to_leave(May may) const {
    const auto now = Clock::now();
    const auto rank = [&](const Occupant& o) {
        const bool response = o.stage() == Occupant::Stage::kResponse;
        const bool slow = response && reads_slowly(o, now);
        const double age = seconds_between(o.since(), now);
        return std::tuple(static_cast<int>(o.stage()) + (response && !slow ? 1 : 0), response && !slow ? age : -age);
    };
    Occupant* first = nullptr;
    for (Occupant* occupant : all_) {
        if (may(*occupant) && (!first || rank(*occupant) < rank(*first))) first = occupant;
    }
    return first;
}

void Crowd::send_away(Occupant& occupant) {
    ++sent_away_;
    occupant.leave();
}

Crowd::Place Crowd::place_for(std::string_view network, bool full) {
    using Stage = Occupant::Stage;
    const size_t own = count(network);
    const auto reserved =
        static_cast<size_t>(std::ranges::count_if(all_, [](const Occupant* o) { return o->reserved; }));
    const bool own_full = own >= limits_.of_network;
    if (!full && !own_full && all_.size() - reserved < limits_.connections) return Place::kWhole;

    const auto now = Clock::now();
    const auto waits_for_client = [&](const Occupant& o) {
        return !o.reserved && (o.stage() != Stage::kResponse || reads_slowly(o, now));
    };
    Occupant* victim = nullptr;
    if (!own_full) victim = first_to_leave([](const Occupant& o) { return o.stage() == Stage::kRefused; });
    if (const Network largest = largest_network(); !victim && !own_full && largest.connections > own + 1)
        victim = first_to_leave([&](const Occupant& o) { return !o.reserved && o.network == largest.name; });
    if (!victim)
        victim = first_to_leave([&](const Occupant& o) { return waits_for_client(o) && o.network == network; });
    if (!victim && !own_full) victim = first_to_leave(waits_for_client);
    if (victim) {
        send_away(*victim);
        return Place::kWhole;
    }
    if (reserved >= limits_.reserved) send_away(*first_to_leave([](const Occupant& o) { return o.reserved; }));
    return Place::kReserved;
}

bool Crowd::make_room() {
    const auto now = Clock::now();
    Occupant* const victim = first_to_leave([&](const Occupant& o) {
        return o.reserved || o.stage() != Occupant::Stage::kResponse || reads_slowly(o, now);
    });
    if (victim) send_away(*victim);
    return victim != nullptr;
}

bool Crowd::grow_body(Occupant& occupant, HeldBytes& held, uint64_t bytes) {
    const bool small = bytes <= kSmallBody, was_small = held.bytes() <= kSmallBody;
    std::vector<const Occupant*> tried;
    if (bytes > bodies_.limit()) return false;
    for (;;) {
        if (small == was_small) {
            if (held.add(bytes - held.bytes())) return true;
        } else if (HeldBytes large(bodies_); large.add(bytes)) {
            held = std::move(large);
            return true;
        }
        const uint64_t more = small == was_small ? bytes - held.bytes() : bytes;
        Occupant* const slowest = slowest_body(occupant, more, small, tried);
        if (!slowest || slowest == &occupant) return false;
        slowest->give_up_body();
        tried.push_back(slowest);
    }
}

Occupant* Crowd::slowest_body(const Occupant& newcomer, uint64_t more, bool small,
                              const std::vector<const Occupant*>& tried) const {
    const auto of_pool = [&](const Occupant& o) {
        const uint64_t bytes = o.body_bytes();
        return (bytes <= kSmallBody) == small ? bytes : 0;
    };
    auto held = by_client(all_, of_pool);
    const uint64_t own = held[newcomer.client] += more;
    const auto now = Clock::now();
    Occupant* found = nullptr;
    // The body of `o` goes before that of `found`: what arrives more slowly; then what has waited least.
    const auto before = [&](const Occupant& o) {
        if (!found) return true;
        const bool reads = o.stage() == Occupant::Stage::kBody, found_reads = found->stage() == Occupant::Stage::kBody;
        if (reads != found_reads) return reads;
        return reads ? o.rate(now) < found->rate(now) : o.since() > found->since();
    };
    uint64_t most = 0;
    for (Occupant* occupant : all_) {
        const bool self = occupant == &newcomer, same = occupant->client == newcomer.client;
        if (!self && (of_pool(*occupant) == 0 || std::ranges::find(tried, occupant) != tried.end())) continue;
        // One client does not lose what it has sent to its own next request.
        if (same && occupant->stage() != Occupant::Stage::kBody) continue;
        const uint64_t has = held[occupant->client];
        if ((!same && has <= own) || has < most) continue;
        if (has > most) {
            most = has;
            found = nullptr;
        }
        if (before(*occupant)) found = occupant;
    }
    return found;
}

void Crowd::relieve_unread() {
    std::vector<const Occupant*> tried;
    while (unread_.used() > unread_.limit()) {
        const auto held = by_client(all_, [](const Occupant& o) { return o.unread_bytes(); });
        Occupant* slowest = nullptr;
        const auto rank = [&](const Occupant& o) {
            return std::tuple(o.unread_bytes() <= kSmallUnread, ~held.at(o.client), o.last_progress());
        };
        for (Occupant* occupant : all_) {
            if (!held.contains(occupant->client) || occupant->unread_bytes() == 0) continue;
            if (std::ranges::find(tried, occupant) != tried.end()) continue;
            if (!slowest || rank(*occupant) < rank(*slowest)) slowest = occupant;
        }
        if (!slowest) return;
        tried.push_back(slowest);
        send_away(*slowest);
    }
}

std::string network_of(const std::string& address) {
    boost::system::error_code error;
    const auto parsed = boost::asio::ip::make_address(address, error);
    if (error || !parsed.is_v6()) return address;
    auto v6 = parsed.to_v6();
    if (v6.is_v4_mapped()) return boost::asio::ip::make_address_v4(boost::asio::ip::v4_mapped, v6).to_string();
    auto bytes = v6.to_bytes();
    std::fill(bytes.begin() + 8, bytes.end(), static_cast<unsigned char>(0));
    return boost::asio::ip::address_v6(bytes).to_string() + "/64";
}

}  // namespace tessera::server
