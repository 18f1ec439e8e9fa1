// Nothing of its own: targets share its precompiled header.
