#include "runtime/passes/compile.h"

#include <array>

#include "runtime/passes/passes.h"
#include "runtime/schedule/dump.h"
#include "syncline/backend/random.h"

namespace syncline {
namespace {

struct Pass {
  const char* name;
  Schedule (*run)(Schedule);
};

constexpr std::array kPasses{
    Pass{"fuse", fuse},
    Pass{"coalesce", coalesce},
    Pass{"order", order},
    Pass{"advance", advance},
    Pass{"bucket", bucket},
    Pass{"wait", wait},
    Pass{"join_outputs", join_outputs},
    Pass{"recompute", recompute},
    Pass{"fold_products", fold_products},
    Pass{"compile_bodies", compile_bodies},
    Pass{"commit", commit},
    Pass{"divide_sums", divide_sums},
    Pass{"epilogues", epilogues},
    Pass{"assign_memory", assign_memory},
    Pass{"make_programs", make_programs},
    Pass{"lease", lease},
    Pass{"lay_out_memory", lay_out_memory},
};

}  // namespace

Plan compile(CompileRequest request) {
  Schedule schedule = list_tasks(place(std::move(request)));
  Dump dump(schedule);
  const auto look = [&](const char* pass) {
    dump.write(pass, schedule);
    if (verifies_plans()) verify(schedule, pass);
  };
  look("list_tasks");
  for (const Pass& pass : kPasses) {
    schedule = pass.run(std::move(schedule));
    look(pass.name);
  }
  return emit(std::move(schedule));
}

const std::uint64_t* CompileRequest::random_runs(const RandomOp& op) const {
  return draw_in_iteration ? draw_in_iteration(op) : &op.runs;
}

}  // namespace syncline
