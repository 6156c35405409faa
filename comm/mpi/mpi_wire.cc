#include "comm/mpi/mpi_wire.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

namespace syncline::comm {
namespace {

constexpr int kNoteTag = 1;

MPI_Datatype mpi_type(DType dtype) {
  switch (dtype) {
    case DType::kUint8: return MPI_UINT8_T;
    case DType::kInt8: return MPI_INT8_T;
    case DType::kInt16: return MPI_INT16_T;
    case DType::kInt32: return MPI_INT32_T;
    case DType::kInt64: return MPI_INT64_T;
    case DType::kFloat32: return MPI_FLOAT;
    case DType::kFloat64: return MPI_DOUBLE;
    case DType::kBool:
    case DType::kFloat16: break;
  }
  fail<InternalError>("all_reduce: ", dtype, " has no reduction");
}

MPI_Op mpi_op(Reduce reduce) {
  switch (reduce) {
    case Reduce::kSum: return MPI_SUM;
    case Reduce::kMax: return MPI_MAX;
    case Reduce::kMin: return MPI_MIN;
  }
  fail<InternalError>("unknown reduction ", static_cast<int>(reduce));
}

}  // namespace

MpiWire::MpiWire(const MpiOptions& options)
    : session_(MpiSession::join()), piece_bytes_(options.piece_bytes), gather_bytes_(options.gather_bytes) {
  if (piece_bytes_ < 8 || piece_bytes_ > 1 << 30 || gather_bytes_ < 0 || gather_bytes_ > 1 << 30)
    fail("make_mpi_communicator: piece_bytes=", piece_bytes_, " and gather_bytes=", gather_bytes_,
         " must lie between 8 and 2^30");
  check_mpi(MPI_Comm_size(MPI_COMM_WORLD, &size_), "MPI_Comm_size", "start");
  check_launch(options.launch, size_);
  check_mpi(MPI_Comm_dup(MPI_COMM_WORLD, &comm_), "MPI_Comm_dup", "start");
  check_mpi(MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler", "start");
  check_mpi(MPI_Comm_rank(comm_, &rank_), "MPI_Comm_rank", "start");
  counts_.resize(size_);
  offsets_.resize(size_);
}

void MpiWire::begin(const Job& job) {
  const auto words = std::bit_cast<HeaderWords>(job.header);
  for (int i = 0; i < kHeaderWords; ++i) {
    words_[i] = words[i];
    words_[kHeaderWords + i] = ~words[i];
  }
  phase_ = Phase::kHeader;
  check(MPI_Iallreduce(words_.data(), largest_.data(), static_cast<int>(words_.size()), MPI_UINT64_T, MPI_MAX, comm_,
                       &request_),
        "MPI_Iallreduce", job);
}

Wire::Meeting MpiWire::poll(const Job& job) {
  int arrived = 0;
  if (phase_ != Phase::kAgreed) {
    check(MPI_Test(&request_, &arrived, MPI_STATUS_IGNORE), "MPI_Test", job);
    if (arrived == 0) return Meeting::kWaiting;
    if (phase_ == Phase::kSmall || (headers_agree() && job.bytes == 0)) {
      phase_ = Phase::kIdle;
      return Meeting::kDone;
    }
    if (!headers_agree()) tell_mismatch(job);
    phase_ = Phase::kAgreed;
  }
  if (job.bytes > kSmallBytes) return Meeting::kReady;
  start_small(job);
  check(MPI_Test(&request_, &arrived, MPI_STATUS_IGNORE), "MPI_Test", job);
  phase_ = arrived == 0 ? Phase::kSmall : Phase::kIdle;
  return arrived == 0 ? Meeting::kWaiting : Meeting::kDone;
}

// Word i is equal everywhere if its largest value is its smallest: the largest of ~w is ~ of the smallest w.
bool MpiWire::headers_agree() const {
  for (int i = 0; i < kHeaderWords; ++i)
    if (largest_[i] != ~largest_[kHeaderWords + i]) return false;
  return true;
}

// Every rank sees the same disagreement, so every rank comes here.
void MpiWire::tell_mismatch(const Job& job) {
  std::vector<Header> headers(size_);
  check(MPI_Allgather(&job.header, sizeof(Header), MPI_BYTE, headers.data(), sizeof(Header), MPI_BYTE, comm_),
        "MPI_Allgather", job);
  phase_ = Phase::kIdle;
  fail<DisagreementError>(describe_mismatch(headers));
}

void MpiWire::start_small(const Job& job) {
  switch (job.kind) {
    case Kind::kAllReduce:
      check(MPI_Iallreduce(MPI_IN_PLACE, job.data, static_cast<int>(job.count), mpi_type(job.dtype), mpi_op(job.reduce),
                           comm_, &request_),
            "MPI_Iallreduce", job);
      break;
    case Kind::kAllGather:
      place_own_part(job);
      check(MPI_Iallgatherv(MPI_IN_PLACE, 0, MPI_BYTE, job.data, counts_.data(), offsets_.data(), MPI_BYTE, comm_,
                            &request_),
            "MPI_Iallgatherv", job);
      break;
    case Kind::kBroadcast:
      check(MPI_Ibcast(job.data, static_cast<int>(job.bytes), MPI_BYTE, job.root, comm_, &request_), "MPI_Ibcast", job);
      break;
  }
}

void MpiWire::transfer(const Job& job) {
  switch (job.kind) {
    case Kind::kAllReduce: reduce_in_pieces(job); break;
    case Kind::kAllGather: gather(job); break;
    case Kind::kBroadcast: broadcast_in_pieces(static_cast<std::byte*>(job.data), job.bytes, job.root, job); break;
  }
  phase_ = Phase::kIdle;
}

// Copies this rank's bytes to their place, unless they are there, and lists counts and offsets for MPI where they fit.
void MpiWire::place_own_part(const Job& job) {
  std::int64_t offset = 0;
  for (int r = 0; r < size_; ++r) {
    const std::int64_t bytes = job.byte_counts[r];
    std::byte* place = static_cast<std::byte*>(job.data) + offset;
    if (r == rank_ && bytes > 0 && place != job.send) std::memcpy(place, job.send, static_cast<std::size_t>(bytes));
    if (job.bytes <= gather_bytes_ || job.bytes <= kSmallBytes) {
      counts_[r] = static_cast<int>(bytes);
      offsets_[r] = static_cast<int>(offset);
    }
    offset += bytes;
  }
}

// The order of MPI's sums depends on a piece's size and on the ranks alone, and the same sum goes to every rank.
void MpiWire::reduce_in_pieces(const Job& job) {
  const auto width = static_cast<std::int64_t>(size_of(job.dtype));
  const std::int64_t piece = piece_bytes_ / width;
  for (std::int64_t first = 0; first < job.count; first += piece)
    check(MPI_Allreduce(MPI_IN_PLACE, static_cast<std::byte*>(job.data) + first * width,
                        static_cast<int>(std::min(piece, job.count - first)), mpi_type(job.dtype), mpi_op(job.reduce),
                        comm_),
          "MPI_Allreduce", job);
}

void MpiWire::broadcast_in_pieces(std::byte* data, std::int64_t bytes, int root, const Job& job) {
  for (std::int64_t first = 0; first < bytes; first += piece_bytes_)
    check(MPI_Bcast(data + first, static_cast<int>(std::min(piece_bytes_, bytes - first)), MPI_BYTE, root, comm_),
          "MPI_Bcast", job);
}

void MpiWire::gather(const Job& job) {
  place_own_part(job);
  if (job.bytes <= gather_bytes_) {
    check(MPI_Allgatherv(MPI_IN_PLACE, 0, MPI_BYTE, job.data, counts_.data(), offsets_.data(), MPI_BYTE, comm_),
          "MPI_Allgatherv", job);
    return;
  }
  auto* place = static_cast<std::byte*>(job.data);
  for (int r = 0; r < size_; ++r) {
    broadcast_in_pieces(place, job.byte_counts[r], r, job);
    place += job.byte_counts[r];
  }
}

void MpiWire::check(int code, const char* call, const Job& job) const {
  if (code != MPI_SUCCESS) check_mpi(code, call, describe(job.header));
}

void MpiWire::post_note(std::uint64_t note) {
  if (rank_ != 0) return;
  for (int done = 1; !sent_.empty();) {
    check_mpi(MPI_Test(&sent_.front().request, &done, MPI_STATUS_IGNORE), "MPI_Test", "a note");
    if (done == 0) break;
    sent_.pop_front();
  }
  ++notes_;
  for (int r = 1; r < size_; ++r) {
    sent_.push_back({note, MPI_REQUEST_NULL});
    check_mpi(MPI_Isend(&sent_.back().note, 1, MPI_UINT64_T, r, kNoteTag, comm_, &sent_.back().request), "MPI_Isend",
              "a note");
  }
}

std::optional<std::uint64_t> MpiWire::take_note() {
  if (rank_ == 0) return {};
  int there = 0;
  check_mpi(MPI_Iprobe(0, kNoteTag, comm_, &there, MPI_STATUS_IGNORE), "MPI_Iprobe", "a note");
  if (there == 0) return {};
  std::uint64_t note = 0;
  check_mpi(MPI_Recv(&note, 1, MPI_UINT64_T, 0, kNoteTag, comm_, MPI_STATUS_IGNORE), "MPI_Recv", "a note");
  ++notes_;
  return note;
}

// MPI wants every message received before its end. All ranks are here.
void MpiWire::deliver_notes() noexcept {
  std::uint64_t posted = notes_, note = 0;
  MPI_Bcast(&posted, 1, MPI_UINT64_T, 0, comm_);
  for (; notes_ < posted; ++notes_) MPI_Recv(&note, 1, MPI_UINT64_T, 0, kNoteTag, comm_, MPI_STATUS_IGNORE);
  for (Sent& sent : sent_) MPI_Wait(&sent.request, MPI_STATUS_IGNORE);
}

void MpiWire::close(bool clean) noexcept {
  if (request_ != MPI_REQUEST_NULL || phase_ != Phase::kIdle || std::uncaught_exceptions() > 0) session_->abandon();
  if (!clean) return;
  deliver_notes();
  MPI_Comm_free(&comm_);
}

void MpiWire::abort_job(int exit_code) {
  MPI_Abort(comm_, exit_code);
  std::_Exit(exit_code);
}

}  // namespace syncline::comm
