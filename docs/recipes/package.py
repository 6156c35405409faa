# A Spack package: `spack spec` accepts it; it was not built. Copy it to REPOSITORY/packages/syncline/package.py, and add `url` and the
# sha256 of the source archive (scripts/release). Spack has no package of libcsv: make one with `spack create` (it is an AutotoolsPackage).
from spack_repo.builtin.build_systems.cmake import CMakePackage

from spack.package import *


class Syncline(CMakePackage):
    """The Keras 2 backend as a C++ runtime for distributed data-parallel training."""

    license("Apache-2.0")
    version("0.3.0")

    variant("mpi", default=True, description="several ranks")
    variant("gd", default=False, description="histograms as PNG")

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("cmake@3.25:", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("cli11", type="build")
    depends_on("nlohmann-json", type="build")
    depends_on("fmt@9:")
    depends_on("hdf5@1.10:1.14 ~mpi")
    depends_on("highway")
    depends_on("intel-oneapi-tbb")
    depends_on("libcsv")
    depends_on("libzip")
    depends_on("openblas threads=pthreads")
    depends_on("xxhash")
    depends_on("zlib-api")
    depends_on("mpi", when="+mpi")
    depends_on("libgd", when="+gd")

    def cmake_args(self):
        return [
            self.define("SYNCLINE_TESTS", False),
            self.define("CMAKE_DISABLE_FIND_PACKAGE_MPI", not self.spec.satisfies("+mpi")),
            self.define_from_variant("SYNCLINE_GD", "gd"),
        ]
