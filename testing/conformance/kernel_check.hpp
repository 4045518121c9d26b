// One kernel, one case: planned, prepared and run in every layout, with several numbers of workers, against the
// reference.
#pragma once

#include "case.hpp"
#include "shapes.hpp"

#include <tessera/plugin.h>

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace tessera::conformance {

// What a check came to.
struct Verdict {
    enum Kind { kPassed, kFailed, kNotClaimed } kind = kPassed;
    std::string text;   // why not; or what could not be compared
    bool lost = false;  // failed because the device is lost: in this process all that follows fails, too
};

// What the kernels are told of the machine, and where layouts are looked for.
struct Setting {
    const tsr_plugin* plugin = nullptr;
    const tsr_plugin* reference = nullptr;  // may be the same
    const tsr_plugin* owner = nullptr;      // on whose devices its kernels are tested; nullptr: on its own
    const tsr_device_info* cpu = nullptr;   // its `threads` are the workers of the largest team
    std::vector<std::string> cases;         // only cases whose name contains one of these; empty: all
    std::vector<Shape> shapes;              // cases of these instead of those that are always the same
};

// nullptr if neither plugin brings it; with an interop that is not empty, one that packs on devices of it.
const tsr_layout* find_layout(const Setting& setting, const char* name, std::string_view interop = {});

// The reference's kernel for an op on the CPU; nullptr if it has none.
const tsr_kernel* reference_kernel(const Setting& setting, const std::string& op);

// A buffer of a case for a kernel: `layout` nullptr or "" means canonical. Throws std::runtime_error.
std::vector<std::byte> packed(const Operand& operand, const tsr_layout* layout);
// The inverse; empty if the layout cannot.
std::vector<std::byte> unpacked(const Operand& operand, const tsr_layout* layout, const std::byte* from);

// How long a call of the kernel takes with one worker, in the first layout that it takes and with all rows of the case,
// next to the kernel of setting.reference for the op: median of five batches, with both estimates, as the text of a
// passed verdict.
Verdict time_kernel(const Setting& setting, const tsr_kernel& kernel, const Case& of);

// Throws std::runtime_error for a kernel of another version of the op than the node has.
void check_version(const tsr_kernel& kernel, const tsr_node& node);
// What kernel.h asks of a plan, as far as it can be told without the plugins of a host. Empty: nothing is wrong.
// `interop` of the device that it is for, "" for the CPU.
std::string kernel_plan_fault(const Setting& setting, const tsr_kernel_plan& plan, const tsr_node& node,
                              std::string_view interop);

// The layouts that a kernel is run with, of each operand (nullptr: canonical): the first of each together, the second,
// ... Empty if it takes none that these rows can have.
using Layouts = std::vector<const tsr_layout*>;
std::vector<Layouts> layout_choices(const Setting& setting, const Case& of, const tsr_kernel_plan& plan,
                                    std::string_view interop);
// For messages: "layout q8_0_x8", "canonical layouts".
std::string layout_text(const Layouts& layouts);

// Bytes of every operand's storage after the reference ran; inputs as they were.
using Result = std::vector<std::vector<std::byte>>;

// One Result for each of the case's ranges. Empty if the reference does not compute this case; `why` says why then.
std::vector<Result> run_reference(const Setting& setting, const Case& of, std::string& why);

// Throws std::runtime_error with what differs. `got` and `wanted`: of one run over `ranges`.
void compare(const Case& of, const Ranges& ranges, const Result& got, const Result& wanted);
// Throws std::runtime_error if a run wrote to rows, or gaps between rows, that are not its own.
void check_untouched(const Case& of, const Ranges& ranges, const Result& got);

Verdict check_kernel(const Setting& setting, const tsr_kernel& kernel, const Case& of);

// Calls use(rows of a weight) for several lengths and numbers of rows that the layout can have.
void for_each_packable(const tsr_layout& layout, const std::function<void(const Operand&)>& use);

// Packs and unpacks rows of several lengths.
Verdict check_layout(const tsr_layout& layout);

}  // namespace tessera::conformance
