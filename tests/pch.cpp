// Nothing: CMake asks for a source in the target that makes a precompiled header for others.
