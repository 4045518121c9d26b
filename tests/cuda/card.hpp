// Cards of the driver that is here, real or emulated, for tests.
#pragma once

#include <tessera/cuda/driver.hpp>
#include <tessera/cuda/provider.hpp>
#include <tessera/device.h>

#include <memory>
#include <string>
#include <vector>

namespace tessera::test {

// What the driver says of one; strings live as long as the card.
struct CardInfo {
    tsr_device_info info{};
    std::string id, name, pci_id;
};
// Of every card that the driver lists; throws sdk::Failure where there is no driver.
std::vector<std::unique_ptr<CardInfo>> list_cards();

// An opened card with a queue. Functions throw sdk::Failure.
class Card {
  public:
    explicit Card(const tsr_device_info& info);
    ~Card();
    Card(const Card&) = delete;
    Card& operator=(const Card&) = delete;

    tsr_device& device() { return *device_; }
    tsr_queue queue() { return queue_; }
    // Memory with this content; released with the card.
    void* upload(const void* from, size_t bytes);
    template <class T>
    T* upload(const std::vector<T>& values) {
        return static_cast<T*>(upload(values.data(), values.size() * sizeof(T)));
    }
    // Waits.
    template <class T>
    std::vector<T> download(const T* from, size_t count) {
        std::vector<T> values(count);
        download(values.data(), from, count * sizeof(T));
        return values;
    }
    void wait();

  private:
    void download(void* to, const void* from, size_t bytes);

    tsr_device* device_ = nullptr;
    tsr_queue queue_ = nullptr;
    std::vector<void*> memory_;
};

}  // namespace tessera::test
