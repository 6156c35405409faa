#include "comm/mpi/mpi_version.h"

#include <mpi.h>

#include <array>
#include <string_view>

#include "syncline/error.h"

namespace syncline::comm {

MpiVersion mpi_version() {
  MpiVersion version;
  version.built = join_text(OMPI_MAJOR_VERSION, '.', OMPI_MINOR_VERSION, '.', OMPI_RELEASE_VERSION);
  std::array<char, MPI_MAX_LIBRARY_VERSION_STRING> text{};
  int length = 0;
  if (MPI_Get_library_version(text.data(), &length) == MPI_SUCCESS) {
    // "Open MPI v4.1.4, package: Debian OpenMPI, ident: ..."
    const std::string name(text.data(), static_cast<std::size_t>(length));
    version.loaded = name.substr(0, name.find(','));
    constexpr std::string_view kOpenMpi = "Open MPI v";
    if (version.loaded.starts_with(kOpenMpi)) version.loaded.erase(0, kOpenMpi.size());
  }
  return version;
}

}  // namespace syncline::comm
