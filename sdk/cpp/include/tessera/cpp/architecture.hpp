// Writing an architecture: tsr_model with values and exceptions.
#pragma once

#include <tessera/cpp/status.hpp>
#include <tessera/extensions/architecture.h>

#include <cstdint>
#include <initializer_list>
#include <string>

namespace tessera::sdk {

// Wraps the host's table for the time of one call. Functions throw Failure with what the host says.
class Model {
  public:
    using Dims = std::initializer_list<int64_t>;

    explicit Model(tsr_model* table) noexcept : table_(table) {}

    // A key that must be there.
    int64_t integer(const char* key, int64_t minimum = 1) const {
        int64_t value = 0;
        check(table_->integer(table_, key, TSR_REQUIRED, minimum, &value));
        return value;
    }
    double number(const char* key) const {
        double value = 0;
        check(table_->number(table_, key, TSR_REQUIRED, &value));
        return value;
    }

    // `otherwise` if it is missing.
    int64_t integer_or(const char* key, int64_t otherwise, int64_t minimum = 1) const {
        check(table_->integer(table_, key, TSR_OPTIONAL, minimum, &otherwise));
        return otherwise;
    }
    double number_or(const char* key, double otherwise) const {
        check(table_->number(table_, key, TSR_OPTIONAL, &otherwise));
        return otherwise;
    }
    bool boolean_or(const char* key, bool otherwise) const {
        uint32_t value = otherwise ? 1 : 0;
        check(table_->boolean(table_, key, TSR_OPTIONAL, &value));
        return value != 0;
    }
    std::string text_or(const char* key, const char* otherwise) const {
        const char* value = otherwise;
        check(table_->text(table_, key, TSR_OPTIONAL, &value));
        return value;
    }

    bool has_tensor(const std::string& name) const noexcept { return extent(name, 0) > 0; }
    // Of a tensor of the file; 0 if it has none of that name.
    int64_t extent(const std::string& name, uint32_t dimension) const noexcept {
        const tsr_tensor* tensor = table_->tensor(table_, name.c_str());
        return tensor ? tensor->dims[dimension] : 0;
    }

    void note(const std::string& line) const { check(table_->note(table_, line.c_str())); }

    // Weights of the graph, by their full names.
    tsr_value matrix(const std::string& name, Dims dims) const { return weight(name, dims, 0); }
    tsr_value vector(const std::string& name, int64_t length) const {
        return weight(name, {length}, TSR_WEIGHT_VECTOR);
    }
    tsr_value vector_if_there(const std::string& name, int64_t length) const {
        return weight(name, {length}, uint32_t{TSR_WEIGHT_VECTOR} | uint32_t{TSR_OPTIONAL});
    }

    void set_layer(int64_t layer) const { check(table_->set_layer(table_, layer)); }

  private:
    tsr_value weight(const std::string& name, Dims dims, uint32_t flags) const {
        tsr_value value = 0;
        check(table_->weight(table_, name.c_str(), dims.begin(), static_cast<uint32_t>(dims.size()), flags, &value));
        return value;
    }

    tsr_model* table_;
};

}  // namespace tessera::sdk
