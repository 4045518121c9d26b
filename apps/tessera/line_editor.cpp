#include "apps/tessera/line_editor.hpp"

#include "apps/tessera/interrupt.hpp"
#include "apps/tessera/screen_layout.hpp"
#include "core/text/utf8.hpp"

#include <histedit.h>
#include <poll.h>
#include <spdlog/fmt/fmt.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <clocale>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cwchar>
#include <optional>
#include <string_view>
#include <utility>

namespace tessera::app {
namespace {

constexpr int kHistoryLines = 1000;
constexpr size_t kMaxPasteBytes = size_t{64} << 20;
// Terminals put pasted text between these sequences on request ("bracketed paste").
constexpr std::string_view kPasteOn = "\033[?2004h", kPasteOff = "\033[?2004l", kPasteBegin = "\033[200~",
                           kPasteEnd = "\033[201~";
constexpr std::string_view kAskCursor = "\033[6n";
// What may be read while a report of the cursor is awaited.
constexpr size_t kMaxAheadBytes = size_t{64} << 10;
constexpr int kMillisecondsToSettle = 50, kMillisecondsToReport = 300;

volatile std::sig_atomic_t g_resized = 0, g_continued = 0;

void on_resize(int) {
    g_resized = 1;
    note_signal();
}
void on_continue(int) {
    g_continued = 1;
    note_signal();
}

class HandlerScope {
  public:
    HandlerScope(int signal, void (*handler)(int)) : signal_(signal) {
        struct sigaction action {};
        action.sa_handler = handler;
        sigaction(signal, &action, &before_);
    }
    ~HandlerScope() { sigaction(signal_, &before_, nullptr); }
    HandlerScope(const HandlerScope&) = delete;
    HandlerScope& operator=(const HandlerScope&) = delete;

  private:
    int signal_;
    struct sigaction before_ {};
};

// "\033[ROW;COLUMNR", counted from 1.
struct CursorReport {
    size_t begin, end, column;
    bool may_be_key;  // F3 with Shift, Ctrl or others is "\033[1;2R" to "\033[1;16R"
};

std::optional<CursorReport> find_cursor_report(std::string_view input, size_t from) {
    for (size_t at = input.find("\033[", from); at != std::string_view::npos; at = input.find("\033[", at + 1)) {
        const char* const last = input.data() + input.size();
        uint16_t row = 0, column = 0;
        const auto rows = std::from_chars(input.data() + at + 2, last, row);
        if (rows.ec != std::errc() || rows.ptr == last || *rows.ptr != ';') continue;
        const auto columns = std::from_chars(rows.ptr + 1, last, column);
        if (columns.ec != std::errc() || columns.ptr == last || *columns.ptr != 'R' || row == 0 || column == 0)
            continue;
        return CursorReport{at, static_cast<size_t>(columns.ptr + 1 - input.data()), column,
                            row == 1 && column >= 2 && column <= 16};
    }
    return std::nullopt;
}

}  // namespace

struct LineEditor::State {
    ~State() {
        if (edit) el_end(edit);
        if (past) history_end(past);
    }

    // The next byte of the input. 0: end of the input, -1: interrupted.
    int next_byte(unsigned char& byte) {
        for (;;) {
            if (!ahead.empty()) {
                byte = static_cast<unsigned char>(ahead.front());
                ahead.erase(0, 1);
                return 1;
            }
            std::array<pollfd, 2> awaited = {{{STDIN_FILENO, POLLIN, 0}, {signal_descriptor(), POLLIN, 0}}};
            if (poll(awaited.data(), awaited.size(), -1) < 0 && errno != EINTR) return 0;
            if (!(awaited[1].revents & POLLIN)) {
                if (!awaited[0].revents) continue;
                const ssize_t got = ::read(STDIN_FILENO, &byte, 1);
                if (got >= 0) return static_cast<int>(got);
                if (errno != EINTR) return 0;
                continue;
            }
            forget_signals();
            if (g_continued) {
                g_continued = 0;
                el_set(edit, EL_PREP_TERM, 1);
                el_set(edit, EL_REFRESH);
            }
            if (g_resized) redraw();
            if (interrupt_pending()) {
                interrupted = true;
                return -1;
            }
        }
    }

