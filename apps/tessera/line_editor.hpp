// Lines that are typed at a terminal: editing, history, and pasting of several lines at once.
#pragma once

#include <memory>
#include <string>

namespace tessera::app {

// One at a time, on one thread. Lines may be of any length: the terminal is not in canonical mode while one is read.
class LineEditor {
  public:
    // Null where there is no terminal to read from and to draw on, or one that cannot move its cursor.
    static std::unique_ptr<LineEditor> open();
    ~LineEditor();
    LineEditor(const LineEditor&) = delete;
    LineEditor& operator=(const LineEditor&) = delete;

    enum class Result {
        kLine,
        kInterrupted,  // by a signal; what was typed is in `line`, too
        kEnd,          // of the input
    };
    // Without the line end; pasted text, or Alt-Enter, may add others inside.
    Result read(const std::string& prompt, std::string& line);

  private:
    struct State;
    explicit LineEditor(std::unique_ptr<State> state);

    std::unique_ptr<State> state_;
};

}  // namespace tessera::app
