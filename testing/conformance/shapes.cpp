#include "shapes.hpp"

#include "cases.hpp"

#include <algorithm>
#include <charconv>
#include <numeric>
#include <stdexcept>

namespace tessera::conformance {
namespace {

constexpr tsr_role kActivationRole = TSR_ROLE_ACTIVATION, kWeightRole = TSR_ROLE_WEIGHT;
constexpr int64_t kMaxElements = int64_t{1} << 31;
// Above these elements of a weight the reference takes seconds for each row.
constexpr int64_t kManyElements = int64_t{1} << 25;

// A group has as many weights as sizes past the first; others have these numbers of weights and sizes.
struct Signature {
    std::string_view op;
    size_t weights, sizes;
};
constexpr size_t kAnyNumber = 0;
constexpr Signature kSignatures[] = {{TSR_OP_MATMUL, 1, 2},    {TSR_OP_MATMUL_GROUP, kAnyNumber, kAnyNumber},
                                     {TSR_OP_MATMUL_ID, 1, 3}, {TSR_OP_GATED_FFN, 3, 2},
                                     {TSR_OP_MOE_FFN, 3, 3},   {TSR_OP_GET_ROWS, 1, 2},
                                     {TSR_OP_RMS_NORM, 1, 1},  {TSR_OP_ADD, 1, 1},
                                     {TSR_OP_MUL, 1, 1},       {TSR_OP_SILU_MUL, 1, 1}};

std::vector<std::string_view> split(std::string_view text, char between) {
    std::vector<std::string_view> parts;
    while (true) {
        const size_t end = text.find(between);
        parts.push_back(text.substr(0, end));
        if (end == std::string_view::npos) return parts;
        text.remove_prefix(end + 1);
    }
}

[[noreturn]] void refuse(std::string_view text, const std::string& why) {
    throw std::invalid_argument("the shape '" + std::string(text.substr(0, 200)) + "': " + why);
}

tsr_type type_of(std::string_view name, std::string_view text) {
    for (const tsr_type type : weight_types()) {
        if (name == formats::format_name(type)) return type;
    }
    refuse(text, "no type of weights is called '" + std::string(name.substr(0, 40)) + "'");
}

int64_t size_of_shape(std::string_view number, std::string_view text) {
    int64_t size = 0;
    const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), size);
    if (error != std::errc() || end != number.data() + number.size() || size < 1 || size > kMaxElements)
        refuse(text, "'" + std::string(number.substr(0, 40)) + "' is no size");
    return size;
}

void check_rows(const Shape& shape, size_t weight, int64_t elements, std::string_view text) {
    const int64_t block = formats::listed_size(shape.types[weight]).elements;
    if (elements % block == 0) return;
    refuse(text, "rows of " + std::to_string(elements) + " elements are not whole blocks of " +
                     formats::format_name(shape.types[weight]) + " (" + std::to_string(block) + ")");
}

// Of one weight, or of all weights of a group, whose rows are of one length; kMaxElements + 1 if there are
// more.
int64_t elements_of(const Shape& shape) {
    std::vector<int64_t> factors = shape.sizes;
    if (shape.op == TSR_OP_MATMUL_GROUP)
        factors = {shape.sizes[0], std::accumulate(shape.sizes.begin() + 1, shape.sizes.end(), int64_t{0})};
    int64_t product = 1;
    for (const int64_t size : factors) product = size > kMaxElements / product ? kMaxElements + 1 : product * size;
    return product;
}

void weight(Case& c, tsr_type type, std::initializer_list<int64_t> dims) {
    const int64_t row = *dims.begin();
    c.fill(c.input("weight", type, dims, kWeightRole), weight_size(row));
    c.tolerance = std::max(c.tolerance, tolerance_of(type));
}

void experts_of_rows(Case& c, int64_t used, int64_t rows, int64_t experts) {
    Operand& ids = c.input("ids", TSR_TYPE_I32, {used, rows}, kActivationRole, kRows);
    for (int64_t r = 0; r < rows; ++r) {
        for (int64_t i = 0; i < used; ++i)
            ids.integers(static_cast<size_t>(r))[i] = static_cast<int32_t>((r * 7 + i) % experts);
    }
}

