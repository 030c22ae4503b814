// Owns: the one list of schemas of the JSON-Schema-Test-Suite of which the proxy finds something else than the suite means, each
// with its reason.
// Does not own: what the suite means (lib/schema-suite.mjs); a listed schema of which just that is found fails the run.

/** Run -> tool -> {found, why}: `found` is what is found of it instead, as the run has it. */
export const DEVIATIONS = {};
