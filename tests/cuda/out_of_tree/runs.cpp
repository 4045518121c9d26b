// Runs the kernel on the first card with the installed kit: 0 if the result is right.
#include "scale.hpp"

#include <tessera/cuda/launch.hpp>

#include <cstdio>
#include <vector>

TESSERA_CUDA_MODULE(runs__scale);

int main() {
    using namespace tessera;
    try {
        const cuda::Driver& driver = cuda::Driver::get();
        cuda::DeviceNumber number = 0;
        int major = 0, minor = 0;
        driver.check(driver.device(&number, 0), "cuDeviceGet", "");
        driver.check(driver.device_attribute(&major, 75, number), "cuDeviceGetAttribute", "");
        driver.check(driver.device_attribute(&minor, 76, number), "cuDeviceGetAttribute", "");
        tsr_device_info info{};
        info.struct_size = sizeof info;
        info.kind = cuda::kKind;
        info.id = "CUDA0";
        info.compute_capability = static_cast<uint32_t>(100 * major + 10 * minor);
        static const cuda::CardRange all = {0, 9999};
        const tsr_device_provider provider = cuda::make_provider(all);
        tsr_device* device = nullptr;
        sdk::check(provider.open(&provider, &info, &device));
        constexpr int kCount = 1000;
        std::vector<float> values(kCount), back(kCount);
        for (int i = 0; i < kCount; ++i) values[i] = static_cast<float>(i);
        constexpr uint64_t kBytes = kCount * sizeof(float);
        tsr_queue queue = nullptr;
        void *x = nullptr, *y = nullptr;
        sdk::check(device->create_queue(device, &queue));
        sdk::check(device->allocate(device, kBytes, &x));
        sdk::check(device->allocate(device, kBytes, &y));
        sdk::check(device->upload(device, queue, x, values.data(), kBytes));
        {
            const cuda::Kernel kernel(*device, tessera_cuda_module_runs__scale, "scale");
            kernel.launch(queue, {(kCount + 127) / 128, 1, 1}, 128,
                          Scale{static_cast<float*>(x), static_cast<float*>(y), kCount, 2.f});
            sdk::check(device->download(device, queue, back.data(), y, kBytes));
            sdk::check(device->wait_queue(device, queue));
        }
        device->release(device, x);
        device->release(device, y);
        device->destroy_queue(device, queue);
        device->close(device);
        for (int i = 0; i < kCount; ++i) {
            if (back[i] != 2 * values[i]) return std::printf("element %d is %g\n", i, static_cast<double>(back[i])), 1;
        }
        return 0;
    } catch (const std::exception& error) {
        return std::printf("%s\n", error.what()), 1;
    }
}
