//! A kernel for the op rms_norm on the CPU: y = x / sqrt(mean(x^2) + epsilon) * weight, row by row.
mod tessera;

use std::ffi::CStr;
use std::os::raw::c_void;
use std::mem::size_of;
use std::ptr::{null, null_mut};
use tessera::*;

/// What prepare keeps of a node, which outlives it.
struct State {
    node: *const Node,
    epsilon: f64,
}

fn write_reason(answer: &mut KernelPlan, text: &str) {
    let bytes = &text.as_bytes()[..text.len().min(REASON_BYTES - 1)];
    answer.reason[..bytes.len()].copy_from_slice(bytes);
    answer.reason[bytes.len()] = 0;
}

/// Pure: the same answer to the same question. Whatever the kernel cannot do it refuses here, with the reason.
unsafe extern "C" fn plan(
    _: *const Kernel,
    node: *const Node,
    info: *const DeviceInfo,
    answer: *mut KernelPlan,
) -> *const Status {
    let (node, answer) = (&*node, &mut *answer);
    if node.input_count != 2 || node.output_count != 1 {
        write_reason(answer, "expected 2 inputs and 1 output");
        return null();
    }
    let (x, weight) = (&**node.inputs, &**node.inputs.add(1));
    if x.element_type != TYPE_F32 || weight.element_type != TYPE_F32 {
        write_reason(answer, "expected f32 with a weight of f32");
        return null();
    }
    // Seconds on the device that is described: some 5e8 elements a second on each core (tessera plugin-test --time).
    let (speed, elements) = (5e8, x.dims[0] as f64);
    let rows: i64 = x.dims[1..x.rank as usize].iter().product();
    answer.seconds_one_row = elements / speed;
    answer.seconds_all_rows = elements * rows as f64 / (speed * f64::from((*info).threads.max(1)));
    answer.supported = 1;
    write_reason(answer, "plain Rust");
    null()
}

unsafe extern "C" fn prepare(
    _: *const Kernel,
    node: *const Node,
    _: *const DeviceInfo,
    _: *mut c_void,
    state: *mut *mut c_void,
) -> *const Status {
    let mut epsilon = 0.0;
    for i in 0..(*node).attribute_count as usize {
        let attribute = &**(*node).attributes.add(i);
        if CStr::from_ptr(attribute.name).to_bytes() == b"epsilon" && attribute.kind == ATTRIBUTE_FLOAT {
            epsilon = attribute.f;
        }
    }
    *state = Box::into_raw(Box::new(State { node, epsilon })).cast();
    null()
}

unsafe extern "C" fn release(_: *const Kernel, state: *mut c_void) {
    drop(Box::from_raw(state.cast::<State>()));
}

/// Called by all workers at once. What comes out must not depend on how many there are: each row is one worker's.
unsafe extern "C" fn run(_: *const Kernel, state: *mut c_void, run: *const Run) -> *const Status {
    let (state, run) = (&*state.cast::<State>(), &*run);
    let node = &*state.node;
    let (x, w, y) = (&**node.inputs, &**node.inputs.add(1), &**node.outputs);
    let elements = x.dims[0] as usize;
    let weight = std::slice::from_raw_parts(row(w, *run.data.add(1), 0), elements);
    for r in share_of(actual_rows(x, run), run) {
        // Pointers, not slices: the output may be the input itself.
        let (from, to) = (row(x, *run.data, r), row(y, *run.data.add(2), r));
        let squares: f64 = (0..elements).map(|i| f64::from(*from.add(i)).powi(2)).sum();
        let scale = (1.0 / (squares / elements as f64 + state.epsilon).sqrt()) as f32;
        for i in 0..elements {
            *to.add(i) = *from.add(i) * scale * weight[i];
        }
    }
    null()
}

static KERNEL: Kernel = Kernel {
    struct_size: size_of::<Kernel>() as u32,
    op_version: 1,
    next: null(),
    context: null(),
    name: name(b"rms_norm.example_rust\0"),
    op: name(b"rms_norm\0"),
    device_kind: name(b"cpu\0"),
    interop: null(),
    priority: 1, // goes before the built-in kernels, whatever it costs; with 0 the estimates decide
    device_abi: 0,
    plan,
    prepare,
    release,
    run: Some(run),
    enqueue: null(),
};
static KERNELS: [&Kernel; 1] = [&KERNEL];

static PLUGIN: Plugin = Plugin {
    struct_size: size_of::<Plugin>() as u32,
    reserved: 0,
    next: null(),
    context: null(),
    abi_major: ABI_MAJOR,
    abi_minor: ABI_MINOR,
    name: name(b"example_rust\0"),
    version: name(b"1.0.0\0"),
    providers: null(),
    kernels: KERNELS.as_ptr(),
    layouts: null(),
    operators: null(),
    lowerings: null(),
    provider_count: 0,
    kernel_count: 1,
    layout_count: 0,
    operator_count: 0,
    lowering_count: 0,
    reserved_count: 0,
    initialize: null(),
    get_extension: null(),
};

#[no_mangle]
pub unsafe extern "C" fn tessera_plugin_query(host: *const Host) -> *const Plugin {
    if (*host).abi_major == ABI_MAJOR {
        &PLUGIN
    } else {
        null_mut()
    }
}
