#include "runtime/passes/compile.h"

#include <array>

#include "ops/random.h"
#include "runtime/passes/passes.h"
#include "runtime/schedule/dump.h"

namespace syncline {
namespace {

struct Pass {
  const char* name;
  Schedule (*run)(Schedule);
};

constexpr std::array kPasses{
    Pass{"fuse", fuse},
    Pass{"order", order},
    Pass{"bucket", bucket},
    Pass{"wait", wait},
    Pass{"join_outputs", join_outputs},
    Pass{"fold_products", fold_products},
    Pass{"compile_bodies", compile_bodies},
    Pass{"commit", commit},
    Pass{"assign_memory", assign_memory},
    Pass{"make_programs", make_programs},
    Pass{"lease", lease},
    Pass{"lay_out_memory", lay_out_memory},
};

}  // namespace

Plan compile(CompileRequest request) {
  Schedule schedule = list_tasks(place(std::move(request)));
  Dump dump(schedule);
  dump.write("list_tasks", schedule);
  verify(schedule, "list_tasks");
  for (const Pass& pass : kPasses) {
    schedule = pass.run(std::move(schedule));
    dump.write(pass.name, schedule);
    verify(schedule, pass.name);
  }
  return emit(std::move(schedule));
}

const std::uint64_t* CompileRequest::random_step(const RandomOp& op) const {
  return draw_in_iteration ? draw_in_iteration(op) : &op.runs;
}

}  // namespace syncline
