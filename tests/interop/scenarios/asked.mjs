// Owns: what each legacy server is made to ask, how the clients answer, and what comes of it: the same list for the clients
// of both languages.
// Does not own: the servers (targets.mjs), or the checks (clients/questions-client.mjs, clients/questions_client.py).
//
// A case names what is called (`tool`, `prompt` or `resource`), the user's answers by the question's message, what the client
// has to be asked, by round, and what the result has to say. A case that is `modern` has no like between legacy peers.

import { DESCRIPTION } from './bridged-target.mjs';

const accept = (content) => ({ action: 'accept', content });
const form = (message) => ({ kind: 'form', message });
const url = (message, address) => ({ kind: 'url', message, url: address });
const sampling = (message) => ({ kind: 'sampling', message });
const roots = { kind: 'roots' };

const FIELDS = 'Please provide inputs for the following fields:';
const PREREQUISITE = url('Open this link to satisfy the prerequisite, then retry the request.', 'https://modelcontextprotocol.io');
const OPEN = 'Please open the link to complete this action.';

const visits = (address, more = {}) => ({ tool: 'trigger-url-elicitation', arguments: { url: address, ...more } });

/** server-everything asks on the stream of the call; for roots on the session's, and once of its own accord. */
export const EVERYTHING_ASKS = {
  askedOn: [
    { method: 'elicitation/create', verb: 'POST' },
    { method: 'sampling/createMessage', verb: 'POST' },
    { method: 'roots/list', verb: 'GET' },
  ],
  cases: [
    {
      what: 'a form, accepted',
      tool: 'trigger-elicitation-request',
      answers: {
        [FIELDS]: accept({ name: 'Ada', check: true, integer: 7, number: 2.5, untitledMultipleSelectEnum: ['Piano', 'Drums'] }),
      },
      asked: [[form(FIELDS)]],
      says: ['- Name: Ada', '"check": true', '"integer": 7', '"number": 2.5', '"Piano",', '"Drums"'],
    },
    {
      what: 'a form, declined',
      tool: 'trigger-elicitation-request',
      answers: { [FIELDS]: { action: 'decline' } },
      asked: [[form(FIELDS)]],
      says: ['User declined'],
    },
    {
      what: 'a form, cancelled',
      tool: 'trigger-elicitation-request',
      answers: { [FIELDS]: { action: 'cancel' } },
      asked: [[form(FIELDS)]],
      says: ['User cancelled'],
    },
    {
      what: 'a question to the model',
      tool: 'trigger-sampling-request',
      arguments: { prompt: 'hello' },
      asked: [[sampling('Resource trigger-sampling-request context: hello')]],
      says: ['Paris'],
    },
    // It may know the roots by now, from an answer to what it asked of its own accord.
    { what: 'the roots', tool: 'get-roots-list', says: ['file:///ada'] },
    {
      what: 'a page to open, accepted',
      ...visits('https://example.com/one'),
      answers: { [OPEN]: { action: 'accept' } },
      asked: [[url(OPEN, 'https://example.com/one')]],
      says: ['User completed the URL elicitation flow', 'URL: https://example.com/one'],
    },
    {
      what: 'a page to open, declined',
      ...visits('https://example.com/two'),
      answers: { [OPEN]: { action: 'decline' } },
      asked: [[url(OPEN, 'https://example.com/two')]],
      says: ['User declined'],
    },
    {
      what: 'a page that is required first, accepted',
      ...visits('https://example.com/three', { errorPath: true }),
      modern: true,
      answers: { [PREREQUISITE.message]: { action: 'accept' }, [OPEN]: { action: 'accept' } },
      asked: [[PREREQUISITE], [url(OPEN, 'https://example.com/three')]],
      says: ['User completed the URL elicitation flow'],
      runs: 2,
    },
    {
      what: 'a page that is required first, declined',
      ...visits('https://example.com/four', { errorPath: true }),
      modern: true,
      answers: { [PREREQUISITE.message]: { action: 'decline' } },
      asked: [[PREREQUISITE]],
      isError: true,
    },
  ],
  users: { tool: 'trigger-elicitation-request', message: FIELDS, named: false },
  abandoned: { tool: 'trigger-elicitation-request', arguments: {} },
  rootsOnItsOwn: true,
};

