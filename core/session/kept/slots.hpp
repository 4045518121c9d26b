// Texts that clients name by the number of a slot: the last that each of them worked on. Their cached pages can be
// copied out, put back and forgotten.
#pragma once

#include "core/session/engine.hpp"
#include "core/session/kept/page_keeper.hpp"
#include "core/session/kept/slot_file.hpp"
#include "core/session/prefix_tree.hpp"

#include <cstdint>
#include <future>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace tessera::session {

// Slots of different spaces are different ones. One thread at a time; all but remember() while no step is under way.
class Slots {
  public:
    // Both outlive this.
    Slots(Engine& engine, PrefixTree& tree) : engine_(engine), tree_(tree) {}

    // Of slots that can be saved, which the engine has as many of as sequences.
    void remember(const std::string& space, uint32_t slot, std::span<const Token> tokens);
    // Whether a text is open, or pages of one have been added that are in no tree yet.
    bool moving() const noexcept { return moving_ > 0; }

    // What of a slot's text is cached; its pages stay until close().
    struct Opened {
        SequenceId sequence = 0;
        std::vector<Token> tokens;
        struct Part {
            uint32_t page;
            GroupIndex group;
            PageId id;
        };
        std::vector<Part> parts;  // as in a file
    };
    Opened open(const std::string& space, uint32_t slot);
    // Fills in all of it but the record's identity and checksum. Parts in order.
    void copy(const Opened& opened, size_t part, SlotPage& page) const;
    void close(const Opened& opened);

    // Pages that were read, which are in no tree yet.
    struct Restored {
        std::vector<Token> tokens;
        std::vector<PrefixTree::Pages> pages;  // of each page of the text
    };
    // The next page of a file. Takes pages from texts that nobody uses. Throws Error(TSR_DOES_NOT_FIT) if there are
    // none, and what Engine::write_page throws.
    void add(Restored& restored, const SlotPage& page);
    // Whoever asks for these tokens finds them from now on; the slot's text is this one.
    void finish(Restored& restored, const std::string& space, uint32_t slot);
    void give_up(Restored& restored);

    // Forgets what of the slot's text nobody else uses, in files, too (`keeper` may be null), and of texts of the slot
    // that were erased before and of which files are left. Returns how many tokens the text had, and what
    // PageKeeper::forget does for each. `unknown`: there may be files that no keeper knows of yet, which so are left.
    struct Erased {
        uint32_t tokens = 0;
        std::vector<std::shared_future<void>> files;
    };
    Erased erase(const std::string& space, uint32_t slot, PageKeeper* keeper, bool unknown = false);

  private:
    using Slot = std::pair<std::string, uint32_t>;  // of a space
    // A text whose files have not been removed, as far as is known.
    struct Left {
        std::vector<Token> text;
        std::shared_future<void> files;
    };

    PageId take(GroupIndex group);
    Erased erase_files(const Slot& slot, const std::vector<Token>& text, PageKeeper* keeper);

    Engine& engine_;
    PrefixTree& tree_;
    std::map<Slot, std::vector<Token>> texts_;
    std::map<Slot, std::vector<Left>> left_;  // by an erase before
    uint32_t moving_ = 0;                     // texts that are open or partly restored
};

}  // namespace tessera::session
