// Nothing of its own: the tests share its precompiled header.
