#include "runtime/schedule/arena.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "base/alignment.h"

namespace syncline {
namespace {

bool lives_overlap(const Lifetime& a, const Lifetime& b) { return a.first <= b.last && b.first <= a.last; }

bool bytes_overlap(const Lifetime& a, std::size_t a_bytes, const Lifetime& b, std::size_t b_bytes) {
  return a.offset < b.offset + b_bytes && b.offset < a.offset + a_bytes;
}

// The most bytes that are alive at once: a lower bound for the arena.
std::size_t most_alive(const std::vector<Lifetime>& lives) {
  std::size_t most = 0;
  for (const Lifetime& at : lives) {
    std::size_t alive = 0;
    for (const Lifetime& l : lives)
      if (l.first <= at.first && at.first <= l.last) alive += (l.bytes + 63) / 64 * 64;
    most = std::max(most, alive);
  }
  return most;
}

// The expected offsets: largest first, each in the lowest gap between the buffers that are alive at the same time.
std::vector<std::size_t> lowest_gaps(std::vector<Lifetime> lives) {
  std::vector<std::size_t> order(lives.size()), offsets(lives.size(), 0);
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return lives[a].bytes > lives[b].bytes; });
  std::vector<std::size_t> placed;
  for (const std::size_t i : order) {
    lives[i].bytes = aligned(lives[i].bytes);
    if (lives[i].bytes == 0) continue;
    for (bool moved = true; moved;) {
      moved = false;
      for (const std::size_t j : placed)
        if (lives_overlap(lives[i], lives[j]) && bytes_overlap(lives[i], lives[i].bytes, lives[j], lives[j].bytes)) {
          lives[i].offset = lives[j].offset + lives[j].bytes;
          moved = true;
        }
    }
    placed.push_back(i);
    offsets[i] = lives[i].offset;
  }
  return offsets;
}

TEST(PlaceInArena, ShortLivesAndLongOnes) {
  std::mt19937 random(8);
  for (int round = 0; round < 60; ++round) {
    std::vector<Lifetime> lives(200);
    for (Lifetime& l : lives) {
      l.bytes = 64 * (random() % 9);
      l.first = static_cast<int>(random() % 900);
      l.last = l.first + static_cast<int>(random() % (random() % 4 == 0 ? 900 : 30));
    }
    const std::vector<std::size_t> wanted = lowest_gaps(lives);
    place_in_arena(lives);
    for (std::size_t i = 0; i < lives.size(); ++i) ASSERT_EQ(lives[i].offset, wanted[i]) << round << " " << i;
  }
}

TEST(PlaceInArena, LivesThatOverlapShareNoByte) {
  std::mt19937 random(7);
  for (int round = 0; round < 300; ++round) {
    std::vector<Lifetime> lives(random() % 40);
    for (Lifetime& l : lives) {
      l.bytes = random() % 4 == 0 ? random() % 3 : random() % 1000;
      l.first = static_cast<int>(random() % 20);
      l.last = l.first + static_cast<int>(random() % 6);
    }
    const std::vector<Lifetime> asked = lives;
    const std::size_t total = place_in_arena(lives);
    ASSERT_GE(total, most_alive(asked));
    for (std::size_t i = 0; i < lives.size(); ++i) {
      ASSERT_EQ(lives[i].offset % 64, 0u);
      ASSERT_LE(lives[i].offset + asked[i].bytes, total);
      for (std::size_t j = 0; j < i; ++j) {
        if (!lives_overlap(asked[i], asked[j])) continue;
        ASSERT_FALSE(bytes_overlap(lives[i], asked[i].bytes, lives[j], asked[j].bytes))
            << "round " << round << ": [" << asked[i].first << ", " << asked[i].last << "] and [" << asked[j].first
            << ", " << asked[j].last << "]";
      }
    }
  }
}

TEST(PlaceInArena, MemoryIsUsedAgain) {
  std::vector<Lifetime> chain;
  for (int t = 0; t < 100; ++t) chain.push_back({.bytes = 640, .first = t, .last = t + 1});
  EXPECT_EQ(place_in_arena(chain), 2 * 640u);
}

TEST(PlaceInArena, ALifeThatEndsWhereAnotherBeginsStaysApart) {
  std::vector<Lifetime> lives{{.bytes = 64, .first = 0, .last = 3}, {.bytes = 64, .first = 3, .last = 4}};
  EXPECT_EQ(place_in_arena(lives), 128u);
  EXPECT_NE(lives[0].offset, lives[1].offset);
}

TEST(PlaceInArena, NothingNeedsNothing) {
  std::vector<Lifetime> none;
  EXPECT_EQ(place_in_arena(none), 0u);
  std::vector<Lifetime> empty(3, Lifetime{.bytes = 0, .first = 0, .last = 9});
  EXPECT_EQ(place_in_arena(empty), 0u);
  std::vector<Lifetime> mixed{{.bytes = 0, .first = 0, .last = 9}, {.bytes = 1, .first = 0, .last = 9}};
  EXPECT_EQ(place_in_arena(mixed), 64u);
}

TEST(PlaceInArena, ASmallOneGoesIntoAGap) {
  // The large buffers are placed first; the small one fits between the lifetimes of two of them.
  std::vector<Lifetime> lives{{.bytes = 1024, .first = 0, .last = 9},
                              {.bytes = 512, .first = 0, .last = 2},
                              {.bytes = 512, .first = 4, .last = 9},
                              {.bytes = 64, .first = 3, .last = 3}};
  EXPECT_EQ(place_in_arena(lives), 1536u);
}

}  // namespace
}  // namespace syncline
