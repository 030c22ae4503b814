// Owns: the servers that the SDK clients are run against: how each is started, what it is known to hold, and how it is
// made to change.
// Does not own: the checks (clients/), which read this description; every expected value here is the server's own.

import { mkdtempSync } from 'node:fs';
import { join } from 'node:path';

import { Child } from '../lib/child.mjs';

const START_MS = 20_000;

/** A server on a port (`start`, `startSse` for the old HTTP+SSE) or as a program (`command`). */
async function started(name, [command, ...args], ready, options) {
  const child = new Child(name, command, args, options);
  await child.waitForLine(ready, START_MS);
  return child;
}

/**
 * What is known of a target for a client that reaches it in these ways: on a pipe or an old event stream there is one place where
 * a server may ask, and none that breaks and is taken up again; users whom a host serves share nothing.
 */
export function described({ target, ways }, { binary }) {
  const { questions, changes, ...rest } = target.description;
  const front = binary === null ? ways.upstream : ways.front;
  const verb = { sse: 'GET', stdio: 'PIPE' }[ways.upstream];
  const { unheard, steps = [], ...kept } = changes ?? {};
  return {
    ...rest,
    modern: target.modern ?? false,
    ways: { ...ways, front, proxied: binary !== null },
    questions: questions?.map((question) => ({ ...question, verb: verb ?? question.verb })),
    changes: changes && {
      ...kept,
      ...(verb === undefined && front === 'http' && { unheard }),
      // The users of a program never share it.
      steps: steps.map((step) => ({ ...step, everyone: step.everyone && !(ways.upstream === 'stdio') })),
    },
  };
}

export const everything = {
  name: 'server-everything',
  parts: ['calls', 'listen'],
  start: (context, port) => started('server-everything', everything.command(context, 'streamableHttp'), /listening on port/i, { env: { PORT: String(port) } }),
  startSse: (context, port) => started('server-everything', everything.command(context, 'sse'), /running on port/i, { env: { PORT: String(port) } }),
  command: ({ node, nodeModules }, mode = 'stdio') => [node, join(nodeModules, '@modelcontextprotocol/server-everything/dist/index.js'), mode],
  description: {
    serverName: 'mcp-servers/everything',
    capabilities: ['tools', 'resources', 'prompts', 'completions', 'logging'],
    tools: ['echo', 'get-sum', 'get-tiny-image', 'get-structured-content', 'trigger-long-running-operation'],
    calls: [
      { name: 'echo', arguments: { message: 'hello' }, text: 'Echo: hello' },
      { name: 'get-sum', arguments: { a: 2, b: 40 }, text: 'The sum of 2 and 40 is 42.' },
    ],
    resources: ['demo://resource/static/document/architecture.md'],
    templates: ['demo://resource/dynamic/text/{resourceId}', 'demo://resource/dynamic/blob/{resourceId}'],
    reads: [{ uri: 'demo://resource/dynamic/text/1', text: 'Resource 1' }],
    prompts: ['simple-prompt', 'args-prompt', 'completable-prompt'],
    prompt: {
      name: 'completable-prompt',
      arguments: { department: 'Sales', name: 'Eve' },
      text: 'Please promote Eve to the head of the Sales team.',
    },
    completion: {
      ref: { type: 'ref/prompt', name: 'completable-prompt' },
      argument: { name: 'name', value: 'E' },
      context: { department: 'Sales' },
      values: ['Eve'],
    },
    progress: { name: 'trigger-long-running-operation', arguments: { duration: 0.3, steps: 3 }, steps: [1, 2, 3] },
    slow: { name: 'trigger-long-running-operation', arguments: { duration: 60, steps: 600 } },
    echo: { name: 'echo' },
    questions: [
      { name: 'trigger-elicitation-request', arguments: {}, method: 'elicitation/create', verb: 'POST', text: 'Ada' },
      { name: 'trigger-sampling-request', arguments: { prompt: 'hello' }, method: 'sampling/createMessage', verb: 'POST', text: 'Paris' },
      { name: 'get-roots-list', arguments: {}, method: 'roots/list', verb: 'GET', text: 'file:///ada' },
    ],
    missing: { uri: 'demo://nowhere', legacyCode: -32602, modernCode: -32602 },
    changes: {
      asked: { toolsListChanged: true, resourcesListChanged: true, resourceSubscriptions: ['demo://resource/dynamic/text/1'] },
      honored: { toolsListChanged: true, resourcesListChanged: true, resourceSubscriptions: ['demo://resource/dynamic/text/1'] },
      prompts: true,
      unasked: ['tools'],
      steps: [
        {
          name: 'gzip-file-as-resource',
          arguments: { name: 'late.gz', data: 'data:text/plain,hello', outputType: 'resourceLink' },
          tells: ['resources'],
          lists: { resources: ['late.gz'] },
        },
        // Updates all that the session subscribed to at once, and then every five seconds until it is called again.
        {
          name: 'toggle-subscriber-updates',
          arguments: {},
          tells: ['updated demo://resource/dynamic/text/1'],
          undo: [{ name: 'toggle-subscriber-updates', arguments: {} }],
        },
      ],
      // It keeps events by id, so that a stream on which something came is taken up where it broke.
      unheard: {
        refuses: false,
        call: { name: 'toggle-subscriber-updates', arguments: {} },
        tells: ['updated demo://resource/dynamic/text/1'],
        undo: [{ name: 'toggle-subscriber-updates', arguments: {} }],
      },
      logs: {
        call: { name: 'trigger-long-running-operation', arguments: { duration: 1, steps: 4 } },
        // Logs one line of any level at once, on the session's own stream.
        during: { name: 'toggle-simulated-logging', arguments: {} },
        level: 'debug',
        count: 1,
      },
    },
  },
};

