// The order in which waiting requests of several clients are served.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <deque>
#include <list>
#include <string>
#include <utility>

namespace tessera::session {

// Deficit round robin (Shreedhar and Varghese, SIGCOMM 1995) over clients: in each round a client may be served
// requests whose cost is a quantum, and what it has not used is added to its next one. So a client that sends many or
// long requests delays its own. A request that has waited for `age` goes before all that came after it. One thread at a
// time.
template <typename Item>
class FairQueue {
  public:
    using Clock = std::chrono::steady_clock;

    FairQueue(uint64_t quantum, Clock::duration age) : quantum_(quantum), age_(age) {}

    void push(const std::string& client, uint64_t cost, Item item, Clock::time_point now) {
        Client* found = nullptr;
        for (Client& known : clients_) {
            if (known.name == client) found = &known;
        }
        if (!found) found = &clients_.emplace_back(Client{client, 0, false, {}});
        found->waiting.push_back({std::move(item), cost, now});
        ++size_;
        cost_ += cost;
    }

    bool empty() const noexcept { return size_ == 0; }
    size_t size() const noexcept { return size_; }
    // Of all requests that wait.
    uint64_t cost() const noexcept { return cost_; }

    // The next to be served; the same until prefer(), pop() or erase_if(). Clients for whose oldest request `may(item)`
    // is false are passed over; nullptr if that leaves none.
    template <typename May>
    Item* front(Clock::time_point now, May may) {
        return choose(now, may) ? &chosen_->waiting.front().item : nullptr;
    }
    // The queue must not be empty.
    Item& front(Clock::time_point now) { return *front(now, kAll); }

    // Makes the oldest front of a client for which `test(item)` holds the next to be served. False: there is none.
    template <typename Test>
    bool prefer(Test test) {
        auto oldest = clients_.end();
        for (auto client = clients_.begin(); client != clients_.end(); ++client) {
            const Entry& front = client->waiting.front();
            if (test(front.item) && (oldest == clients_.end() || front.since < oldest->waiting.front().since))
                oldest = client;
        }
        if (oldest == clients_.end()) return false;
        chosen_ = oldest;
        return true;
    }

    // Removes front().
    Item pop(Clock::time_point now) {
        choose(now, kAll);
        Entry entry = std::move(chosen_->waiting.front());
        chosen_->waiting.pop_front();
        chosen_->deficit -= std::min(chosen_->deficit, entry.cost);
        forget(entry);
        const auto served = chosen_;
        chosen_ = clients_.end();
        if (served->waiting.empty()) clients_.erase(served);
        return std::move(entry.item);
    }

    // Calls `take(Item&&)` with each item for which `test(item)` holds, and removes it.
    template <typename Test, typename Take>
    void erase_if(Test test, Take take) {
        chosen_ = clients_.end();
        for (auto client = clients_.begin(); client != clients_.end();) {
            auto& waiting = client->waiting;
            for (auto at = waiting.begin(); at != waiting.end();) {
                if (!test(at->item)) {
                    ++at;
                    continue;
                }
                Entry entry = std::move(*at);
                at = waiting.erase(at);
                forget(entry);
                take(std::move(entry.item));
            }
            client = waiting.empty() ? clients_.erase(client) : std::next(client);
        }
    }

  private:
    struct Entry {
        Item item;
        uint64_t cost;
        Clock::time_point since;
    };
    struct Client {
        std::string name;
        uint64_t deficit = 0;
        bool in_turn = false;       // it has the quantum of this round
        std::deque<Entry> waiting;  // never empty
    };

    static constexpr auto kAll = [](const Item&) { return true; };

    void forget(const Entry& entry) {
        --size_;
        cost_ -= entry.cost;
    }

    template <typename May>
    bool choose(Clock::time_point now, const May& may) {
        if (chosen_ != clients_.end()) return true;
        const auto allowed = [&](const Client& client) { return may(client.waiting.front().item); };
        auto oldest = clients_.end();
        for (auto at = clients_.begin(); at != clients_.end(); ++at) {
            const bool older = oldest == clients_.end() || at->waiting.front().since < oldest->waiting.front().since;
            if (older && allowed(*at)) oldest = at;
        }
        if (oldest == clients_.end()) return false;
        if (now - oldest->waiting.front().since >= age_) {
            chosen_ = oldest;
            return true;
        }
        for (;;) {
            Client& first = clients_.front();
            if (allowed(first)) {
                if (!std::exchange(first.in_turn, true)) first.deficit += quantum_;
                if (first.deficit >= first.waiting.front().cost) break;
            }
            first.in_turn = false;
            clients_.splice(clients_.end(), clients_, clients_.begin());
        }
        chosen_ = clients_.begin();
        return true;
    }

    const uint64_t quantum_;
    const Clock::duration age_;
    std::list<Client> clients_;  // in the order of their turns
    typename std::list<Client>::iterator chosen_ = clients_.end();
    size_t size_ = 0;
    uint64_t cost_ = 0;
};

}  // namespace tessera::session
