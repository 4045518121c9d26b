//! What of Tessera's C ABI (version 1.0) this plugin uses. The headers in include/tessera say what everything means.
#![allow(dead_code)]

use std::os::raw::{c_char, c_void};

pub const ABI_MAJOR: u32 = 1;
pub const ABI_MINOR: u32 = 0;
pub const TYPE_F32: u32 = 0;
pub const RANGE_FIXED: i32 = -1;
pub const ATTRIBUTE_FLOAT: u32 = 1;
pub const MAX_OPERANDS: usize = 24;
pub const REASON_BYTES: usize = 256;

#[repr(C)]
pub struct Status {
    pub struct_size: u32,
    pub code: u32,
    pub next: *const c_void,
    pub message: *const c_char,
    pub destroy: Option<unsafe extern "C" fn(*const Status)>,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct Range {
    pub begin: i32,
    pub end: i32,
}

#[repr(C)]
pub struct Tensor {
    pub struct_size: u32,
    pub element_type: u32,
    pub next: *const c_void,
    pub role: u32,
    pub rank: u32,
    pub range: i32,
    pub reserved: u32,
    pub dims: [i64; 4],
    pub strides: [i64; 4],
    pub offset: i64,
    pub layout: *const c_char,
    pub name: *const c_char,
}

#[repr(C)]
pub struct Attribute {
    pub struct_size: u32,
    pub kind: u32,
    pub next: *const c_void,
    pub name: *const c_char,
    pub i: i64,
    pub f: f64,
    pub s: *const c_char,
}

#[repr(C)]
pub struct Node {
    pub struct_size: u32,
    pub op_version: u32,
    pub next: *const c_void,
    pub op: *const c_char,
    pub name: *const c_char,
    pub attributes: *const *const Attribute,
    pub inputs: *const *const Tensor,
    pub outputs: *const *const Tensor,
    pub attribute_count: u32,
    pub input_count: u32,
    pub output_count: u32,
    pub layer: i32,
}

/// Further fields follow; this plugin reads none of them.
#[repr(C)]
pub struct DeviceInfo {
    pub struct_size: u32,
    pub index: u32,
    pub next: *const c_void,
    pub strings: [*const c_char; 6],
    pub cpu_flags: *const *const c_char,
    pub compute_capability: u32,
    pub processors: u32,
    pub threads: u32,
}

#[repr(C)]
pub struct KernelPlan {
    pub struct_size: u32,
    pub supported: u32,
    pub next: *const c_void,
    pub reason: [u8; REASON_BYTES],
    pub workspace_bytes: u64,
    pub minimum_scratch_bytes: u64,
    pub seconds_one_row: f64,
    pub seconds_all_rows: f64,
    pub seconds_one_row_full: f64,
    pub seconds_all_rows_full: f64,
    pub bytes_one_row: f64,
    pub bytes_all_rows: f64,
    pub layouts: [*const *const c_char; MAX_OPERANDS],
}

#[repr(C)]
pub struct Run {
    pub struct_size: u32,
    pub reserved: u32,
    pub next: *const c_void,
    pub data: *const *mut c_void,
    pub ranges: *const Range,
    pub workspace: *mut c_void,
    pub worker: u32,
    pub workers: u32,
    pub team: *mut c_void,
    pub barrier: Option<unsafe extern "C" fn(*mut c_void, u32)>,
    pub piece: Option<unsafe extern "C" fn(*mut c_void, u32, u32) -> u32>,
    pub cancelled: *const u32,
}

#[repr(C)]
pub struct Kernel {
    pub struct_size: u32,
    pub op_version: u32,
    pub next: *const c_void,
    pub context: *const c_void,
    pub name: *const c_char,
    pub op: *const c_char,
    pub device_kind: *const c_char,
    pub interop: *const c_char,
    pub priority: i32,
    pub device_abi: u32,
    pub plan: unsafe extern "C" fn(*const Kernel, *const Node, *const DeviceInfo, *mut KernelPlan) -> *const Status,
    pub prepare:
        unsafe extern "C" fn(*const Kernel, *const Node, *const DeviceInfo, *mut c_void, *mut *mut c_void) -> *const Status,
    pub release: unsafe extern "C" fn(*const Kernel, *mut c_void),
    pub run: Option<unsafe extern "C" fn(*const Kernel, *mut c_void, *const Run) -> *const Status>,
    pub enqueue: *const c_void,
}

#[repr(C)]
pub struct Host {
    pub struct_size: u32,
    pub reserved: u32,
    pub next: *const c_void,
    pub context: *mut c_void,
    pub abi_major: u32,
    pub abi_minor: u32,
}

#[repr(C)]
pub struct Plugin {
    pub struct_size: u32,
    pub reserved: u32,
    pub next: *const c_void,
    pub context: *const c_void,
    pub abi_major: u32,
    pub abi_minor: u32,
    pub name: *const c_char,
    pub version: *const c_char,
    pub providers: *const c_void,
    pub kernels: *const &'static Kernel,
    pub layouts: *const c_void,
    pub operators: *const c_void,
    pub lowerings: *const c_void,
    pub provider_count: u32,
    pub kernel_count: u32,
    pub layout_count: u32,
    pub operator_count: u32,
    pub lowering_count: u32,
    pub reserved_count: u32,
    pub initialize: *const c_void,
    pub get_extension: *const c_void,
}

// Tables are constant and live until the process ends.
unsafe impl Sync for Kernel {}
unsafe impl Sync for Plugin {}

/// A constant string as C has it: `text` ends in a NUL.
pub const fn name(text: &'static [u8]) -> *const c_char {
    assert!(text[text.len() - 1] == 0);
    text.as_ptr() as *const c_char
}

/// Rows of a tensor, over all dimensions but the first, that a run works on.
///
/// # Safety
/// `run` is what the host gave.
pub unsafe fn actual_rows(tensor: &Tensor, run: &Run) -> std::ops::Range<i64> {
    if tensor.rank < 2 {
        return 0..1;
    }
    let last = tensor.rank as usize - 1;
    let inner: i64 = tensor.dims[1..last].iter().product();
    if tensor.range == RANGE_FIXED {
        return 0..inner * tensor.dims[last];
    }
    let range = *run.ranges.add(tensor.range as usize);
    inner * i64::from(range.begin)..inner * i64::from(range.end)
}

/// The share of these rows that the calling worker has.
pub fn share_of(rows: std::ops::Range<i64>, run: &Run) -> std::ops::Range<i64> {
    let (count, workers, worker) = (rows.end - rows.start, i64::from(run.workers), i64::from(run.worker));
    rows.start + count * worker / workers..rows.start + count * (worker + 1) / workers
}

/// The elements of a row of f32 in the canonical layout.
///
/// # Safety
/// `data` is the start of the tensor's storage, and the row is this worker's.
pub unsafe fn row(tensor: &Tensor, data: *mut c_void, mut row: i64) -> *mut f32 {
    let mut at = tensor.offset;
    for d in 1..tensor.rank as usize {
        at += row % tensor.dims[d] * tensor.strides[d];
        row /= tensor.dims[d];
    }
    data.cast::<u8>().offset(at as isize).cast::<f32>()
}
