// Who has to make room where there is not enough for all connections.
#pragma once

#include "apps/server/byte_budget.hpp"

#include <chrono>
#include <cstdint>
#include <list>
#include <string>
#include <string_view>
#include <vector>

namespace tessera::server {

// What others know of a connection. Its methods are called on the thread of I/O.
class Occupant {
  public:
    using Clock = std::chrono::steady_clock;
    enum class Stage { kRefused, kIdle, kHeader, kBody, kResponse };

    virtual ~Occupant() = default;

    virtual uint64_t body_bytes() const = 0;    // held of its request
    virtual uint64_t unread_bytes() const = 0;  // of its response, which it has not read
    // Ends the connection at once.
    virtual void leave() = 0;
    // Refuses the request whose body is being read or waits for a thread. False: there is none such.
    virtual bool give_up_body() = 0;

    std::string network;  // see network_of()
    std::string client;   // see Sender::client; before a header has been read, the network
    bool reserved = false;
    Stage stage() const noexcept { return stage_; }
    void enter(Stage stage) noexcept;
    Clock::time_point since() const noexcept { return since_; }  // in this stage
    // Bytes have come from the client, or have been read by it.
    void progress(uint64_t bytes) noexcept;
    Clock::time_point last_progress() const noexcept { return progress_; }
    // Bytes a second in the last seconds of this stage.
    double rate(Clock::time_point now) const noexcept;

  private:
    Stage stage_ = Stage::kIdle;
    Clock::time_point since_ = Clock::now(), progress_ = since_;
    Clock::time_point window_ = since_;
    double window_bytes_ = 0;  // since then
};

// All connections, and what they share. A client is never sent away for the sake of one that has more than it. On the
// thread of I/O; budgets are given back by any.
class Crowd {
  public:
    static constexpr uint64_t kSmallBody = 256 << 10;   // bytes
    static constexpr uint64_t kSmallUnread = 64 << 10;  // is not worth a disconnection

    struct Limits {
        uint32_t connections = 0;
        uint32_t of_network = 0;  // of these
        uint32_t reserved = 0;    // besides, for requests that cost nothing
        uint64_t body_bytes =
            0;  // of all bodies larger than kSmallBody; an eighth of it, and 8 MiB at least, of the others
        uint64_t unread_bytes = 0;
    };

    explicit Crowd(const Limits& limits);

    void add(Occupant& occupant) { all_.push_back(&occupant); }
    void remove(Occupant& occupant) { all_.remove(&occupant); }
    size_t size() const noexcept { return all_.size(); }
    uint64_t sent_away() const noexcept { return sent_away_; }

    enum class Place { kWhole, kReserved };
    // The place of a new connection: if it needs that of another, that one leaves. `full`: there is none whatever the
    // limits say, as descriptors have run out.
    Place place_for(std::string_view network, bool full);
    // Closes a connection that waits for its client. False: there is none.
    bool make_room();

    HeldBytes no_body() { return HeldBytes(small_bodies_); }
    // Lets `held`, the body of `occupant`, have `bytes`; slower ones of whoever has most make room. False: it would
    // have most itself, and none of its own is slower.
    bool grow_body(Occupant& occupant, HeldBytes& held, uint64_t bytes);
    uint64_t held_bodies() const noexcept { return bodies_.used() + small_bodies_.used(); }

    ByteBudget& unread() noexcept { return unread_; }
    const ByteBudget& unread() const noexcept { return unread_; }
    // Disconnects the slowest readers of whoever has most to read, while all have more than they may.
    void relieve_unread();

  private:
    struct Network {
        std::string_view name;
        size_t connections = 0;
    };
    size_t count(std::string_view network) const;
    Network largest_network() const;
    template <typename May>
    Occupant* first_to_leave(May may) const;
    void send_away(Occupant& occupant);
    Occupant* slowest_body(const Occupant& newcomer, uint64_t more, bool small,
                           const std::vector<const Occupant*>& tried) const;

    const Limits limits_;
    ByteBudget bodies_, small_bodies_, unread_;
    std::list<Occupant*> all_;
    uint64_t sent_away_ = 0;
};

// By which connections of one client are counted where no key tells it: the address; of IPv6 the first 64 bits, within
// which one machine may choose.
std::string network_of(const std::string& address);

}  // namespace tessera::server
