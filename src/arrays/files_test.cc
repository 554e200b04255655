// The laws of files: what is written is read, equal to the bit; what is malformed is an error that names it.

#include "arrays/files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>

#include <cstring>
#include <filesystem>
#include <random>

#include "arrays/npy.h"
#include "arrays/npz.h"
#include "arrays/zip.h"

namespace hloom::arrays {
namespace {

using testing::HasSubstr;

class Folder : public testing::Test {
 protected:
  Folder() : path_(testing::TempDir() + "hloom_arrays_" + std::to_string(getpid())) {
    std::filesystem::create_directories(path_);
  }
  ~Folder() override { std::filesystem::remove_all(path_); }
  std::string at(const std::string& name) const { return path_ + "/" + name; }
  std::size_t num_files() const {
    return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(path_), {}));
  }

 private:
  std::string path_;
};

using Files = Folder;
using NpyFiles = Folder;
using NpzFiles = Folder;

constexpr DType kTypes[] = {DType::Pred, DType::S8,  DType::S16, DType::S32, DType::S64, DType::U8,  DType::U16,
                            DType::U32,  DType::U64, DType::F16, DType::F32, DType::F64, DType::C64, DType::C128};

Array random_array(DType type, std::vector<std::int64_t> dims, std::mt19937& random) {
  Array array{type, std::move(dims), {}};
  std::int64_t n = byte_width(type);
  for (const std::int64_t d : array.dims) n *= d;
  for (std::int64_t i = 0; i < n; ++i)
    array.bytes.push_back(static_cast<std::byte>(type == DType::Pred ? random() & 1 : random()));
  return array;
}

std::vector<std::byte> bytes_of(const std::string& text) {
  const auto* bytes = reinterpret_cast<const std::byte*>(text.data());
  return {bytes, bytes + text.size()};
}

// An .npy file of version 1 with this header and these bytes of elements.
std::vector<std::byte> npy(const std::string& header, const std::string& data) {
  std::string file("\x93NUMPY\x01\x00", 8);
  file += static_cast<char>(header.size() & 0xFF);
  file += static_cast<char>(header.size() >> 8);
  return bytes_of(file + header + data);
}

std::string error_of(const Expected<Array>& array) { return array ? "no error" : array.error().message(); }

TEST_F(NpyFiles, AreReadAsTheyWereWritten) {
  std::mt19937 random(1);
  for (const DType type : kTypes)
    for (const std::vector<std::int64_t>& dims :
         {std::vector<std::int64_t>{}, {0}, {5}, {2, 3}, {3, 0, 2}, {1, 2, 3, 4}}) {
      const Array array = random_array(type, dims, random);
      ASSERT_TRUE(write_npy(at("x.npy"), array));
      const auto read = read_npy(at("x.npy"));
      ASSERT_TRUE(read) << read.error().message();
      EXPECT_EQ(*read, array);
      EXPECT_EQ(npy_header(array).size() % 64, 0u);
    }
}

TEST(Npy, KnowsOtherOrders) {
  const std::string big = "{'descr': '>u2', 'fortran_order': False, 'shape': (2,), }";
  EXPECT_EQ(parse_npy(npy(big, std::string("\x01\x02\x03\x04", 4)), "x")->bytes,
            bytes_of(std::string("\x02\x01\x04\x03", 4)));
  const std::string columns = "{'descr': '|u1', 'fortran_order': True, 'shape': (2, 3), }";
  EXPECT_EQ(parse_npy(npy(columns, "abcdef"), "x")->bytes, bytes_of("acebdf"));
  const std::string big_complex = "{'descr': '>c8', 'fortran_order': False, 'shape': (), }";
  EXPECT_EQ(parse_npy(npy(big_complex, "abcdefgh"), "x")->bytes, bytes_of("dcbahgfe"));
  const std::string raw = "{'descr': '|V2', 'fortran_order': False, 'shape': (1,)}\n";
  EXPECT_EQ(parse_npy(npy(raw, "ab"), "x")->type, DType::U16);
}

