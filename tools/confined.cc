#include "tools/confined.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <new>
#include <string_view>

#include "base/printable.h"
#include "syncline/checkpoint/shards.h"

namespace syncline::tools {
namespace {

constexpr std::int64_t kMiB = std::int64_t{1} << 20;

// The child sends a header, then header.size bytes.
enum class Kind : std::uint8_t { kText, kError, kOutOfMemory };
struct Header {
  Kind kind = Kind::kText;
  std::uint64_t size = 0;
};

void send_all(int pipe, const void* bytes, std::size_t size) {
  const char* next = static_cast<const char*>(bytes);
  while (size > 0) {
    const ssize_t sent = ::write(pipe, next, size);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) ::_exit(1);
    next += sent;
    size -= static_cast<std::size_t>(sent);
  }
}

void send(int pipe, Kind kind, std::string_view text) {
  Header header;
  std::memset(static_cast<void*>(&header), 0, sizeof header);  // padding must not leak this process's memory
  header.kind = kind;
  header.size = text.size();
  send_all(pipe, &header, sizeof header);
  send_all(pipe, text.data(), text.size());
}

// This process's present address space, in bytes.
std::int64_t address_space() {
  std::int64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  return pages * ::sysconf(_SC_PAGESIZE);
}

bool set_limit(__rlimit_resource resource, std::int64_t soft, std::int64_t hard) {
  rlimit limit{};
  if (::getrlimit(resource, &limit) != 0) return false;
  limit.rlim_max = std::min(limit.rlim_max, static_cast<rlim_t>(hard));
  limit.rlim_cur = std::min(limit.rlim_max, static_cast<rlim_t>(soft));
  return ::setrlimit(resource, &limit) == 0;
}

// Returns false if the kernel refuses a limit.
bool confine(const Limits& limits, pid_t parent) {
  const std::int64_t memory = address_space() + limits.memory * kMiB;
  bool ok = ::prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && ::getppid() == parent;
  ok = ok && set_limit(RLIMIT_CPU, limits.seconds, limits.seconds + 1);
  ok = ok && set_limit(RLIMIT_CORE, 0, 0) && set_limit(RLIMIT_FSIZE, 0, 0);
  if (kSanitized) return ok;
  // Discards what a crashing library prints; the parent reports in one line what happened.
  const int nowhere = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  for (const int standard : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    ok = ok && ::dup2(nowhere, standard) == standard;
  return ok && set_limit(RLIMIT_AS, memory, memory);
}

[[noreturn]] void run_child(int pipe, const Limits& limits, pid_t parent, const std::function<std::string()>& work) {
  for (const int signal : {SIGXCPU, SIGXFSZ, SIGPIPE, SIGABRT, SIGSEGV}) ::signal(signal, SIG_DFL);
  if (!confine(limits, parent)) {
    send(pipe, Kind::kError, "cannot set the limits of the process that reads the file");
    ::_exit(0);
  }
  try {
    send(pipe, Kind::kText, work());
  } catch (const std::bad_alloc&) {
    send(pipe, Kind::kOutOfMemory, "");
  } catch (const std::exception& error) {
    send(pipe, Kind::kError, error.what());
  }
  ::_exit(0);
}

// The parent's handle of one child. The destructor ends and reaps the child.
class Child {
 public:
  Child(pid_t id, int pipe) : id_(id), pipe_(pipe) {}
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child() {
    end();
    ::close(pipe_);
  }

  // Reads up to `size` bytes. Returns fewer at the end of the child's output, or when the time is over.
  std::size_t receive(char* target, std::size_t size, std::chrono::steady_clock::time_point deadline) {
    std::size_t got = 0;
    while (got < size) {
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
      late_ = left.count() <= 0;
      if (late_) return got;
      pollfd ready{pipe_, POLLIN, 0};
      const int wait = static_cast<int>(std::min<std::int64_t>(left.count(), 60'000));
      const int events = ::poll(&ready, 1, wait);
      if (events == 0 || (events < 0 && errno == EINTR)) continue;
      const ssize_t part = events < 0 ? -1 : ::read(pipe_, target + got, size - got);
      if (part < 0 && errno == EINTR) continue;
      if (part < 0) fail<IoError>("cannot read from the process that reads the file: ", std::strerror(errno));
      if (part == 0) return got;
      got += static_cast<std::size_t>(part);
    }
    return got;
  }
  bool late() const { return late_; }

  // Kills and reaps the child; returns wait(2)'s status. Killing a child that is already ending does not change its
  // status.
  int end() {
    if (id_ <= 0) return status_;
    ::kill(id_, SIGKILL);
    while (::waitpid(id_, &status_, 0) < 0 && errno == EINTR) {
    }
    id_ = -1;
    return status_;
  }

 private:
  pid_t id_;
  int pipe_, status_ = 0;
  bool late_ = false;
};

[[noreturn]] void fail_ended(const std::string& file, Child& child, const Limits& limits) {
  const bool late = child.late();
  const int status = child.end();
  const int signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  if (late || signal == SIGXCPU)
    fail<ConfinementError>("'", file, "': reading it took more than ", limits.seconds,
                           " s and was stopped; --seconds raises the limit");
  if (signal == 0) fail<ConfinementError>("'", file, "': the process that read it ended without a result");
  fail<ConfinementError>("'", file, "': the process that read it crashed (signal ", signal, ", ", ::strsignal(signal),
                         "); the file is damaged or hostile");
}

Limits resolved(Limits limits, const std::vector<std::string>& files) {
  std::int64_t bytes = 0;
  const auto add = [&](const std::string& file) {
    struct stat status {};
    if (::stat(file.c_str(), &status) == 0) bytes += status.st_size;
  };
  for (const std::string& file : files) {
    add(file);
    std::error_code ignored;  // of a file that is missing
    for (const std::string& shard : io::shard_files(std::filesystem::canonical(file, ignored))) add(shard);
  }
  if (limits.memory == 0) limits.memory = 1024 + 4 * (bytes / kMiB);
  if (limits.seconds == 0) limits.seconds = 60 + bytes / 20'000'000;
  return limits;
}

std::string take_answer(const std::string& file, Child& child, const Limits& limits) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(limits.seconds);
  Header header;
  if (child.receive(reinterpret_cast<char*>(&header), sizeof header, deadline) < sizeof header)
    fail_ended(file, child, limits);
  const auto most = static_cast<std::uint64_t>(limits.memory * kMiB);
  if (header.kind == Kind::kOutOfMemory || header.size > most)
    fail<ConfinementError>("'", file, "': reading it takes more than ", limits.memory,
                           " MiB of memory; --memory raises the limit");
  std::string text(header.size, '\0');
  if (child.receive(text.data(), text.size(), deadline) < text.size()) fail_ended(file, child, limits);
  if (header.kind != Kind::kText) fail<IoError>(printable(std::move(text)));
  return text;
}

}  // namespace

void add_limits(CLI::App& command, Limits& limits) {
  command
      .add_option("--memory", limits.memory, "Limit of memory for reading, in MiB [1024 and 4 times the file's size]")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 30));
  command.add_option("--seconds", limits.seconds, "Limit of time for reading, in seconds [60 and 1 for each 20 MB]")
      ->check(CLI::Range(1, 1'000'000));
}

std::string run_confined(const std::vector<std::string>& files, const Limits& limits,
                         const std::function<std::string()>& work) {
  const Limits used = resolved(limits, files);
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) fail<IoError>("cannot create a pipe: ", std::strerror(errno));
  const pid_t parent = ::getpid();
  std::fflush(nullptr);  // otherwise a child that flushes at its end prints what the parent has buffered
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(ends[0]);
    run_child(ends[1], used, parent, work);
  }
  const int error = errno;
  ::close(ends[1]);
  if (child < 0) {
    ::close(ends[0]);
    fail<IoError>("cannot start a process to read the file: ", std::strerror(error));
  }
  Child reader(child, ends[0]);
  return take_answer(files.empty() ? "" : files.front(), reader, used);
}

}  // namespace syncline::tools