    // Draws the line anew for the terminal's present width. Its first row lies as many rows above the cursor as the
    // text before the cursor takes: by the former width, or by the present one where the terminal breaks rows anew when
    // its width changes. The column of the cursor tells which, or has told before. Until then the smaller number is
    // taken: rows that remain are better than rows of before that are lost.
    void redraw() {
        // Whoever drags the edge of a window changes its size many times.
        pollfd more{signal_descriptor(), POLLIN, 0};
        while (g_resized) {
            g_resized = 0;
            if (poll(&more, 1, kMillisecondsToSettle) > 0) forget_signals();
        }
        const size_t before = std::exchange(columns, columns_of_terminal());
        const LineInfo* const typed = el_line(edit);
        const std::string text = prompt + std::string(typed->buffer, typed->cursor);
        const ScreenPlace kept = place_after(text, before), broken = place_after(text, columns);
        size_t row = std::min(kept.row, broken.row);
        if (kept.row != broken.row) {
            const std::optional<size_t> column = cursor_column();
            const bool may_be_kept = column && *column == std::min(kept.column, columns - 1);
            if (may_be_kept != (column == broken.column)) breaks_anew = !may_be_kept;
            if (breaks_anew) row = *breaks_anew ? broken.row : kept.row;
        }
        std::string move = "\r";
        if (row > 0) move += fmt::format("\033[{}A", row);
        move += "\033[J";
        std::fwrite(move.data(), 1, move.size(), screen);
        std::fflush(screen);
        el_resize(edit);
        el_set(edit, EL_REFRESH);
    }

