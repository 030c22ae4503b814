// Owns: what legacy clients are to find of the modern servers through the proxy: the same for both servers, but for a few
// names; every expected value is the server's own, seen as its client's revision says it.
// Does not own: the servers (fixtures/modern-*.mjs, fixtures/modern_*.py), how they are started (bridged.mjs), the checks
// (clients/bridged-*.mjs, clients/bridged_*.py).

const accept = (content) => ({ action: 'accept', content });
const form = (message) => ({ kind: 'form', message });
const page = (url) => ({ kind: 'url', message: 'Please open the page', url });
const NAME = 'What is your name?';
const CAPITAL = { kind: 'sampling', message: 'What is the capital of France?' };
const ROOTS = { kind: 'roots' };

const wrapped = (schema) => ({ type: 'object', properties: { result: schema }, required: ['result'] });
const whole = { type: 'integer' };

const DETAILS = {
  email: 'ada@example.com',
  nick: 'countess',
  count: 3,
  share: 2.5,
  sure: false,
  untitledSingle: 'option2',
  titledSingle: 'value1',
  legacyEnum: 'opt3',
  untitledMulti: ['option1', 'option3'],
  titledMulti: ['value2'],
};

/**
 * What is asked (by round), answered and said in the end; `legs`: how often the server gets the request. What is
 * `bridgedOnly` is no concern of an SDK that serves a legacy client by itself.
 */
const CASES = [
  { what: 'a form, accepted', tool: 'ask_name', answers: { [NAME]: accept({ name: 'Ada' }) }, asked: [[form(NAME)]], says: 'Hello, Ada' },
  { what: 'a form, declined', tool: 'ask_name', answers: { [NAME]: { action: 'decline' } }, asked: [[form(NAME)]], says: 'No name: decline' },
  { what: 'a form, cancelled', tool: 'ask_name', answers: { [NAME]: { action: 'cancel' } }, asked: [[form(NAME)]], says: 'No name: cancel' },
  {
    what: 'a form with a field of each kind',
    tool: 'ask_details',
    answers: { 'What are the details?': accept(DETAILS) },
    asked: [[form('What are the details?')]],
    saysJson: DETAILS,
  },
  { what: 'a question to the model', tool: 'ask_model', asked: [[CAPITAL]], says: 'The model says: Paris' },
  {
    what: 'a question to the model, with tools',
    tool: 'ask_model_with_tools',
    asked: [[{ kind: 'sampling', message: 'Where is the Louvre?' }]],
    says: 'The model uses lookup {"city":"Paris"}',
  },
  { what: 'the roots', tool: 'ask_roots', asked: [[ROOTS]], says: 'file:///ada' },
  {
    what: 'three kinds at once',
    tool: 'ask_three_kinds',
    answers: { [NAME]: accept({ name: 'Ada' }) },
    asked: [[form(NAME), CAPITAL, ROOTS]],
    atOnce: 3,
    says: 'Hello, Ada. The model says: Paris. file:///ada',
  },
  {
    what: 'three rounds',
    tool: 'ask_in_rounds',
    answers: {
      'What is your name?': accept({ name: 'Ada' }),
      'What is your colour?': accept({ colour: 'blue' }),
      'What is your city?': accept({ city: 'London' }),
    },
    asked: [[form('What is your name?')], [form('What is your colour?')], [form('What is your city?')]],
    says: 'Ada blue London',
  },
  {
    what: 'progress before and after a question',
    tool: 'ask_with_progress',
    answers: { [NAME]: accept({ name: 'Ada' }) },
    asked: [[form(NAME)]],
    progress: [1, 2, 3],
    says: 'Hello, Ada',
  },
  {
    what: 'a page, visited',
    tool: 'visit',
    arguments: { url: 'https://example.com/one' },
    answers: { 'Please open the page': { action: 'accept' } },
    asked: [[page('https://example.com/one')]],
    legs: 3,
    completed: 1,
    says: 'The page was visited',
  },
  {
    what: 'a page that is asked for again until it was visited',
    tool: 'visit_slowly',
    bridgedOnly: true,
    arguments: { url: 'https://example.com/two' },
    answers: { 'Please open the page': { action: 'accept' } },
    asked: [[page('https://example.com/two')]],
    legs: 3,
    completed: 1,
    says: 'The page was visited',
  },
  {
    what: 'a page, declined',
    tool: 'visit',
    arguments: { url: 'https://example.com/three' },
    answers: { 'Please open the page': { action: 'decline' } },
    asked: [[page('https://example.com/three')]],
    says: 'The page was not visited: decline',
  },
  { what: 'a call that is not ready at once', tool: 'get_ready', arguments: { times: 2 }, asked: [], legs: 3, says: 'Ready after 2' },
  {
    what: 'a prompt that asks',
    prompt: 'introduction',
    answers: { 'Whom does the prompt introduce?': accept({ name: 'Ada' }) },
    asked: [[form('Whom does the prompt introduce?')]],
    says: 'Please introduce Ada',
  },
  {
    what: 'a resource that asks',
    resource: 'fixture://asking/engines',
    answers: { 'Who reads about engines?': accept({ name: 'Ada' }) },
    asked: [[form('Who reads about engines?')]],
    says: 'engines, read by Ada',
  },
];