export const pythonLegacy = {
  name: 'Python mcp 1.x',
  parts: ['calls', 'listen'],
  start: (context, port) => started('Python mcp 1.x server', pythonLegacy.command(context, undefined, port), /^listening on/),
  command: ({ here, pythonLegacy: python }, _, port = 'stdio') => [python, join(here, 'fixtures/legacy_server.py'), String(port)],
  /** What the server says once a call was cancelled in it. */
  cancelledLine: /^wait was cancelled$/,
  /** What the server says each time that the echo tool runs. */
  ranLine: (message) => `ran echo ${message}`,
  description: {
    serverName: 'interop-python-legacy',
    capabilities: ['tools', 'resources', 'prompts', 'completions', 'logging'],
    tools: ['echo', 'add', 'keep', 'recall', 'count', 'wait', 'fail', 'chat', 'touch'],
    calls: [
      { name: 'echo', arguments: { message: 'hello' }, text: 'Echo: hello' },
      { name: 'add', arguments: { a: 2, b: 40 }, text: '42', structured: { result: 42 } },
    ],
    resources: ['fixture://greeting'],
    templates: ['fixture://users/{name}'],
    reads: [
      { uri: 'fixture://greeting', text: 'Hello from a legacy server' },
      { uri: 'fixture://users/ada', text: 'User ada' },
    ],
    prompts: ['review'],
    prompt: { name: 'review', arguments: { language: 'rust' }, text: 'Please review this rust code' },
    completion: {
      ref: { type: 'ref/prompt', name: 'review' },
      argument: { name: 'language', value: 'p' },
      values: ['python', 'perl'],
    },
    progress: { name: 'count', arguments: { steps: 5 }, steps: [1, 2, 3, 4, 5] },
    slow: { name: 'wait', arguments: { seconds: 60 } },
    echo: { name: 'echo' },
    questions: [
      { name: 'ask_on_call', arguments: {}, method: 'elicitation/create', verb: 'POST', text: 'Hello, Ada' },
      { name: 'ask_on_session', arguments: {}, method: 'elicitation/create', verb: 'GET', text: 'Hello, Ada' },
      { name: 'sample_on_call', arguments: {}, method: 'sampling/createMessage', verb: 'POST', text: 'Paris' },
      { name: 'sample_on_session', arguments: {}, method: 'sampling/createMessage', verb: 'GET', text: 'Paris' },
      { name: 'roots_on_session', arguments: {}, method: 'roots/list', verb: 'GET', text: 'file:///ada' },
    ],
    session: { keep: 'keep', recall: 'recall' },
    failing: 'fail',
    missing: { uri: 'fixture://nowhere/at/all', legacyCode: 0, modernCode: 0 },
    changes: {
      asked: { toolsListChanged: true, promptsListChanged: true, resourcesListChanged: true, resourceSubscriptions: ['fixture://greeting'] },
      honored: { toolsListChanged: true, resourcesListChanged: true, resourceSubscriptions: ['fixture://greeting'] },
      prompts: false,
      steps: [
        { name: 'add_tool', arguments: { name: 'late' }, tells: ['tools'], lists: { tools: ['late'] } },
        { name: 'touch', arguments: { uri: 'fixture://greeting' }, tells: ['updated fixture://greeting'], everyone: true },
        { name: 'remove_tool', arguments: { name: 'late' }, tells: ['tools'] },
        { name: 'add_resource', arguments: { uri: 'fixture://late' }, tells: ['resources'], lists: { resources: ['fixture://late'] } },
        { name: 'touch_later', arguments: { uri: 'fixture://greeting' }, tells: ['updated fixture://greeting'], everyone: true },
        { name: 'touch', arguments: { uri: 'fixture://users/ada' }, tells: [] },
      ],
      // It allows for one stream a session, and takes the broken one for alive.
      unheard: { refuses: true, call: { name: 'add_tool', arguments: { name: 'unheard' } }, tells: ['tools'] },
      logs: { call: { name: 'chat', arguments: {} }, level: 'info', levels: ['info', 'warning'] },
    },
  },
};

