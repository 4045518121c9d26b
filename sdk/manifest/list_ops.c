/* tessera-list-ops PLUGIN.so: the ops of the kernels in a plugin's table and the names of its operators, each once, in
 * the table's order, as a manifest's `ops` lists them: "matmul", "rms_norm". Asks the library as a host does that wants
 * nothing but its table. Exit status 1 and a line on stderr if there is none. */
#include <tessera/plugin.h>

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

static void log_line(const tsr_host* self, tsr_log_level level, const char* plugin, const char* message) {
    (void)self;
    (void)level;
    fprintf(stderr, "%s: %s\n", plugin, message);
}

static const void* no_extension(const tsr_host* self, const char* tag) {
    (void)self;
    (void)tag;
    return NULL;
}

/* Op number `index` of the table: those of its kernels, then its operators. */
static const char* op_at(const tsr_plugin* table, uint32_t index) {
    return index < table->kernel_count ? table->kernels[index]->op
                                       : table->operators[index - table->kernel_count]->name;
}

static int is_first(const tsr_plugin* table, uint32_t index) {
    for (uint32_t i = 0; i < index; ++i) {
        if (strcmp(op_at(table, i), op_at(table, index)) == 0) return 0;
    }
    return 1;
}

int main(int count, char** words) {
    static const tsr_host kHost = {.struct_size = sizeof(tsr_host),
                                   .abi_major = TSR_ABI_MAJOR,
                                   .abi_minor = TSR_ABI_MINOR,
                                   .log = log_line,
                                   .get_extension = no_extension};
    if (count != 2) {
        fprintf(stderr, "usage: tessera-list-ops PLUGIN.so\n");
        return 1;
    }
    void* library = dlopen(words[1], RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        fprintf(stderr, "%s\n", dlerror());
        return 1;
    }
    tsr_plugin_query_function query;
    void* symbol = dlsym(library, TSR_PLUGIN_QUERY);
    if (!symbol) {
        fprintf(stderr, "%s: expected a function %s, found none\n", words[1], TSR_PLUGIN_QUERY);
        return 1;
    }
    memcpy(&query, &symbol, sizeof query);
    const tsr_plugin* table = query(&kHost);
    if (!table) {
        fprintf(stderr, "%s: %s returned no table for ABI %d.%d\n", words[1], TSR_PLUGIN_QUERY, TSR_ABI_MAJOR,
                TSR_ABI_MINOR);
        return 1;
    }
    const char* between = "";
    for (uint32_t i = 0; i < table->kernel_count + table->operator_count; ++i) {
        if (!is_first(table, i)) continue;
        printf("%s\"%s\"", between, op_at(table, i));
        between = ", ";
    }
    printf("\n");
    return 0;
}