TEST(Npy, RefusesWhatIsMalformed) {
  const auto error = [](const std::string& header, const std::string& data) {
    return error_of(parse_npy(npy(header, data), "x"));
  };
  EXPECT_THAT(error_of(parse_npy(bytes_of("hello"), "x")), HasSubstr("x: is no .npy file"));
  EXPECT_THAT(error_of(parse_npy(bytes_of(std::string("\x93NUMPY\x01\x00\xFF\xFF", 10)), "x")),
              HasSubstr("ends within"));
  EXPECT_THAT(error_of(parse_npy(bytes_of(std::string("\x93NUMPY\x09\x00\x00\x00", 10)), "x")), HasSubstr("version 9"));
  EXPECT_THAT(error("{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }", "abc"), HasSubstr("holds 3 bytes"));
  EXPECT_THAT(error("{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904, 4), }", ""),
              HasSubstr("holds 0"));
  EXPECT_THAT(error("{'descr': '<f8', 'fortran_order': False, 'shape': (2305843009213693952,), }", ""),
              HasSubstr("holds 0"));
  EXPECT_THAT(error("{'descr': '<M8[ns]', 'fortran_order': False, 'shape': (), }", ""),
              HasSubstr("numpy type <M8[ns]"));
  EXPECT_THAT(error("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (), }", ""), HasSubstr("cannot read"));
  EXPECT_THAT(error("{'descr': '<f4', 'shape': (), }", ""), HasSubstr("cannot read"));
  EXPECT_THAT(error("{'descr': '<f4', 'fortran_order': False, 'shape': (-1,), }", ""), HasSubstr("cannot read"));
}

// No cut of a file, and no byte of its header set to another, does more than give an error or another array.
TEST(Npy, SurvivesDamage) {
  std::mt19937 random(2);
  const Array array = random_array(DType::F32, {2, 3}, random);
  std::vector<std::byte> file = npy_header(array);
  file.insert(file.end(), array.bytes.begin(), array.bytes.end());
  for (std::size_t cut = 0; cut < file.size(); ++cut) EXPECT_FALSE(parse_npy(std::span(file).first(cut), "x")) << cut;
  for (int trial = 0; trial < 5000; ++trial) {
    std::vector<std::byte> damaged = file;
    damaged[random() % npy_header(array).size()] = static_cast<std::byte>(random());
    const auto read = parse_npy(damaged, "x");
    if (read) {
      EXPECT_EQ(read->bytes.size(), array.bytes.size());
    }
  }
}

Npz sample(std::mt19937& random) {
  Npz npz;
  int i = 0;
  for (const DType type : kTypes) {
    npz.add("arg" + std::to_string(i), random_array(type, {3, i}, random));
    ++i;
  }
  npz.add("empty", random_array(DType::F32, {0, 4}, random));
  return npz;
}

void expect_equal(const Npz& a, const Npz& b) {
  ASSERT_EQ(a.names(), b.names());
  for (const std::string& name : a.names()) EXPECT_EQ(*a.find(name), *b.find(name)) << name;
}

TEST_F(NpzFiles, AreReadAsTheyWereWritten) {
  std::mt19937 random(3);
  const Npz npz = sample(random);
  for (const Packing packing : {Packing::Stored, Packing::Deflated}) {
    ASSERT_TRUE(write_npz(at("x.npz"), npz, packing));
    const auto read = read_npz(at("x.npz"));
    ASSERT_TRUE(read) << read.error().message();
    expect_equal(*read, npz);
    EXPECT_EQ(num_files(), 1u);
  }
}

TEST_F(NpzFiles, OfMoreEntriesThanFitTheOldForm) {
  Npz npz;
  for (int i = 0; i < 66000; ++i) npz.add("a" + std::to_string(i), Array{DType::U8, {}, {static_cast<std::byte>(i)}});
  ASSERT_TRUE(write_npz(at("x.npz"), npz));
  const auto read = read_npz(at("x.npz"));
  ASSERT_TRUE(read) << read.error().message();
  EXPECT_EQ(read->names().size(), 66000u);
  EXPECT_EQ(read->find("a65999")->bytes[0], static_cast<std::byte>(65999 % 256));
}