/** Only for what it asks; the conformance suite runs the rest of it. */
export const typescriptLegacy = {
  name: 'SDK 1.x server',
  start: (context, port) => started('SDK 1.x server', typescriptLegacy.command(context, undefined, port), /^listening on/),
  command: ({ node, here }, _, port = 'stdio') => [node, join(here, 'fixtures/legacy-server.mjs'), String(port)],
};

export const modernFixture = {
  name: 'SDK 2.x server',
  modern: true,
  parts: ['listen'],
  start: ({ node, here }, port) => started('SDK 2.x server', [node, join(here, 'fixtures/modern-server.mjs'), String(port)], /^listening on/),
  description: {
    progress: { name: 'test_tool_with_progress', arguments: {}, steps: [0, 50, 100] },
    changes: {
      asked: { toolsListChanged: true, resourcesListChanged: true, resourceSubscriptions: ['test://static-text'] },
      honored: { toolsListChanged: true, resourcesListChanged: true, resourceSubscriptions: ['test://static-text'] },
      prompts: true,
      steps: [
        { name: 'test_trigger_tool_change', arguments: {}, tells: ['tools'], everyone: true },
        { name: 'trigger_resource_update', arguments: { uri: 'test://static-text' }, tells: ['updated test://static-text'], everyone: true },
        { name: 'trigger_resource_update', arguments: { uri: 'test://static-binary' }, tells: [] },
        { name: 'trigger_resource_change', arguments: {}, tells: ['resources'], everyone: true },
      ],
      logs: { call: { name: 'test_logging_tool', arguments: {} }, level: 'info', levels: ['info'] },
      restart: 'ends',
    },
  },
};

