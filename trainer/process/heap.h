// How this process's heap treats what is freed.
#pragma once

namespace tj::trainer {

/// Each step asks for the same large blocks again. As the allocator comes they go back to the
/// kernel each time, which then fills them with zeros page by page: nearly half of the time of a
/// small model. From here on they are kept.
void keep_freed_memory();

}  // namespace tj::trainer
