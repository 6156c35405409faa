// syncline doctor: the findings of each check, the diagnosis from several ranks' reports, and the command itself.
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "ops/kernels/instruction_sets.h"
#include "syncline/error.h"
#include "tests/tools/run.h"
#include "tools/doctor/checks.h"
#include "tools/doctor/report.h"

namespace syncline::tools {
namespace {

using Variables = std::map<std::string, std::string>;

comm::Getenv environment(const Variables& variables) {
  return [variables](const char* name) -> const char* {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  };
}

void expect_one(const Findings& found, Level level, const std::string& text, const std::string& advice) {
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].level, level) << found[0].text;
  EXPECT_CONTAINS(found[0].text, text);
  EXPECT_CONTAINS(found[0].advice, advice);
}

const Variables kSlurmOf8{{"SLURM_JOB_ID", "7"}, {"SLURM_NTASKS", "8"}};

Findings launched(const Variables& variables, int ranks) {
  comm::Launch launch;
  launch.size = ranks;
  if (ranks > 1) launch.launcher = "mpirun of Open MPI";
  return check_launch_environment(environment(variables), launch);
}

TEST(Doctor, RanksAgainstTasks) {
  expect_one(launched({}, 1), Level::kOk, "one process, started without a launcher", "");
  expect_one(launched(kSlurmOf8, 1), Level::kWarn, "one process, in a batch job of 8 tasks", "srun --mpi=pmix");
  expect_one(launched(kSlurmOf8, 4), Level::kWarn, "4 ranks, started by mpirun of Open MPI, in a batch job of 8 tasks",
             "ask for 4 tasks");
  expect_one(launched(kSlurmOf8, 8), Level::kOk, "8 ranks", "");
  const io::Scratch scratch;
  io::write_file(scratch.path("nodes"), "a\na\nb\n");
  expect_one(launched({{"PBS_NODEFILE", scratch.path("nodes")}}, 2), Level::kWarn, "in a batch job of 3 tasks",
             "2 tasks");
  expect_one(launched({{"PBS_NODEFILE", scratch.path("nodes")}}, 3), Level::kOk, "3 ranks", "");
}

TEST(Doctor, TimeOfTheJob) {
  Variables job{{"SLURM_JOB_ID", "7"}, {"SLURM_JOB_END_TIME", "10000"}, {"SLURM_RESTART_COUNT", "2"}};
  expect_one(check_scheduler(environment(job), 4000), Level::kOk, "Slurm job 7, 2 restarts, 100 min left", "");
  expect_one(check_scheduler(environment(job), 9700), Level::kWarn, "5 min left", "more time");
  expect_one(check_scheduler(environment({{"PBS_JOBID", "9.host"}}), 0), Level::kOk, "PBS job 9.host", "");
  expect_one(check_scheduler(environment({}), 0), Level::kOk, "none", "");
}

TEST(Doctor, ProcessorsOfARank) {
  expect_one(check_processors(environment({}), 8, 8, 8.0), Level::kOk, "processors 8 and threads 8 per rank", "");
  const Findings quota = check_processors(environment({}), 8, 8, 1.5);
  ASSERT_EQ(quota.size(), 2u);
  EXPECT_EQ(quota[1].text, "the control group allows 1.5 processors for 8 threads");
  // By default mpirun binds each of two ranks to one core.
  const Findings bound = check_processors(environment({{"SLURM_CPUS_PER_TASK", "8"}}), 1, 1, {});
  ASSERT_EQ(bound.size(), 2u);
  EXPECT_EQ(bound[1].level, Level::kWarn);
  EXPECT_CONTAINS(bound[1].text, "the task has 8 processors, but the rank may use 1");
  EXPECT_CONTAINS(bound[1].advice, "slot:PE=8");
}