const NAME = 'What is your name?';
const CAPITAL = sampling('What is the capital of France?');

/** The Python server asks on the stream of the session, but for those that say otherwise. */
export const PYTHON_ASKS = {
  askedOn: ['elicitation/create', 'sampling/createMessage', 'roots/list'].map((method) => ({ method, verb: 'GET' })),
  cases: [
    {
      what: 'a form on the stream of the call, accepted',
      tool: 'ask_on_call',
      answers: { [NAME]: accept({ name: 'Ada' }) },
      asked: [[form(NAME)]],
      says: ['Hello, Ada'],
    },
    {
      what: 'a form, accepted',
      tool: 'ask_on_session',
      answers: { [NAME]: accept({ name: 'Ada' }) },
      asked: [[form(NAME)]],
      says: ['Hello, Ada'],
    },
    {
      what: 'a form, declined',
      tool: 'ask_on_session',
      answers: { [NAME]: { action: 'decline' } },
      asked: [[form(NAME)]],
      says: ['No name: decline'],
    },
    {
      what: 'a form, cancelled',
      tool: 'ask_on_session',
      answers: { [NAME]: { action: 'cancel' } },
      asked: [[form(NAME)]],
      says: ['No name: cancel'],
    },
    {
      what: 'values of all kinds',
      tool: 'ask_details',
      answers: { 'What are the details?': accept({ count: 3, share: 0.25, sure: false, tags: ['red', 'blue'] }) },
      asked: [[form('What are the details?')]],
      says: ['{"count": 3, "share": 0.25, "sure": false, "tags": ["red", "blue"]}'],
    },
    { what: 'a question to the model, on the stream of the call', tool: 'sample_on_call', asked: [[CAPITAL]], says: ['The model says: Paris'] },
    { what: 'a question to the model', tool: 'sample_on_session', asked: [[CAPITAL]], says: ['The model says: Paris'] },
    { what: 'the roots', tool: 'roots_on_session', asked: [[roots]], says: ['file:///ada'] },
    {
      what: 'two questions at once',
      tool: 'ask_two',
      answers: { 'Who is first?': accept({ name: 'Ada' }), 'Who is second?': accept({ name: 'Grace' }) },
      asked: [[form('Who is first?'), form('Who is second?')]],
      says: ['First Ada, then Grace'],
    },
    {
      what: 'three kinds at once',
      tool: 'ask_three_kinds',
      answers: { [NAME]: accept({ name: 'Ada' }) },
      asked: [[form(NAME), roots, CAPITAL]],
      says: ['Hello, Ada. The model says: Paris. file:///ada'],
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
      says: ['Ada blue London'],
    },
    {
      what: 'two rounds on the stream of the call, with progress around them',
      tool: 'ask_with_progress',
      answers: { 'Who is first?': accept({ name: 'Ada' }), 'Who is second?': accept({ name: 'Grace' }) },
      asked: [[form('Who is first?')], [form('Who is second?')]],
      progress: [1, 2, 3],
      says: ['First Ada, then Grace'],
    },
    {
      what: 'a page to open, accepted',
      tool: 'visit',
      arguments: { url: 'https://example.com/one' },
      answers: { 'Please open the page': { action: 'accept' } },
      asked: [[url('Please open the page', 'https://example.com/one')]],
      says: ['The answer to the page: accept'],
    },
    {
      what: 'a page that is required first, declined',
      tool: 'enter',
      modern: true,
      answers: { 'Please enter': { action: 'decline' } },
      asked: [[url('Please enter', 'https://example.com/enter')]],
      isError: true,
    },
    {
      what: 'a prompt that asks',
      prompt: 'introduction',
      answers: { 'Whom does the prompt introduce?': accept({ name: 'Ada' }) },
      asked: [[form('Whom does the prompt introduce?')]],
      says: ['Please introduce Ada'],
    },
    {
      what: 'a resource that asks',
      resource: 'fixture://asking/engines',
      answers: { 'Who reads about engines?': accept({ name: 'Ada' }) },
      asked: [[form('Who reads about engines?')]],
      says: ['engines, read by Ada'],
    },
  ],
  /** Of a user whose session has not been there: refused once, then told that the page was visited. */
  awaited: {
    what: 'a page that is required first, and whose visit is told later',
    tool: 'enter',
    answers: { 'Please enter': { action: 'accept' } },
    asked: [[url('Please enter', 'https://example.com/enter')]],
    says: ['The page was visited'],
    runs: 2,
  },
  users: { tool: 'ask_user', named: true },
  abandoned: { tool: 'ask_user', arguments: { user: 'carol', call: 1 }, line: '^(ended|cancelled) ask_user carol 1' },
  undeclared: { tool: 'ask_on_call' },
};

