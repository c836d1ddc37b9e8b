#pragma once
// One file of a model into the cache: begun where an earlier try ended, held
// against its checksum, and only then given the name under which it is found.
#include <cstdint>
#include <functional>
#include <string>

#include "hearth/hub/cache.h"
#include "hearth/hub/hub_client.h"

namespace hearth::hub {

struct DownloadNotes {
  // Bytes of the file that are there, whoever fetched them.
  std::function<void(std::uint64_t there)> advanced = [](auto) {};
  RetryNote retrying = [](const auto&, auto) {};
  // Called again and again while another process fetches the same file.
  std::function<void()> waiting = [] {};
};

// file has its size and oid. Returns the bytes that came over the network: 0
// when the blob was there, or came by another process. Throws Error when what
// comes is not what the listing says; nothing is in place then.
std::uint64_t download_blob(
    const HubClient& hub,
    const RepoCache& cache,
    const RepoName& repo,
    const std::string& commit,
    const RemoteFile& file,
    const DownloadNotes& notes
);

}  // namespace hearth::hub