TEST(Doctor, QuotaOfControlGroups) {
  const io::Scratch scratch;
  const auto group = [&](const std::string& name, const std::string& file, const std::string& text) {
    std::filesystem::create_directories(scratch.path(name));
    io::write_file(scratch.path(name + "/" + file), text);
  };
  group("job/step", "cpu.max", "max 100000\n");
  EXPECT_EQ(processor_quota("0::/job/step\n", scratch.directory()), std::nullopt);
  group("job", "cpu.max", "150000 100000\n");
  EXPECT_EQ(processor_quota("0::/job/step\n", scratch.directory()), 1.5);
  group("cpu,cpuacct/old", "cpu.cfs_quota_us", "50000\n");
  group("cpu,cpuacct/old", "cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(processor_quota("3:memory:/job\n2:cpu,cpuacct:/old\n", scratch.directory()), 0.5);
  group("cpu,cpuacct/old", "cpu.cfs_quota_us", "-1\n");
  EXPECT_EQ(processor_quota("2:cpu,cpuacct:/old\n", scratch.directory()), std::nullopt);
  EXPECT_EQ(processor_quota("nonsense\n\n", scratch.directory()), std::nullopt);
}

TEST(Doctor, SharedMemory) {
  expect_one(check_shared_memory("/", 2, std::int64_t{1} << 60), Level::kWarn, "ranks on the node 2", "enlarge it");
  expect_one(check_shared_memory("/", 1, std::int64_t{1} << 60), Level::kOk, "/ has ", "");
  expect_one(check_shared_memory("/no such folder", 2, 1), Level::kWarn, "cannot check /no such folder", "tmpfs");
}

TEST(Doctor, FolderOfCheckpoints) {
  const io::Scratch scratch;
  // A job creates its folder, but no parents.
  expect_one(check_folder(scratch.path("none/folder")), Level::kFail, "cannot be created", "create its parents");
  EXPECT_FALSE(std::filesystem::exists(scratch.path("none")));
  const Findings found = check_folder(scratch.path("folder"));
  ASSERT_EQ(found.size(), 2u);
  EXPECT_CONTAINS(found[0].text, "/folder' is on ");
  EXPECT_CONTAINS(found[1].text, "files are replaced durably");
  EXPECT_TRUE(std::filesystem::is_empty(scratch.path("folder")));
  io::write_file(scratch.path("file"), "");
  expect_one(check_folder(scratch.path("file/folder")), Level::kFail, "cannot be created", "another --folder");
  const Findings other = check_folder("/proc");
  EXPECT_EQ(other.back().level, Level::kFail);
  EXPECT_CONTAINS(other.back().text, "a file cannot be created in it");
}

TEST(Doctor, Versions) {
  std::string all;
  for (const Finding& finding : check_versions()) {
    EXPECT_EQ(finding.level, Level::kOk) << finding.text;
    all += finding.text + '\n';
  }
  for (const char* part : {"Syncline ", "Open MPI ", "HDF5 1.", "oneTBB 20", "OpenBLAS ", "instruction set "})
    EXPECT_CONTAINS(all, part);
}

TEST(Doctor, NamesNumbers) {
  EXPECT_EQ(name_numbers("rank", {3}), "rank 3");
  EXPECT_EQ(name_numbers("rank", {0, 1, 2, 5}), "ranks 0-2, 5");
  EXPECT_EQ(name_numbers("rank", {0, 2, 3}), "ranks 0, 2-3");
}

RankReport report(int rank, const std::string& host, std::vector<int> processors, const std::string& version = "1") {
  const auto threads = static_cast<int>(processors.size());
  return {rank, host, std::move(processors), threads, {{Level::kOk, "versions", "HDF5 " + version, ""}}};
}

const Diagnosis::Line& last_line(const Diagnosis& diagnosis) { return diagnosis.lines.back(); }

TEST(Doctor, ReportsTravelAsText) {
  RankReport sent = report(3, "a", {0, 5});
  sent.findings.push_back({Level::kFail, "folder", "no\nway \xff", "none"});
  const RankReport got = parse_report(to_text(sent));
  EXPECT_EQ(got.rank, 3);
  EXPECT_EQ(got.host, "a");
  EXPECT_EQ(got.processors, sent.processors);
  EXPECT_EQ(got.threads, 2);
  ASSERT_EQ(got.findings.size(), 2u);
  EXPECT_EQ(got.findings[0], sent.findings[0]);
  EXPECT_EQ(got.findings[1].level, Level::kFail);
}

TEST(Doctor, RanksThatShareProcessors) {
  // Ranks that are not bound: each starts a thread for every processor of the node.
  const std::vector unbound{report(0, "a", {0, 1, 2, 3}), report(1, "a", {0, 1, 2, 3}), report(2, "b", {0, 1})};
  const Diagnosis shared = diagnose(unbound);
  ASSERT_EQ(shared.lines.size(), 3u);
  EXPECT_EQ(shared.lines[1].finding.level, Level::kWarn);
  EXPECT_EQ(shared.lines[1].finding.text, "host a: ranks 2, threads 8, processors 4");
  EXPECT_CONTAINS(shared.lines[1].finding.advice, "slot:PE=2");
  EXPECT_EQ(shared.lines[2].finding.level, Level::kOk);
  EXPECT_CONTAINS(shared.text(), "ranks 0-1: host a");
  EXPECT_EQ(shared.worst(), Level::kWarn);
  const std::vector bound{report(0, "a", {0, 1}), report(1, "a", {2, 3})};
  EXPECT_EQ(diagnose(bound).worst(), Level::kOk);
  const std::vector crowded{report(0, "a", {0}), report(1, "a", {0})};
  EXPECT_CONTAINS(last_line(diagnose(crowded)).finding.advice, "fewer ranks");
}

TEST(Doctor, VersionsThatDiffer) {
  const std::vector reports{report(0, "a", {0}), report(1, "b", {0}, "2"), report(2, "a", {1})};
  const Diagnosis diagnosis = diagnose(reports);
  EXPECT_EQ(diagnosis.worst(), Level::kFail);
  EXPECT_CONTAINS(diagnosis.text(), "fail  versions       ranks 0, 2: HDF5 1\n");
  EXPECT_CONTAINS(diagnosis.text(), "fail  versions       rank 1: HDF5 2\n");
  EXPECT_CONTAINS(diagnosis.text(), "failures: 2, warnings: 0\n");
}

RankReport report_of_set(int rank, const std::string& set, bool common) {
  RankReport made = report(rank, "a", {rank});
  made.findings.push_back({Level::kOk, "instructions", "instruction set " + set, ""});
  made.common_simd = common;
  return made;
}

TEST(Doctor, InstructionSetsThatDiffer) {
  const std::vector reports{report_of_set(0, "AVX3", false), report_of_set(1, "AVX2", false)};
  const Diagnosis diagnosis = diagnose(reports);
  EXPECT_EQ(diagnosis.worst(), Level::kFail);
  EXPECT_CONTAINS(diagnosis.text(), "fail  instructions   rank 1: instruction set AVX2\n");
  EXPECT_CONTAINS(diagnosis.text(), "-> start all ranks on processors of one kind, or set SYNCLINE_SIMD=common\n");
  const std::vector common{report_of_set(0, "AVX3", false), parse_report(to_text(report_of_set(1, "AVX2", true)))};
  EXPECT_EQ(diagnose(common).worst(), Level::kOk) << diagnose(common).text();
}

TEST(Doctor, OpenBlasThatDiffers) {
  const auto text_of = [](const char* words, Level level, const char* advice) {
    std::vector reports{report(0, "a", {0}), report(1, "a", {1})};
    for (RankReport& made : reports) made.findings.push_back({level, "versions", join_text(words, made.rank), advice});
    return diagnose(reports).text();
  };
  EXPECT_CONTAINS(text_of("OpenBLAS's kernels for ", Level::kOk, ""), "or set OPENBLAS_CORETYPE on all ranks");
  EXPECT_CONTAINS(text_of("OpenBLAS 0.3.", Level::kOk, ""), "start all ranks with the same program, libraries");
  EXPECT_CONTAINS(text_of("OpenBLAS 0.3.", Level::kFail, "install another"), "-> install another");
}

TEST(Doctor, PartsOfABatch) {
  EXPECT_TRUE(check_parts(0, 5).empty());
  EXPECT_EQ(
      check_parts(8, 2).front(),
      (Finding{Level::kOk, "parts", "8 parts of a batch (SYNCLINE_PARTS), 4 a rank: equal bits on 1 to 8 ranks", ""}));
  const Finding uneven = check_parts(8, 3).front(), few = check_parts(8, 9).front();
  EXPECT_EQ(uneven.level, Level::kWarn);
  EXPECT_CONTAINS(uneven.text, "up to 4 a rank: 3 ranks are no faster than 2");
  EXPECT_EQ(uneven.advice, "use 2 ranks, or 4");
  EXPECT_EQ(few.level, Level::kFail);
  EXPECT_EQ(few.advice, "set SYNCLINE_PARTS=16");
}

TEST(DoctorCommand, ShowsTheInstructionSetInUse) {
  const std::string baseline = kernels::instruction_sets().back().name;
  const io::Outcome limited = io::run_shell("SYNCLINE_SIMD=baseline " SYNCLINE_PROGRAM " doctor");
  EXPECT_EQ(limited.status, 0) << limited.output;
  EXPECT_CONTAINS(limited.output, "instruction set " + baseline + "\n");
  const io::Outcome common = io::run_shell("SYNCLINE_SIMD=common " SYNCLINE_PROGRAM " doctor");
  EXPECT_CONTAINS(common.output, ", or the widest that all ranks have (SYNCLINE_SIMD=common)\n");
}

TEST(DoctorCommand, ExaminesOneProcess) {
  const io::Scratch scratch;
  const io::Outcome outcome = run("doctor --json --folder " + scratch.path("checkpoints"));
  EXPECT_EQ(outcome.status, 0) << outcome.output;
  const auto json = nlohmann::json::parse(outcome.output);
  EXPECT_EQ(json.at("ranks"), 1);
  std::string about;
  for (const auto& finding : json.at("findings")) about += finding.at("about").get<std::string>() + ' ';
  for (const char* part : {"launch", "scheduler", "processors", "shared memory", "folder", "limits", "versions",
                           "keras.json", "GPUs", "transport"})
    EXPECT_CONTAINS(about, part);
}

TEST(DoctorCommand, FailsWhereATrainingWould) {
  const std::string program = SYNCLINE_PROGRAM;
  const io::Outcome without_pmi = io::run_shell("SLURM_STEP_NUM_TASKS=2 SLURM_PROCID=0 " + program + " doctor");
  EXPECT_EQ(without_pmi.status, 1) << without_pmi.output;
  EXPECT_CONTAINS(without_pmi.output, "fail  launch         2 ranks, started by srun without PMI");
  // The launcher of another MPI: Open MPI sees each of the two processes as a job of one rank.
  const io::Outcome lonely = io::run_shell("PMI_SIZE=2 PMI_RANK=0 " + program + " doctor");
  EXPECT_EQ(lonely.status, 1) << lonely.output;
  EXPECT_CONTAINS(lonely.output, "fail  transport");
  EXPECT_CONTAINS(lonely.output, "a PMI launcher started 2 ranks, but each is alone in MPI");
  const io::Outcome mixed = io::run_shell("PMI_RANK=3 PMI_SIZE=2 " + program + " doctor");
  EXPECT_EQ(mixed.status, 1) << mixed.output;
  EXPECT_CONTAINS(mixed.output, "fail  launch");
  const io::Outcome wrong = io::run_shell("SYNCLINE_BUCKET=many " + program + " doctor");
  EXPECT_EQ(wrong.status, 1) << wrong.output;
  EXPECT_CONTAINS(wrong.output, "fail  keras.json     environment: SYNCLINE_BUCKET is 'many'");
  EXPECT_CONTAINS(wrong.output, "ok    transport");
  const io::Outcome refused = io::run_shell("SYNCLINE_PARTS=8 SYNCLINE_WIRE_FORMAT=bfloat16 " + program + " doctor");
  EXPECT_EQ(refused.status, 1) << refused.output;
  EXPECT_CONTAINS(refused.output,
                  "SYNCLINE_PARTS is 8, but with a 16-bit wire format sums depend on the number of ranks");
  const io::Outcome split =
      io::run_shell("SYNCLINE_OPTIMIZER_STATE=split SYNCLINE_TRANSPORT=nccl " + program + " doctor");
  EXPECT_EQ(split.status, 1) << split.output;
  EXPECT_CONTAINS(split.output, "optimizer_state is split, but with the transport nccl each rank keeps all variables");
  const io::Outcome negative = run("doctor --threads -1");
  EXPECT_EQ(negative.status, 2);
  EXPECT_CONTAINS(negative.output, "-1 is not a number that is 0 or more");
}

TEST(DoctorCommand, WarnsOfLimits) {
  const io::Outcome outcome =
      io::run_shell("ulimit -f 1000; ulimit -n 100; " + std::string(SYNCLINE_PROGRAM) + " doctor");
  EXPECT_EQ(outcome.status, 0) << outcome.output;
  EXPECT_CONTAINS(outcome.output, "warn  limits         RLIMIT_FSIZE is ");
  EXPECT_CONTAINS(outcome.output, "warn  limits         RLIMIT_NOFILE allows 100 open files");
}

}  // namespace
}  // namespace syncline::tools
