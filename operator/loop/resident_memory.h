// Keeps what is resident near what is in use.
#pragma once

namespace tj {

/// To be called before there is a second thread.
void set_up_heap();

/// Free pages of the heap, wherever they lie. By itself the library gives back only its end.
void trim_heap();

/// Pages of programs and libraries that have been read and not written: what the dynamic linker and
/// the libraries' own start have touched, 8 of 14 MB, is not needed again. What is, the kernel maps
/// again from its page cache at the next touch.
void drop_clean_file_pages();

}  // namespace tj
