// Owns: the line by which the client under test says that it came to its end without an error; the suite does not write
// down the exit code.
// Does not own: who writes and who reads it.

export const DONE = 'the client came to its end';
