// How long each layer of a model takes each device, as far as plans have shown it.
#pragma once

#include "core/plan/plan.hpp"

#include <cstddef>
#include <span>
#include <vector>

namespace tessera {

class LayerSeconds {
  public:
    // `devices` outlive this.
    LayerSeconds(std::span<const tsr_device_info* const> devices, size_t layers);

    // Takes the estimates of layers that the plan computes on one device wholly.
    void observe(const Plan& plan);

    // In a prompt's step, by device and layer. What no plan has shown follows from other layers of the device and other
    // devices, by their memory's bandwidth where the device has computed none.
    std::vector<std::vector<double>> all() const;

  private:
    std::span<const tsr_device_info* const> devices_;
    std::vector<std::vector<double>> seen_;  // by device and layer; 0: not seen
};

// Whether estimates for one hold for the other.
bool alike(const tsr_device_info& a, const tsr_device_info& b);

}  // namespace tessera