    static size_t columns_of_terminal() {
        constexpr size_t usual = 80;
        winsize size{};
        return ioctl(STDIN_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : usual;
    }

    // As the terminal reports it; nothing if it does not in time. What is typed meanwhile is read later.
    std::optional<size_t> cursor_column() {
        using Clock = std::chrono::steady_clock;
        if (silent) return std::nullopt;
        while (read_ahead(std::chrono::milliseconds(0))) {  // keys that were typed before
        }
        size_t from = ahead.size();
        std::fwrite(kAskCursor.data(), 1, kAskCursor.size(), screen);
        std::fflush(screen);
        const Clock::time_point deadline = Clock::now() + std::chrono::milliseconds(kMillisecondsToReport);
        std::optional<CursorReport> doubtful;
        for (;;) {
            while (const std::optional<CursorReport> report = find_cursor_report(ahead, from)) {
                if (!report->may_be_key) return take(*report);
                doubtful = report;
                from = report->end;
            }
            const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
            if (left.count() <= 0 || !read_ahead(left)) break;
        }
        if (doubtful) return take(*doubtful);
        silent = ahead.size() < kMaxAheadBytes;  // else the report may be among what was not read
        return std::nullopt;
    }

    size_t take(const CursorReport& report) {
        ahead.erase(report.begin, report.end - report.begin);
        return report.column - 1;
    }

    // Whether more input came in that time. More than anyone types stays with the terminal.
    bool read_ahead(std::chrono::milliseconds time) {
        std::array<char, 256> bytes;
        pollfd input{STDIN_FILENO, POLLIN, 0};
        if (ahead.size() >= kMaxAheadBytes || poll(&input, 1, static_cast<int>(time.count())) <= 0) return false;
        const ssize_t got = ::read(STDIN_FILENO, bytes.data(), bytes.size());
        if (got > 0) ahead.append(bytes.data(), static_cast<size_t>(got));
        return got > 0;
    }

    static State& of(EditLine* edit) {
        void* data = nullptr;
        el_get(edit, EL_CLIENTDATA, &data);
        return *static_cast<State*>(data);
    }

    // A character of UTF-8; invalid bytes become U+FFFD.
    static int next_character(EditLine* edit, wchar_t* character) {
        State& state = of(edit);
        unsigned char byte = 0;
        if (const int got = state.next_byte(byte); got != 1) return got;
        std::string bytes(1, static_cast<char>(byte));
        const size_t length = byte < 0xC0 ? 1 : byte < 0xE0 ? 2 : byte < 0xF0 ? 3 : 4;
        while (bytes.size() < length) {
            if (const int got = state.next_byte(byte); got != 1) return got;
            bytes += static_cast<char>(byte);
            if ((byte & 0xC0) != 0x80) break;
        }
        const text::Utf8Step step = text::utf8_step(bytes);
        const bool valid = step.kind == text::Utf8Kind::kValid && step.length == bytes.size();
        *character = valid ? static_cast<wchar_t>(text::utf8_decode(bytes, step.length)) : L'\uFFFD';
        return 1;
    }

    // Pasted text, inserted at once.
    static unsigned char paste(EditLine* edit, int) {
        State& state = of(edit);
        std::string text;
        unsigned char byte = 0;
        while (!text.ends_with(kPasteEnd) && text.size() < kMaxPasteBytes) {
            if (state.next_byte(byte) != 1) return CC_EOF;
            text += static_cast<char>(byte);
        }
        if (text.ends_with(kPasteEnd)) text.resize(text.size() - kPasteEnd.size());
        std::string clean;
        for (size_t i = 0; i < text.size(); ++i) {
            const char c = text[i];
            if (c == '\r') {
                if (i + 1 == text.size() || text[i + 1] != '\n') clean += '\n';
            } else if (c == '\n' || c == '\t' || (static_cast<unsigned char>(c) >= 0x20 && c != 0x7F)) {
                clean += c;
            }
        }
        el_insertstr(edit, clean.c_str());
        return CC_REFRESH;
    }

    static unsigned char new_line(EditLine* edit, int) {
        el_insertstr(edit, "\n");
        return CC_REFRESH;
    }

    static char* show_prompt(EditLine* edit) { return of(edit).prompt.data(); }

    EditLine* edit = nullptr;
    History* past = nullptr;
    std::FILE* screen = nullptr;
    std::string prompt;
    std::string ahead;                // input that was read while something else was awaited
    size_t columns = 0;               // of the terminal, when the line was drawn
    bool silent = false;              // the terminal does not report where its cursor is
    std::optional<bool> breaks_anew;  // whether the terminal does so with rows when its width changes
    bool interrupted = false;
};

std::unique_ptr<LineEditor> LineEditor::open() {
    const char* const kind = std::getenv("TERM");
    if (!isatty(STDIN_FILENO) || !kind || !*kind || std::string_view(kind) == "dumb") return nullptr;
    auto state = std::make_unique<State>();
    state->screen = isatty(STDERR_FILENO) ? stderr : isatty(STDOUT_FILENO) ? stdout : nullptr;
    if (!state->screen) return nullptr;
    // Which characters are wide, and how they are written.
    std::setlocale(LC_CTYPE, "");
    if (MB_CUR_MAX == 1) std::setlocale(LC_CTYPE, "C.UTF-8");
    state->edit = el_init("tessera", stdin, state->screen, stderr);
    state->past = history_init();
    if (!state->edit || !state->past) return nullptr;
    EditLine* const edit = state->edit;
    HistEvent event{};
    history(state->past, &event, H_SETSIZE, kHistoryLines);
    history(state->past, &event, H_SETUNIQUE, 1);
    el_set(edit, EL_CLIENTDATA, state.get());
    el_set(edit, EL_PROMPT, State::show_prompt);
    el_set(edit, EL_EDITOR, "emacs");
    el_set(edit, EL_SIGNAL, 0);
    el_set(edit, EL_HIST, history, state->past);
    el_set(edit, EL_GETCFN, State::next_character);
    // Not by el_set, which leaks copies of the strings.
    el_wset(edit, EL_ADDFN, L"tessera-paste", L"insert what is pasted", State::paste);
    el_wset(edit, EL_ADDFN, L"tessera-newline", L"insert a line end", State::new_line);
    constexpr std::pair<const char*, const char*> keys[] = {
        {kPasteBegin.data(), "tessera-paste"}, {"\033\r", "tessera-newline"}, {"\033\n", "tessera-newline"},
        {"\033[3~", "ed-delete-next-char"},    {"\033[H", "ed-move-to-beg"},  {"\033[F", "ed-move-to-end"},
        {"\033[1~", "ed-move-to-beg"},         {"\033[4~", "ed-move-to-end"}, {"\033[1;5C", "em-next-word"},
        {"\033[1;5D", "ed-prev-word"},         {"^R", "em-inc-search-prev"}};
    for (const auto& [key, action] : keys) el_set(edit, EL_BIND, key, action, nullptr);
    el_source(edit, nullptr);  // the user's ~/.editrc
    return std::unique_ptr<LineEditor>(new LineEditor(std::move(state)));
}

LineEditor::LineEditor(std::unique_ptr<State> state) : state_(std::move(state)) {}
LineEditor::~LineEditor() = default;

LineEditor::Result LineEditor::read(const std::string& prompt, std::string& line) {
    State& s = *state_;
    s.prompt = prompt;
    s.interrupted = false;
    s.columns = State::columns_of_terminal();
    const HandlerScope resize(SIGWINCH, on_resize), resume(SIGCONT, on_continue);
    const TerminalScope terminal(kPasteOff);
    // The library sets the terminal's mode at the first key only, after the prompt: Ctrl-D typed in between would end a
    // read in canonical mode and be lost.
    el_set(s.edit, EL_PREP_TERM, 1);
    std::fwrite(kPasteOn.data(), 1, kPasteOn.size(), s.screen);
    std::fflush(s.screen);
    int length = 0;
    const char* const text = el_gets(s.edit, &length);
    std::fwrite(kPasteOff.data(), 1, kPasteOff.size(), s.screen);
    line.clear();
    if (!text || length <= 0) {
        const LineInfo* const typed = el_line(s.edit);
        if (s.interrupted && typed) line.assign(typed->buffer, typed->lastchar);
        std::fputc('\n', s.screen);
        std::fflush(s.screen);
        el_reset(s.edit);
        return s.interrupted ? Result::kInterrupted : Result::kEnd;
    }
    std::fflush(s.screen);
    line.assign(text, static_cast<size_t>(length));
    if (line.ends_with('\n')) line.pop_back();
    if (line.find_first_not_of(" \t\n") != std::string::npos) {
        HistEvent event{};
        history(s.past, &event, H_ENTER, line.c_str());
    }
    return Result::kLine;
}

}  // namespace tessera::app
