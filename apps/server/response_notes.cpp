#include "apps/server/response_notes.hpp"

namespace tessera::server {
namespace {

thread_local Exchange* noted_exchange = nullptr;

}  // namespace

ResponseNotes::ResponseNotes(Exchange& exchange) {
    noted_exchange = &exchange;
}

ResponseNotes::~ResponseNotes() {
    noted_exchange = nullptr;
}

void ResponseNotes::add(std::string_view name, std::string_view value) {
    if (noted_exchange) noted_exchange->add_header(name, value);
}

}  // namespace tessera::server
