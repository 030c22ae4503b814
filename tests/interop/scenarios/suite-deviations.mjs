// Owns: the one list of schemas and values of the JSON-Schema-Test-Suite of which the proxy finds something else than the suite
// means, each with its reason.
// Does not own: what the suite means (lib/schema-suite.mjs); a listed one of which just that is found fails the run.

const METASCHEMA = {
  found: [],
  why: 'the published meta-schemas are known to every validator, so references to them pass; what lies in them is not looked into',
};

const OWN_DIALECT = { why: 'its meta-schema is none of the published ones, so values are not checked against it' };

/**
 * Run -> tool -> {found, why}: `found` is what is found of it instead, as the run has it. Of values as results the name is the
 * tool's and the value's, and it is the other way round with the value.
 */
export const DEVIATIONS = {
  'a reference to nowhere': {
    'draft4.definitions.0': METASCHEMA,
    'draft4.ref.7': METASCHEMA,
    'draft6.definitions.0': METASCHEMA,
    'draft6.ref.7': METASCHEMA,
    'draft7.definitions.0': METASCHEMA,
    'draft7.ref.7': METASCHEMA,
    'draft2019-09.defs.0': METASCHEMA,
    'draft2019-09.ref.6': METASCHEMA,
    'draft2020-12.defs.0': METASCHEMA,
    'draft2020-12.ref.6': METASCHEMA,
  },
  'values as results': {
    'draft2019-09.vocabulary.0.0': OWN_DIALECT,
    'draft2019-09.vocabulary.1.0': OWN_DIALECT,
    'draft2020-12.vocabulary.0.0': OWN_DIALECT,
    'draft2020-12.vocabulary.1.0': OWN_DIALECT,
  },
};
