/* Compares the structs of today's headers with those of a recorded version (RECORDED, of minor version RECORDED_MINOR)
 * and with sizes.h. Compiled as C and as C++: both must see the same. */
#include <tessera/sizes.h>

#include <stddef.h>
#include <stdio.h>
#include <string.h>

static int failures = 0;

static void fail(const char* name, const char* field, const char* what, size_t recorded, size_t found,
                 const char* advice) {
    ++failures;
    printf("%s%s%s: %s was %zu in ABI %d.%d and is now %zu. %s\n", name, *field ? "." : "", field, what, recorded,
           TSR_ABI_MAJOR, RECORDED_MINOR, found, advice);
}

static const char* const kGrow =
    "A struct never changes but by fields at its end: append them, raise TSR_ABI_MINOR, add a line to sizes.h, and run "
    "testing/goldens/record_abi (docs/abi.md).";
static const char* const kDevice =
    "Raise TSR_DEVICE_ABI, which host and plugin must have in common, and run testing/goldens/record_abi "
    "(docs/abi.md).";

typedef struct Line {
    const char* name;
    size_t since, bytes, today;
} Line;
#define LINE(name, since, bytes) {#name, since, bytes, sizeof(name)},
static const Line kSizes[] = {TSR_STRUCT_SIZES(LINE)};
static const Line kDeviceSizes[] = {TSR_DEVICE_STRUCT_SIZES(LINE)};

/* What sizes.h says of a struct in a version; 0: nothing. */
static size_t listed_size(const Line* lines, size_t count, const char* name, size_t version) {
    size_t bytes = 0;
    for (size_t i = 0; i < count; ++i) {
        if (strcmp(lines[i].name, name) == 0 && lines[i].since <= version) bytes = lines[i].bytes;
    }
    return bytes;
}
#define LISTED(list, name, version) listed_size(list, sizeof list / sizeof *list, name, version)

/* Where the fields that were recorded so far end, of the struct that is being compared. */
static const char* open_struct = "";
static size_t open_bytes = 0, fields_end = 0;

static void close_struct(void) {
    if (fields_end != open_bytes) {
        fail(open_struct, "", "the end of the recorded fields", fields_end, open_bytes,
             "The record is incomplete: run testing/goldens/record_abi.");
    }
}

static void begin_struct(const char* name, size_t recorded, size_t found, int provisional, int has_size) {
    close_struct();
    open_struct = name;
    open_bytes = recorded;
    fields_end = 0;
    const int may_grow = TSR_ABI_MINOR > RECORDED_MINOR && !provisional && has_size;
    if (found < recorded || (found > recorded && !may_grow))
        fail(name, "", "its size", recorded, found, provisional ? kDevice : kGrow);
    if (!has_size) return;
    const size_t listed =
        provisional ? LISTED(kDeviceSizes, name, TSR_DEVICE_ABI) : LISTED(kSizes, name, RECORDED_MINOR);
    if (listed != recorded) fail(name, "", "the size that sizes.h gives for that version", recorded, listed, kGrow);
}

static void field(const char* name, const char* field_name, size_t offset, size_t bytes, size_t found_offset,
                  size_t found_bytes, const char* advice) {
    if (offset != fields_end)
        fail(name, field_name, "its distance from the field before", 0, offset - fields_end, kGrow);
    fields_end = offset + bytes;
    if (found_offset != offset) fail(name, field_name, "its offset", offset, found_offset, advice);
    if (found_bytes != bytes) fail(name, field_name, "its size", bytes, found_bytes, advice);
}

#define OFFSET_AND_SIZE(s, f) offsetof(s, f), sizeof(((s*)0)->f)

int main(void) {
    int same_device_abi = 0;
#define DEVICE_ABI(number) same_device_abi = number == TSR_DEVICE_ABI;
#define STRUCT(s, bytes) begin_struct(#s, bytes, sizeof(s), 0, strcmp(#s, "tsr_range") != 0);
#define DEVICE_STRUCT(s, bytes) \
    begin_struct(#s, bytes, same_device_abi ? sizeof(s) : bytes, same_device_abi, same_device_abi);
#define FIELD(s, f, offset, bytes) field(#s, #f, offset, bytes, OFFSET_AND_SIZE(s, f), kGrow);
#include RECORDED
    close_struct();

    for (size_t i = 0; i < sizeof kSizes / sizeof *kSizes; ++i) {
        const size_t today = LISTED(kSizes, kSizes[i].name, TSR_ABI_MINOR);
        if (today != kSizes[i].today) {
            fail(kSizes[i].name, "", "its last size in sizes.h", today, kSizes[i].today,
                 "Add a line for the new minor version to sizes.h.");
        }
        if (kSizes[i].since > TSR_ABI_MINOR) {
            fail(kSizes[i].name, "", "the latest version in sizes.h", TSR_ABI_MINOR, kSizes[i].since,
                 "Raise TSR_ABI_MINOR.");
        }
    }
    printf("%d differences\n", failures);
    return failures == 0 ? 0 : 1;
}
