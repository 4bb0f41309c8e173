# Prints the first block of C++ of a Markdown page.
/^```cpp$/ && !done { inside = 1; next }
/^```$/ && inside { inside = 0; done = 1 }
inside