void add_shape_operands(Case& c, const Shape& shape, int64_t rows) {
    const std::string& op = shape.op;
    const std::vector<int64_t>& size = shape.sizes;
    const bool routed = op == TSR_OP_MOE_FFN || op == TSR_OP_MATMUL_ID;
    const int64_t experts = routed ? size[2] : 1, used = std::min<int64_t>(experts, 2);
    if (op == TSR_OP_GET_ROWS) {
        c.fill(c.input("table", shape.types[0], {size[0], size[1]}, kWeightRole));
        Operand& ids = c.input("ids", TSR_TYPE_I32, {rows}, TSR_ROLE_INPUT, kRows);
        for (int64_t r = 0; r < rows; ++r) ids.integers(0)[r] = static_cast<int32_t>((r * 7919 + 1) % size[1]);
        c.tolerance = tolerance_of(shape.types[0]);
        c.output("out", TSR_TYPE_F32, {size[0], rows}, kRows);
        return;
    }
    c.fill(c.input("x", TSR_TYPE_F32, {size[0], rows}, kActivationRole, kRows));
    if (op == TSR_OP_MATMUL) {
        weight(c, shape.types[0], {size[0], size[1]});
        c.output("out", TSR_TYPE_F32, {size[1], rows}, kRows);
    } else if (op == TSR_OP_MATMUL_GROUP) {
        for (size_t i = 1; i < size.size(); ++i) weight(c, shape.types[i - 1], {size[0], size[i]});
        for (size_t i = 1; i < size.size(); ++i) c.output("out", TSR_TYPE_F32, {size[i], rows}, kRows);
    } else if (op == TSR_OP_MATMUL_ID) {
        weight(c, shape.types[0], {size[0], size[1], experts});
        experts_of_rows(c, used, rows, experts);
        c.output("out", TSR_TYPE_F32, {size[1], used, rows}, kRows);
    } else if (op == TSR_OP_GATED_FFN) {
        weight(c, shape.types[0], {size[0], size[1]});
        weight(c, shape.types[1], {size[0], size[1]});
        weight(c, shape.types[2], {size[1], size[0]});
        c.tolerance *= 2;
        c.output("out", TSR_TYPE_F32, {size[0], rows}, kRows);
    } else if (op == TSR_OP_MOE_FFN) {
        experts_of_rows(c, used, rows, experts);
        c.fill(c.input("weights", TSR_TYPE_F32, {used, rows}, kActivationRole, kRows));
        weight(c, shape.types[0], {size[0], size[1], experts});
        weight(c, shape.types[1], {size[0], size[1], experts});
        weight(c, shape.types[2], {size[1], size[0], experts});
        c.tolerance *= 2;
        c.output("out", TSR_TYPE_F32, {size[0], rows}, kRows);
    } else {
        if (op == TSR_OP_RMS_NORM) {
            c.fill(c.input("weight", TSR_TYPE_F32, {size[0]}, kWeightRole));
            c.attribute("epsilon", 1e-6);
        } else {
            c.fill(c.input("b", TSR_TYPE_F32, {size[0], rows}, kActivationRole, kRows));
        }
        c.output("out", TSR_TYPE_F32, {size[0], rows}, kRows);
    }
}

}  // namespace

std::string Shape::text() const {
    std::string names, numbers;
    const bool same = std::ranges::all_of(types, [&](tsr_type type) { return type == types.front(); });
    for (size_t i = 0; i < (same ? 1 : types.size()); ++i)
        names += (names.empty() ? "" : ",") + std::string(formats::format_name(types[i]));
    for (const int64_t size : sizes) numbers += (numbers.empty() ? "" : "x") + std::to_string(size);
    return op + ':' + names + ':' + numbers;
}

std::string_view shape_signatures() {
    return "matmul:TYPE:KxN, matmul_group:TYPE:KxN1xN2..., matmul_id:TYPE:KxNxEXPERTS, gated_ffn:TYPE:KxF, "
           "moe_ffn:TYPE:KxFxEXPERTS, get_rows:TYPE:NxROWS, and rms_norm, add, mul, silu_mul:f32:N. TYPE is one for "
           "all "
           "weights, or one each: q4_K,q4_K,q6_K";
}

bool has_shapes(std::string_view op) {
    return std::ranges::find(kSignatures, op, &Signature::op) != std::end(kSignatures);
}

Shape parse_shape(std::string_view text) {
    const std::vector<std::string_view> parts = split(text, ':');
    const auto signature = std::ranges::find(kSignatures, parts[0], &Signature::op);
    if (parts.size() != 3 || signature == std::end(kSignatures))
        refuse(text, "expected one of " + std::string(shape_signatures()));
    Shape shape;
    shape.op = parts[0];
    for (const std::string_view name : split(parts[1], ',')) shape.types.push_back(type_of(name, text));
    for (const std::string_view number : split(parts[2], 'x')) shape.sizes.push_back(size_of_shape(number, text));
    const bool any = signature->sizes == kAnyNumber;
    const size_t weights = any ? shape.sizes.size() - 1 : signature->weights;
    const size_t most = TSR_MAX_OPERANDS / 2 - 1;
    if (any ? weights < 1 || weights > most : shape.sizes.size() != signature->sizes)
        refuse(text, "expected one of " + std::string(shape_signatures()));
    if (shape.types.size() == 1) shape.types.resize(weights, shape.types.front());
    if (shape.types.size() != weights)
        refuse(text,
               "expected 1 or " + std::to_string(weights) + " types, found " + std::to_string(shape.types.size()));
    if (elements_of(shape) > kMaxElements) refuse(text, "more than 2^31 elements");
    const bool is_network = shape.op == TSR_OP_GATED_FFN || shape.op == TSR_OP_MOE_FFN;
    for (size_t i = 0; i < weights; ++i) check_rows(shape, i, shape.sizes[is_network && i == 2 ? 1 : 0], text);
    const bool is_plain = signature->sizes == 1;
    if (is_plain && shape.types[0] != TSR_TYPE_F32) refuse(text, "it has activations of f32 only");
    return shape;
}

void for_each_shape_case(const std::string& op, std::span<const Shape> shapes, const std::function<void(Case&)>& use) {
    for (const Shape& shape : shapes) {
        if (shape.op != op) continue;
        for (const int64_t rows : {1, 6, 33}) {
            if (rows > 6 && elements_of(shape) > kManyElements) continue;
            Case c(op, shape.text() + " rows=" + std::to_string(rows));
            add_shape_operands(c, shape, rows);
            c.row_ranges(static_cast<int32_t>(rows));
            use(c);
        }
    }
}

}  // namespace tessera::conformance
