// A slot's text to a file and back.
#include "apps/server/api_error.hpp"
#include "apps/server/endpoint.hpp"
#include "apps/server/query.hpp"
#include "apps/server/saved_slot.hpp"
#include "core/base/error.hpp"
#include "core/base/seconds.hpp"
#include "core/session/kept/slot_moves.hpp"
#include "core/text/json_writer.hpp"

#include <spdlog/fmt/fmt.h>
#include <sys/stat.h>

#include <cerrno>
#include <charconv>
#include <chrono>
#include <filesystem>
#include <mutex>
#include <string>

namespace tessera::server {
namespace {

// One at a time: whoever moves one keeps a worker, and the other one serves everybody else.
std::mutex& moving() {
    static std::mutex mutex;
    return mutex;
}

uint32_t slot_of(const EndpointContext& context, const HttpRequest& request, const ServedModel& model) {
    const std::string text = named_part(context, request, "/slots/");
    const uint32_t slots = model.engine->max_sequences();
    uint32_t slot = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), slot);
    if (error != std::errc() || end != text.data() + text.size() || slot >= slots)
        throw ApiError(400, fmt::format("Invalid slot ID: the slots of this server are 0 to {}", slots - 1), "id");
    return slot;
}

// Of each key its own, so that no client reads what another has saved.
std::filesystem::path folder_of(const std::filesystem::path& folder, const std::string& space) {
    std::filesystem::path own = folder;
    for (const char* const part : {"", space.c_str()}) {
        if (*part) own /= std::string(part).substr(0, 32);
        if (mkdir(own.c_str(), 0700) != 0 && errno != EEXIST)
            throw ApiError(500, "the server's folder for slots cannot be made", {}, "no_folder");
    }
    return own;
}

HttpResponse move_slot(const EndpointContext& context, const HttpRequest& request) {
    const SlotAction action = slot_action(request.query);
    if (!context.settings.slot_folder)
        throw ApiError(501, "this server does not support slots action: start it with --slot-save-path FOLDER", {},
                       "not_supported");
    const std::shared_ptr<const ServedModel> held = context.host.model();
    const ServedModel& model = *held;
    const uint32_t slot = slot_of(context, request, model);
    const std::string space = context.access.sender_of(request).space;
    std::string out;
    text::JsonWriter json(out);
    json.begin_object().member("id_slot", slot);
    if (action == SlotAction::kErase) {
        try {
            json.member("n_erased", session::erase_slot(*model.service, space, slot)).end_object();
        } catch (const Error& error) {
            if (error.code() != TSR_IO_ERROR) throw;
            throw ApiError(500, fmt::format("Unable to erase slot: {}", error.what()), {}, "not_erased");
        }
        return json_response(std::move(out));
    }
    const std::string name = read_slot_file(request.body);
    const std::unique_lock lock(moving(), std::try_to_lock);
    if (!lock) {
        ApiError error(503, "another slot is being saved or restored", {}, "busy");
        error.retry_after = 1;
        throw error;
    }
    const std::filesystem::path path = folder_of(*context.settings.slot_folder, space) / name;
    const auto start = std::chrono::steady_clock::now();
    session::MovedSlot moved;
    const bool save = action == SlotAction::kSave;
    try {
        moved = save
                    ? session::save_slot(*model.service, model.pages, path, space, slot)
                    : session::restore_slot(*model.service, model.pages, model.engine->page_bytes(), path, space, slot);
    } catch (const Error& error) {
        if (error.code() == TSR_CANCELLED || error.code() == TSR_DEVICE_LOST) throw;
        // Without the server's folder.
        std::string text = error.what();
        if (const size_t at = text.find(path.string()); at != text.npos) text.replace(at, path.string().size(), name);
        const unsigned status = save || error.code() == TSR_IO_ERROR ? 500
                                : error.code() == TSR_DOES_NOT_FIT   ? 503
                                                                     : 400;
        throw ApiError(status, fmt::format("Unable to {} slot: {}", save ? "save" : "restore", text), {},
                       save ? "not_saved" : "not_restored");
    }
    const double milliseconds = 1000 * seconds_since(start);
    json.member("filename", name).member(save ? "n_saved" : "n_restored", moved.tokens);
    json.member(save ? "n_written" : "n_read", moved.bytes).key("timings").begin_object();
    json.key(save ? "save_ms" : "restore_ms").fixed(milliseconds, 3).end_object().end_object();
    return json_response(std::move(out));
}

}  // namespace

namespace endpoint_files {

constexpr Endpoint kSlotActions[] = {{.method = "POST", .paths = "/slots/{id}", .work = move_slot}};
extern const std::span<const Endpoint> slots = kSlotActions;

}  // namespace endpoint_files

}  // namespace tessera::server