const CHOICES = {
  untitledSingle: 'option2',
  titledSingle: 'value1',
  legacyEnum: 'opt3',
  untitledMulti: ['option1', 'option3'],
  titledMulti: ['value2'],
};

/** The SDK 1.x server keeps events by id, and closes streams of calls that are to be taken up again with them. */
export const TYPESCRIPT_ASKS = {
  askedOn: ['elicitation/create', 'sampling/createMessage'].flatMap((method) => ['POST', 'GET'].map((verb) => ({ method, verb }))),
  cases: [
    {
      what: 'choices of all kinds',
      tool: 'test_elicitation_sep1330_enums',
      answers: { 'Please select': accept(CHOICES) },
      asked: [[form('Please select')]],
      says: [`Answered with accept: ${JSON.stringify(CHOICES)}`],
    },
    {
      what: 'three kinds at once',
      tool: 'test_input_required_result_multiple_inputs',
      answers: { [NAME]: accept({ name: 'Ada' }) },
      asked: [[form(NAME), roots, sampling('Generate a greeting')]],
      says: ['All three answers arrived'],
    },
    {
      what: 'two rounds',
      tool: 'test_input_required_result_multi_round',
      answers: {
        'Step 1: What is your name?': accept({ name: 'Ada' }),
        'Step 2: What is your favorite color?': accept({ color: 'blue' }),
      },
      asked: [[form('Step 1: What is your name?')], [form('Step 2: What is your favorite color?')]],
      says: ['Both rounds are done'],
    },
    {
      what: 'a prompt that asks',
      prompt: 'test_input_required_result_prompt',
      answers: { 'What context should the prompt use?': accept({ context: 'engines' }) },
      asked: [[form('What context should the prompt use?')]],
      says: ['Context: engines'],
    },
    {
      what: 'a form on the stream of the session',
      tool: 'elicit_on_session',
      answers: { [NAME]: accept({ name: 'Ada' }) },
      asked: [[form(NAME)]],
      says: ['Hello, Ada'],
    },
    { what: 'a question to the model, on the stream of the session', tool: 'sample_on_session', asked: [[CAPITAL]], says: ['The model says: Paris'] },
    { what: 'a question to the model', tool: 'test_sampling', arguments: { prompt: 'Who?' }, asked: [[sampling('Who?')]], says: ['The model says: Paris'] },
    {
      what: 'a question that was asked while the stream was closed',
      tool: 'elicit_after_reconnection',
      answers: { [NAME]: accept({ name: 'Ada' }) },
      asked: [[form(NAME)]],
      says: ['Hello, Ada'],
    },
    {
      what: 'a stream that is closed while the question is open',
      tool: 'elicit_before_reconnection',
      answers: { [NAME]: accept({ name: 'Ada' }) },
      answerAfterMs: 300,
      asked: [[form(NAME)]],
      says: ['Hello, Ada'],
    },
  ],
  resumed: 2,
  abandoned: { tool: 'elicit_on_session', arguments: {} },
};

/**
 * What the modern servers ask, and legacy clients are asked through the proxy (bridged-target.mjs), is asked of a modern client by
 * themselves: each round is a call that comes again. How often progress and a page are shown is the client's own affair then, and
 * these clients have no tools for their models.
 */
export const MODERN_ASKS = {
  modern: true,
  sessions: false,
  askedOn: [],
  cases: DESCRIPTION.cases.filter(({ tool, progress, bridgedOnly }) => !progress && !bridgedOnly && tool !== 'ask_model_with_tools').map(ofModern),
  users: { tool: 'ask_user', named: true },
};

function ofModern({ says, saysJson, legs, asked, ...one }) {
  return { ...one, asked, runs: legs ?? asked.length + 1, says: says === undefined ? Object.keys(saysJson) : [says] };
}
