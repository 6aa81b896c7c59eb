package lint

// Run is run, for tests of a file that has been read.
var Run = run

// Thin is thin.
const Thin = thin
