#include <gtest/gtest.h>

#include "syncline/data/open_source.h"
#include "tests/io/scratch.h"

namespace syncline::io {
namespace {

class Csv : public testing::Test {
 protected:
  std::unique_ptr<Source> open(const std::string& text, const CsvFormat& format = {}) {
    write_file(path_, text);
    SourceOptions options;
    options.csv = format;
    return open_source(path_, options);
  }
  std::vector<float> column(const std::string& text, const std::string& name, const CsvFormat& format = {}) {
    const auto source = open(text, format);
    for (std::size_t c = 0; c < source->columns().size(); ++c) {
      if (source->columns()[c].name != name) continue;
      const Array values = source->read_range(0, source->rows())[c];
      return {values.values<float>().begin(), values.values<float>().end()};
    }
    ADD_FAILURE() << "no column " << name;
    return {};
  }
  std::string refusal(const std::string& text, const CsvFormat& format = {}) {
    std::string message = message_of([&] {
      const auto source = open(text, format);
      source->read_range(0, source->rows());
    });
    EXPECT_CONTAINS(message, "data file '" + path_ + "'");
    EXPECT_ONE_LINE(message);
    return message;
  }

  Scratch scratch_;
  std::string path_ = scratch_.path("data.csv");
  using Floats = std::vector<float>;
};

TEST_F(Csv, ReadsNumbers) {
  const std::string text = "a,b\n1,2.5\n-3,+4e2\n 5 , 1e-3 \n";
  EXPECT_EQ(column(text, "a"), (Floats{1, -3, 5}));
  EXPECT_EQ(column(text, "b"), (Floats{2.5f, 400, 1e-3f}));
}

TEST_F(Csv, ReadsQuotesAndOtherDelimiters) {
  EXPECT_EQ(column("\"a, b\",\"say \"\"c\"\"\"\n\"1\",2\n", "say \"c\""), Floats{2});
  EXPECT_EQ(column("\"two\nlines\",b\n1,2\n3,4\n", "b"), (Floats{2, 4}));
  EXPECT_EQ(column("a\tb\n1\t2\n", "b", {.delimiter = '\t'}), Floats{2});
  EXPECT_EQ(column("1;2\n3;4\n", "1", {.delimiter = ';', .header = false}), (Floats{2, 4}));
}

TEST_F(Csv, ReadsTheLineEndsOfAllSystems) {
  EXPECT_EQ(column("a,b\r\n1,2\r\n3,4\r\n", "b"), (Floats{2, 4}));
  EXPECT_EQ(column("a,b\n1,2\n3,4", "b"), (Floats{2, 4}));
  EXPECT_EQ(column("\xef\xbb\xbf"
                   "a,b\n1,2\n\n  \n3,4\n\n",
                   "a"),
            (Floats{1, 3}));
}

TEST_F(Csv, PutsFieldsTogether) {
  const auto source = open("y,p0,p1,p2,z\n7,1,2,3,9\n8,4,5,6,9\n",
                           {.columns = {{"x", "p0", "p2", DType::kUint8}, {"y", "y", "", DType::kInt64}}});
  EXPECT_EQ(source->columns()[0].row, Shape{3});
  const std::vector<Array> rows = source->read_range(1, 2);
  EXPECT_EQ(rows[0].values<std::uint8_t>()[2], 6);
  EXPECT_EQ(rows[1].values<std::int64_t>()[0], 8);
}

TEST_F(Csv, ColumnsSelectAmongThoseOfTheFormat) {
  write_file(path_, "y,p0,p1\n7,1,2\n");
  SourceOptions options{.columns = {"x", "y"}};
  options.csv.columns = {{"y", "y", "", DType::kInt64}, {"x", "p0", "p1", DType::kUint8}};
  const auto source = open_source(path_, options);
  EXPECT_EQ(source->columns()[0].name, "x");
  EXPECT_EQ(source->read_range(0, 1)[1].values<std::int64_t>()[0], 7);
  options.columns = {"z"};
  EXPECT_CONTAINS(message_of<ValueError>([&] { open_source(path_, options); }), "csv.columns has no column 'z'");
}

// The file has more bytes than one scan reads at once, and the index has many groups.
TEST_F(Csv, FindsRowsOfALongFile) {
  std::string text = "\"a\nb\",c\n";
  for (int i = 0; i < 200000; ++i) text += std::to_string(i) + (i % 7 == 0 ? ",\"1\"\r\n" : ",1\n");
  const auto source = open(text);
  EXPECT_EQ(source->rows(), 200000);
  std::vector<std::int64_t> rows;
  for (std::int64_t i = 0; i < 1000; ++i) rows.push_back(i * 7919 % 200000);
  std::vector<Array> columns = source->make_room(1000);
  source->read(rows, columns);
  for (std::size_t i = 0; i < rows.size(); ++i) EXPECT_EQ(columns[0].data<float>()[i], static_cast<float>(rows[i]));
  EXPECT_CONTAINS(refusal(text + "x,1\n"), "line 200003: field 1");
}

TEST_F(Csv, SaysWhereANumberIsWrong) {
  EXPECT_CONTAINS(refusal("a,b\n1,2\n3,four\n"), "line 3: field 2 ('b') is 'four', not a finite float32");
  EXPECT_CONTAINS(refusal("a,b\n\"1\n\",2\n"), "line 2: field 1 ('a') is '1?'");
  for (const std::string text : {"nan", "NaN", "inf", "", "1e99", "1.5x", "0x10", "1 2"})
    EXPECT_CONTAINS(refusal("a,b\n1," + text + "\n"), "line 2: field 2 ('b') is '" + text + "'");
  const CsvFormat bytes{.columns = {{"a", "a", "", DType::kUint8}}};
  for (const std::string text : {"256", "-1", "1.0"})
    EXPECT_CONTAINS(refusal("a\n" + text + "\n", bytes), "is '" + text + "', not a finite uint8");
}

TEST_F(Csv, SaysWhereARowIsWrong) {
  EXPECT_CONTAINS(refusal("a,b\n1,2\n3\n"), "line 3: has 1 fields, but the file's first line has 2");
  EXPECT_CONTAINS(refusal("a,b\n1,2,\n"), "line 2: has 3 fields");
  EXPECT_CONTAINS(refusal("a,b\n1,\"2\n3,4\n"), "line 2: a quote is not closed");
  EXPECT_CONTAINS(refusal("a,b\n1,2\"3\"\n"), "line 2: byte ");
  EXPECT_CONTAINS(refusal("a,b\n1,2\r3,4\n"), "line 2: a carriage return without a line feed");
}

TEST_F(Csv, GoesOnBehindAnError) {
  const auto source = open("a\n1\n2\"\"\n3\n");
  std::vector<Array> columns = source->make_room(1);
  for (int i = 0; i < 2; ++i) {
    EXPECT_CONTAINS(message_of([&] { source->read_run(1, 1, columns, 0); }), "line 3");
    source->read_run(2, 1, columns, 0);
    EXPECT_EQ(columns[0].data<float>()[0], 3);
  }
}

TEST_F(Csv, RefusesWhatIsNoTable) {
  EXPECT_CONTAINS(refusal(""), "is empty");
  EXPECT_CONTAINS(refusal("\n \n"), "is empty");
  EXPECT_CONTAINS(refusal("a,b\n1,2\n", {.columns = {{"x", "c", "", DType::kFloat32}}}), "has no field 'c'");
  EXPECT_CONTAINS(message_of<ValueError>([&] {
                    open("a\n1\n", {.columns = {{"x", "a", "", DType::kBool}}});
                  }),
                  "bool is not read from text");
  EXPECT_CONTAINS(message_of<ValueError>([&] {
                    open("a,b\n", {.columns = {{"x", "b", "a", DType::kInt32}}});
                  }),
                  "field 'b' comes after 'a'");
  EXPECT_CONTAINS(refusal("a\1b\n1\n"), "is neither text nor");
  EXPECT_CONTAINS(refusal("a,b,a\n1,2,3\n"), "two fields have the name 'a'");
  EXPECT_EQ(open("a,b\n")->rows(), 0);
}

TEST_F(Csv, RefusesARecordWithoutEnd) {
  EXPECT_CONTAINS(refusal("a\n" + std::string((64u << 20) + 1, '1')), "line 2: a record has more than 67108864 bytes");
}

}  // namespace
}  // namespace syncline::io
