// Owns: judging one JSON-RPC message against the official schema of its receiver's revision, and finding words of the
// other era in it.
// Does not own: where the schemas come from (official-schema.mjs) or which messages are judged (wire-check.mjs).

import { createRequire } from 'node:module';
import { join } from 'node:path';

import { loadOfficialSchemas } from './official-schema.mjs';

const META_PREFIX = 'io.modelcontextprotocol/';

/** `_meta` keys that only 2026-07-28 gives a meaning; a legacy peer must never see them. */
const MODERN_META = ['protocolVersion', 'clientInfo', 'clientCapabilities', 'logLevel', 'subscriptionId', 'serverInfo'];

/** Members of params or result that only one era knows. */
const MODERN_MEMBERS = ['resultType', 'ttlMs', 'cacheScope', 'inputRequests', 'inputResponses', 'requestState'];
const LEGACY_META = ['related-task'];

/** Results whose definition is not named after the request's definition. */
const EMPTY_RESULTS = ['ping', 'logging/setLevel', 'resources/subscribe', 'resources/unsubscribe'];

export function createWireSchema(nodeModules) {
  const require = createRequire(join(nodeModules, '@modelcontextprotocol/conformance/package.json'));
  const { Ajv2020 } = require('ajv/dist/2020.js');
  const addFormats = require('ajv-formats').default;
  const revisions = new Map();
  for (const [revision, document] of Object.entries(loadOfficialSchemas(nodeModules))) {
    const ajv = new Ajv2020({ strict: false, allErrors: true });
    addFormats(ajv);
    ajv.addFormat('byte', (text) => /^[A-Za-z0-9+/]*={0,2}$/.test(text));
    ajv.addSchema(withoutKnownFaults(document), revision);
    revisions.set(revision, { ajv, ...methodTables(document.$defs) });
  }

  return {
    /** Findings as text, empty when the message is right. `requestMethod` is what a response answers. */
    findings(revision, message, requestMethod) {
      const schema = revisions.get(revision);
      if (schema === undefined) return [`no official schema of revision ${revision} to judge with`];
      const definitions = definitionsFor(schema, message, requestMethod);
      return [
        ...definitions.flatMap(({ name, value }) => schemaErrors(schema.ajv, revision, name, value)),
        ...foreignWords(revision, message),
      ];
    },
  };
}

/**
 * The dated schemas say `integer` where schema.ts says `number`: the bounds and default of NumberSchema and the
 * content of ElicitResult. Everything else is judged as published.
 */
function withoutKnownFaults(document) {
  const patched = structuredClone(document);
  const number = patched.$defs.NumberSchema?.properties ?? {};
  for (const member of ['minimum', 'maximum', 'default']) {
    if (number[member]?.type === 'integer') number[member].type = 'number';
  }
  const content = patched.$defs.ElicitResult?.properties?.content?.additionalProperties;
  for (const part of content?.anyOf ?? [content]) {
    if (Array.isArray(part?.type)) part.type = part.type.map((type) => (type === 'integer' ? 'number' : type));
  }
  return patched;
}

function methodTables(defs) {
  const requests = new Map();
  const notifications = new Map();
  for (const [name, definition] of Object.entries(defs)) {
    const method = definition.properties?.method?.const;
    if (method === undefined) continue;
    if (name.endsWith('Request')) requests.set(method, name);
    else if (name.endsWith('Notification')) notifications.set(method, name);
  }
  const results = new Map();
  for (const [method, name] of requests) {
    const result = EMPTY_RESULTS.includes(method) ? 'EmptyResult' : name.replace(/Request$/, 'Result');
    if (result in defs) results.set(method, result);
  }
  const errors = new Map();
  for (const [name, definition] of Object.entries(defs)) {
    const inError = codeConst(definition);
    const inResponse = codeConst(definition.properties?.error ?? {});
    if (inError !== undefined) errors.set(inError, { name, value: (message) => message.error });
    if (inResponse !== undefined) errors.set(inResponse, { name, value: (message) => message });
  }
  return { requests, notifications, results, errors };
}

/** The `const` that the definition of an error object gives its `code`. */
function codeConst(definition) {
  for (const part of [definition, ...(definition.allOf ?? [])]) {
    if (part.properties?.code?.const !== undefined) return part.properties.code.const;
  }
  return undefined;
}

function definitionsFor(schema, message, requestMethod) {
  if (message === null || typeof message !== 'object' || Array.isArray(message)) {
    return [{ name: 'JSONRPCMessage', value: message }];
  }
  if ('method' in message) {
    const isRequest = 'id' in message;
    const typed = (isRequest ? schema.requests : schema.notifications).get(message.method);
    const envelope = { name: isRequest ? 'JSONRPCRequest' : 'JSONRPCNotification', value: message };
    return typed === undefined ? [envelope] : [envelope, { name: typed, value: message }];
  }
  if ('error' in message) {
    const typed = schema.errors.get(message.error?.code);
    const envelope = { name: 'JSONRPCErrorResponse', value: message };
    return typed === undefined ? [envelope] : [envelope, { name: typed.name, value: typed.value(message) }];
  }
  const envelope = { name: 'JSONRPCResultResponse', value: message };
  const typed = message.result?.resultType === 'input_required' ? 'InputRequiredResult' : schema.results.get(requestMethod);
  return typed === undefined ? [envelope] : [envelope, { name: typed, value: message.result }];
}

function schemaErrors(ajv, revision, name, value) {
  const reference = `${revision}#/$defs/${name}`;
  const validate = ajv.getSchema(reference) ?? ajv.compile({ $ref: reference });
  if (validate(value)) return [];
  return validate.errors.slice(0, 5).map((error) => `${name}${error.instancePath}: ${error.message}`);
}

function foreignWords(revision, message) {
  const body = message?.params ?? message?.result;
  if (body === null || typeof body !== 'object') return [];
  const metaKeys = Object.keys(body._meta ?? {}).map((key) => key.toLowerCase());
  const metaWords = (names) => names.map((name) => META_PREFIX + name).filter((key) => metaKeys.includes(key.toLowerCase()));
  if (revision === '2026-07-28') return metaWords(LEGACY_META).map((word) => `legacy word in _meta: ${word}`);
  return [
    ...metaWords(MODERN_META).map((word) => `modern word in _meta: ${word}`),
    ...MODERN_MEMBERS.filter((member) => member in body).map((word) => `modern member: ${word}`),
  ];
}
