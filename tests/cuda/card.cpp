#include "card.hpp"

namespace tessera::test {
namespace {

constexpr cuda::CardRange kAll = {0, 99990};
const tsr_device_provider kProvider = cuda::make_provider(kAll);

int attribute(const cuda::Driver& driver, int which, cuda::DeviceNumber number) {
    int value = 0;
    driver.check(driver.device_attribute(&value, which, number), "cuDeviceGetAttribute", "");
    return value;
}

}  // namespace

std::vector<std::unique_ptr<CardInfo>> list_cards() {
    const cuda::Driver& driver = cuda::Driver::get();
    int count = 0;
    driver.check(driver.device_count(&count), "cuDeviceGetCount", "");
    std::vector<std::unique_ptr<CardInfo>> cards;
    for (int ordinal = 0; ordinal < count; ++ordinal) {
        cuda::DeviceNumber number = 0;
        driver.check(driver.device(&number, ordinal), "cuDeviceGet", "");
        auto card = std::make_unique<CardInfo>();
        card->id = "CUDA" + std::to_string(ordinal);
        card->pci_id.resize(32);
        driver.check(driver.device_pci_id(card->pci_id.data(), 32, number), "cuDeviceGetPCIBusId", "");
        card->pci_id.resize(card->pci_id.find('\0'));
        card->info.struct_size = sizeof card->info;
        card->info.index = static_cast<uint32_t>(ordinal);
        card->info.kind = cuda::kKind;
        card->info.id = card->id.c_str();
        card->info.name = card->info.link = card->info.uuid = "";
        card->info.pci_id = card->pci_id.c_str();
        card->info.compute_capability =
            static_cast<uint32_t>(100 * attribute(driver, 75, number) + 10 * attribute(driver, 76, number));
        card->info.processors = static_cast<uint32_t>(attribute(driver, 16, number));
        cards.push_back(std::move(card));
    }
    return cards;
}

Card::Card(const tsr_device_info& info) {
    sdk::check(kProvider.open(&kProvider, &info, &device_));
    if (const tsr_status* status = device_->create_queue(device_, &queue_)) {
        device_->close(device_);
        sdk::check(status);
    }
}

Card::~Card() {
    device_->destroy_queue(device_, queue_);
    for (void* address : memory_) device_->release(device_, address);
    device_->close(device_);
}

void* Card::upload(const void* from, size_t bytes) {
    void* address = nullptr;
    sdk::check(device_->allocate(device_, bytes, &address));
    memory_.push_back(address);
    sdk::check(device_->upload(device_, queue_, address, from, bytes));
    wait();
    return address;
}

void Card::download(void* to, const void* from, size_t bytes) {
    sdk::check(device_->download(device_, queue_, to, from, bytes));
    wait();
}

void Card::wait() {
    sdk::check(device_->wait_queue(device_, queue_));
}

}  // namespace tessera::test