/** The encodings of the headers: as they are, or as the revision wraps what is no header value. */
const HEADERS = [
  { arguments: { region: 'us-west1', level: -42, urgent: true, place: { city: 'Oslo' } }, headers: { region: 'us-west1', level: '-42', urgent: 'true', city: 'Oslo' } },
  {
    arguments: { region: 'Hello, 世界', urgent: false, place: { city: ' padded ' }, note: 'not mirrored' },
    headers: { region: '=?base64?SGVsbG8sIOS4lueVjA==?=', urgent: 'false', city: '=?base64?IHBhZGRlZCA=?=' },
  },
  { arguments: { region: '=?base64?literal?=', level: 9007199254740991 }, headers: { region: '=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?=', level: '9007199254740991' } },
  { arguments: {}, headers: {} },
];

export const DESCRIPTION = {
  instructions: 'A modern server for interop runs',
  capabilities: { tools: { listChanged: true }, prompts: { listChanged: true }, resources: { listChanged: true, subscribe: true }, completions: {}, logging: {} },
  /** Tool -> output schema, as a client of 2025-06-18 or newer may see it. */
  outputs: {
    echo: null,
    sum: { type: 'object', properties: { sum: whole }, required: ['sum'] },
    numbers: wrapped({ type: 'array', items: { $ref: '#/properties/result/$defs/whole' }, $defs: { whole } }),
    measure: wrapped({ type: 'number' }),
    either: wrapped({ anyOf: [{ type: 'object' }, { type: 'array' }] }),
    unstated: null,
  },
  structured: [
    { name: 'sum', arguments: { a: 2, b: 40 }, value: { sum: 42 }, text: { sum: 42 } },
    { name: 'numbers', arguments: { count: 3 }, value: { result: [1, 2, 3] }, text: [1, 2, 3] },
    { name: 'measure', arguments: {}, value: { result: 2.5 }, text: 2.5 },
    { name: 'either', arguments: { count: 0 }, value: { result: { none: true } }, text: { none: true } },
    { name: 'either', arguments: { count: 1 }, value: { result: [1] }, text: [1] },
    { name: 'unstated', arguments: { count: 2 }, value: { result: [1, 2] }, text: [1, 2] },
  ],
  gallery: ['text', 'image', 'audio', 'resource_link', 'resource'],
  bulk: 3_000_000,
  headers: HEADERS,
  reads: [
    { uri: 'fixture://greeting', text: 'Hello from a modern server' },
    { uri: 'fixture://users/ada', text: 'User ada' },
  ],
  templates: ['fixture://users/{name}', 'fixture://asking/{topic}'],
  prompt: { name: 'review', arguments: { language: 'rust' }, text: 'Please review this rust code' },
  completion: { ref: { type: 'ref/prompt', name: 'review' }, argument: { name: 'language', value: 'p' }, values: ['python', 'perl'] },
  missing: { uri: 'fixture://nowhere', code: -32002 },
  cases: CASES,
};