/** What modern clients are to find of the modern servers that legacy clients are run against (bridged-target.mjs). */
const modernDescription = {
  capabilities: ['tools', 'resources', 'prompts', 'completions', 'logging'],
  tools: ['echo', 'sum', 'count', 'wait', 'fail', 'chat', 'touch'],
  calls: [
    { name: 'echo', arguments: { message: 'hello' }, text: 'Echo: hello' },
    { name: 'sum', arguments: { a: 2, b: 40 }, structured: { sum: 42 } },
  ],
  resources: ['fixture://greeting'],
  templates: ['fixture://users/{name}', 'fixture://asking/{topic}'],
  reads: [
    { uri: 'fixture://greeting', text: 'Hello from a modern server' },
    { uri: 'fixture://users/ada', text: 'User ada' },
  ],
  prompts: ['review'],
  prompt: { name: 'review', arguments: { language: 'rust' }, text: 'Please review this rust code' },
  completion: { ref: { type: 'ref/prompt', name: 'review' }, argument: { name: 'language', value: 'p' }, values: ['python', 'perl'] },
  progress: { name: 'count', arguments: { steps: 5, pause: 10 }, steps: [1, 2, 3, 4, 5] },
  slow: { name: 'wait', arguments: { seconds: 60 }, line: 'wait was cancelled' },
  echo: { name: 'echo' },
  failing: 'fail',
  missing: { uri: 'fixture://nowhere', modernCode: -32602 },
  changes: {
    asked: { toolsListChanged: true, promptsListChanged: true, resourcesListChanged: true, resourceSubscriptions: ['fixture://greeting'] },
    honored: { toolsListChanged: true, promptsListChanged: true, resourcesListChanged: true, resourceSubscriptions: ['fixture://greeting'] },
    steps: [
      { name: 'add_tool', arguments: { name: 'late' }, tells: ['tools'], lists: { tools: ['late'] }, everyone: true },
      { name: 'touch', arguments: { uri: 'fixture://greeting' }, tells: ['updated fixture://greeting'], everyone: true },
      { name: 'remove_tool', arguments: { name: 'late' }, tells: ['tools'], everyone: true },
      { name: 'add_resource', arguments: { uri: 'fixture://late' }, tells: ['resources'], lists: { resources: ['fixture://late'] }, everyone: true },
      { name: 'touch', arguments: { uri: 'fixture://users/ada' }, tells: [] },
    ],
    logs: { call: { name: 'chat', arguments: {} }, level: 'info', levels: ['info', 'warning'] },
    restart: 'ends',
  },
};

/** The same servers as for legacy clients. */
export const modernOf = (server) => ({
  ...server,
  parts: ['calls', 'listen'],
  ranLine: (message) => `ran echo ${message}`,
  description: { ...modernDescription, serverName: server.serverName },
});

/** Has nothing but tools, which work in a folder that is made for the run. */
export function filesystem({ cache }) {
  const folder = mkdtempSync(join(cache, 'files-'));
  const file = join(folder, 'note.txt');
  const calls = [
    { name: 'write_file', arguments: { path: file, content: 'one\ntwo\n' }, text: `Successfully wrote to ${file}` },
    { name: 'read_text_file', arguments: { path: file, head: 1 }, text: 'one', structured: { content: 'one' } },
    { name: 'edit_file', arguments: { path: file, edits: [{ oldText: 'one', newText: 'üñø "three"' }] } },
    { name: 'read_text_file', arguments: { path: file, head: 1 }, text: 'üñø "three"' },
    { name: 'list_directory', arguments: { path: folder }, text: '[FILE] note.txt', structured: { content: '[FILE] note.txt' } },
    { name: 'search_files', arguments: { path: folder, pattern: '*.txt' }, text: file },
    { name: 'read_text_file', arguments: { path: join(cache, 'npm.stamp') }, isError: true },
  ];
  return {
    name: 'server-filesystem',
    parts: ['calls'],
    command: ({ node, nodeModules }) => [node, join(nodeModules, '@modelcontextprotocol/server-filesystem/dist/index.js'), folder],
    description: { serverName: 'secure-filesystem-server', capabilities: ['tools'], tools: ['read_text_file', 'write_file', 'edit_file', 'directory_tree'], calls },
  };
}