TEST_F(NpzFiles, InTheWideFormForSizesAndOffsets) {
  const std::string content = "some bytes, as many as need be";
  const std::vector<std::byte> bytes = bytes_of(content);
  auto file = OutputFile::create(at("x.zip"));
  ASSERT_TRUE(file);
  ZipWriter zip(*file, /*wide_from=*/8);
  const std::span<const std::byte> parts[] = {bytes};
  for (const char* name : {"a", "b"}) ASSERT_TRUE(zip.add(name, parts, /*deflate=*/false));
  ASSERT_TRUE(zip.finish());
  ASSERT_TRUE(file->commit());
  const auto archive = read_file(at("x.zip"));
  const auto entries = zip_entries(*archive, "x.zip");
  ASSERT_TRUE(entries) << entries.error().message();
  ASSERT_EQ(entries->size(), 2u);
  for (const ZipEntry& entry : *entries) EXPECT_EQ(*unzip(entry, "x.zip"), bytes);
}

TEST_F(NpzFiles, ThatAreDamagedAreErrorsThatNameThem) {
  std::mt19937 random(4);
  ASSERT_TRUE(write_npz(at("x.npz"), sample(random), Packing::Deflated));
  const std::vector<std::byte> file = *read_file(at("x.npz"));
  for (std::size_t cut = 0; cut < file.size(); cut += 7)
    EXPECT_FALSE(parse_npz(std::span(file).first(cut), "x.npz")) << cut;
  for (int trial = 0; trial < 3000; ++trial) {
    std::vector<std::byte> damaged = file;
    damaged[random() % file.size()] ^= static_cast<std::byte>(1 + random() % 255);
    const auto read = parse_npz(damaged, "x.npz");
    if (!read) {
      EXPECT_THAT(read.error().message(), HasSubstr("x.npz"));
    }
  }
  EXPECT_THAT(parse_npz(bytes_of("PK"), "x.npz").error().message(), HasSubstr("x.npz: is no ZIP archive"));
}

TEST_F(Files, AppearWholeOrNotAtAll) {
  {
    auto file = OutputFile::create(at("x"));
    ASSERT_TRUE(file);
    ASSERT_TRUE(file->write(bytes_of("half")));
  }
  EXPECT_EQ(num_files(), 0u);
  EXPECT_EQ(read_file(at("x")).error().code(), Code::NotFound);
  EXPECT_EQ(OutputFile::create(at("none/x")).error().code(), Code::NotFound);
}

// A limit on the size of files stands for a full disk.
TEST_F(Files, SayWhenThereIsNoRoom) {
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  signal(SIGXFSZ, SIG_IGN);
  const rlimit tight{1000, before.rlim_max};
  setrlimit(RLIMIT_FSIZE, &tight);
  std::mt19937 random(5);
  const auto written = write_npy(at("x.npy"), random_array(DType::F64, {1000}, random));
  setrlimit(RLIMIT_FSIZE, &before);
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().code(), Code::ResourceExhausted);
  EXPECT_EQ(num_files(), 0u);
}

TEST_F(Files, KeepLinksAndSpecialFiles) {
  ASSERT_TRUE(write_npy(at("real.npy"), Array{DType::U8, {}, {std::byte{1}}}));
  std::filesystem::create_symlink(at("real.npy"), at("link.npy"));
  ASSERT_TRUE(write_npy(at("link.npy"), Array{DType::U8, {}, {std::byte{2}}}));
  EXPECT_TRUE(std::filesystem::is_symlink(at("link.npy")));
  EXPECT_EQ(read_npy(at("real.npy"))->bytes[0], std::byte{2});
  EXPECT_TRUE(write_npy("/dev/null", Array{DType::U8, {}, {std::byte{3}}}));
  EXPECT_FALSE(std::filesystem::is_regular_file("/dev/null"));
}

}  // namespace
}  // namespace hloom::arrays
