#include "core/session/kept/page_writer.hpp"

#include "core/base/log.hpp"

#include <exception>
#include <utility>

namespace tessera::session {

PageWriter::PageWriter(PageStore& store, uint64_t held_bytes)
    : store_(store), held_bytes_(held_bytes), thread_([this] { run(); }) {}

PageWriter::~PageWriter() {
    {
        const std::scoped_lock lock(mutex_);
        stopping_ = true;
    }
    given_.notify_one();
    thread_.join();
}

bool PageWriter::has_room(uint64_t bytes) const {
    const std::scoped_lock lock(mutex_);
    return room(bytes);
}

std::vector<std::byte> PageWriter::buffer() {
    const std::scoped_lock lock(mutex_);
    if (buffers_.empty()) return {};
    std::vector<std::byte> buffer = std::move(buffers_.back());
    buffers_.pop_back();
    return buffer;
}

void PageWriter::push(Page page) {
    const std::scoped_lock lock(mutex_);
    waiting_bytes_ += page.bytes.size();
    pages_.push_back(std::move(page));
    given_.notify_one();
}

bool PageWriter::wait_for_room(uint64_t bytes, std::chrono::milliseconds time) {
    std::unique_lock lock(mutex_);
    return written_.wait_for(lock, time, [&] { return room(bytes); });
}

bool PageWriter::wait_until_written(std::chrono::milliseconds time) {
    std::unique_lock lock(mutex_);
    return written_.wait_for(lock, time, [&] { return pages_.empty(); });
}

uint64_t PageWriter::waiting() const {
    const std::scoped_lock lock(mutex_);
    return pages_.size();
}

void PageWriter::run() {
    std::unique_lock lock(mutex_);
    for (;;) {
        given_.wait(lock, [&] { return stopping_ || !pages_.empty(); });
        if (stopping_) return;
        const Page& page = pages_.front();  // stays where it is while others are added
        lock.unlock();
        try {
            // What has been refused once takes no time again; the store says when it is worth a try.
            if (!store_.waits()) store_.write(page.parent, page.tokens, page.group, page.bytes);
        } catch (const std::exception& error) {
            log().warn("a page of the cache is not kept: {}", error.what());
        }
        lock.lock();
        waiting_bytes_ -= pages_.front().bytes.size();
        buffers_.push_back(std::move(pages_.front().bytes));
        pages_.pop_front();
        // As many as are in use at once; idle ones go.
        if (buffers_.size() > 2 && pages_.empty()) buffers_.resize(2);
        written_.notify_all();
    }
}

}  // namespace tessera::session
