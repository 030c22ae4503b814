// Owns: runs against servers with a tool of every kind that the schema guard finds: `probe` prints just these findings, official
// clients see all the sound tools and none of the bad ones, and nobody but the upstream is talked to.
// Does not own: the tools (fixtures/bad-tools.mjs), or what the clients check (clients/listed*).

import { join } from 'node:path';

import { fittingTools, legacyTools, modernTools, olderTools, unreadableTools } from '../fixtures/bad-tools.mjs';
import { Canary } from '../lib/canary.mjs';
import { probe, probeForPeople, startJanus } from '../lib/janus.mjs';
import { LEGACY, MODERN, RawClient } from '../lib/raw-client.mjs';
import { Watched } from '../lib/watched.mjs';
import { startListing } from './schema-suite.mjs';
import { driveClient } from './sdk-clients.mjs';

const OLDER = '2025-06-18';

/** Official clients: whether they are modern, and the command before the URL. */
const CLIENTS = {
  'typescript 2.x': { modern: true, command: ({ node, here }) => [node, join(here, 'clients/listed.mjs')] },
  'python 2.x': { modern: true, command: ({ pythonModern, here }) => [pythonModern, join(here, 'clients/listed.py')] },
  'typescript 1.x': { modern: false, command: ({ node, here }) => [node, join(here, 'clients/listed-legacy.mjs')] },
};

/** Files that a program reads to look up a name. */
const LOOKUPS = ['/etc/resolv.conf', '/etc/hosts', '/etc/nsswitch.conf', '/etc/host.conf', '/etc/gai.conf'];

export async function runSchemaFindings(context, report) {
  const canary = await Canary.start(context.cache);
  try {
    const marks = { canary: canary.authority, file: canary.file };
    await against(context, report, canary, MODERN, modernTools(marks), Object.keys(CLIENTS));
    await against(context, report, canary, LEGACY, legacyTools(marks), Object.keys(CLIENTS));
    await against(context, report, canary, OLDER, olderTools(), ['typescript 2.x', 'typescript 1.x']);
    await against(context, report, canary, MODERN, unreadableTools(), []);
    await warned(context, report, canary, modernTools(marks));
    for (const revision of [MODERN, LEGACY]) await enforced(context, report, canary, revision);
  } finally {
    await canary.stop();
  }
}

async function against(context, report, canary, revision, tools, clients) {
  report.section(`tools of every kind of a server of ${revision}${clients.length === 0 ? ', which not every client can read' : ''}`);
  await inFront(context, report, canary, revision, tools, {}, async ({ server, proxied, watched }) => {
    await probed(report, watched, server, tools);
    const good = tools.filter(({ bad }) => !bad);
    const [first, last] = [good[0].name, good.at(-1).name];
    // Where two tools have a name, nothing is refused by it.
    const refused = tools.filter(({ bad, name }) => bad && name !== '').map(({ name, found }) => ({ name, at: placeOf(found[0]) }));
    for (const client of clients) {
      const { modern, command } = CLIENTS[client];
      const like = modern === (revision === MODERN);
      const wanted = { tools: good.filter(({ again }) => like || !again).map(({ name }) => name), called: [first, last], refused };
      await driveClient(report, `${client} client`, [...command(context), proxied, JSON.stringify(wanted)], {});
    }
    if (clients.length === 0) await passedWhole(report, proxied, tools);
    const called = server.lines.filter(({ text }) => text.startsWith('called ')).map(({ text }) => text.slice('called '.length));
    report.check('no bad tool was ever called', called.every((name) => name === first || name === last), [...new Set(called)].join(', '));
  });
}

/** `probe` gives just the findings that are known of the tools. */
async function probed(report, watched, server, tools) {
  const { code, report: found, said } = await probe(watched.binary, urlOf(server.port));
  if (!report.check('probe lists the tools', code === 0 && found?.tools !== undefined, said ?? JSON.stringify(found))) return;
  const left = tools.filter(({ bad }) => bad).length;
  const count = { listed: tools.length, left_out: left };
  report.check(`probe counts ${tools.length} tools, ${left} of them left out`, found.tools.listed === count.listed && found.tools.left_out === count.left_out, JSON.stringify(found.tools));
  const open = found.findings.map(({ tool, at, kind }) => ({ tool, text: `${kind} ${at}` }));
  const missing = [];
  for (const { name, found: wanted } of tools) {
    for (const want of wanted) {
      const at = open.findIndex(({ tool, text }) => tool === name && (typeof want === 'string' ? text === want : want.test(text)));
      if (at === -1) missing.push(`${name}: ${want}`);
      else open.splice(at, 1);
    }
  }
  report.check('probe finds all that is to be found', missing.length === 0, missing.join('\n'));
  report.check('probe finds nothing else', open.length === 0, open.map(({ tool, text }) => `${tool}: ${text}`).join('\n'));
  const wordless = found.findings.filter(({ weight, words, remedy }) => !['note', 'mended', 'bad'].includes(weight) || !words || !remedy);
  report.check('each finding has its weight, what is wrong and what to do', wordless.length === 0, JSON.stringify(wordless));
  const table = await probeForPeople(watched.binary, urlOf(server.port));
  const rows = table.split('\n').map((line) => line.trim().replaceAll(/ {2,}/g, ' '));
  const absent = found.findings.filter(({ tool, kind, at, words, remedy }) => {
    const row = rows.indexOf([tool || '(no name)', kind, at].join(' ').trim());
    return row === -1 || !rows[row + 1].includes(words) || !rows[row + 2].includes(remedy);
  });
  const remedies = rows.filter((row) => row.startsWith('to do: ')).length;
  report.check(`the table for people has these ${remedies} findings`, absent.length === 0 && remedies === found.findings.length, `${JSON.stringify(absent)}\n${table}`.slice(0, 4000));
}

/** What no official client may be able to read is passed byte for byte. */
async function passedWhole(report, proxied, tools) {
  const client = await RawClient.at(proxied, MODERN);
  const { results } = await client.list();
  report.check('the list is passed byte for byte', results.length === 1 && results[0].includes(`[${tools.map(({ text }) => text).join(',')}]`), results.join('\n'));
}

/** With `schema.policy = "warn"` everything passes between like eras, and the canary is left alone as well. */
async function warned(context, report, canary, tools) {
  report.section('tools of every kind, with schema.policy = "warn"');
  await inFront(context, report, canary, MODERN, tools, { settings: ['schema.policy = "warn"'] }, async ({ proxied }) => {
    await passedWhole(report, proxied, tools);
    const legacy = await RawClient.at(proxied, LEGACY);
    const names = (await legacy.list()).tools.map(({ name }) => name);
    // The proxy is the one that would have to send the headers, and some of the tools are none in any revision.
    const never = (found) => found.some((each) => /^(header_|too_many_headers|no_|input_root)/.test(placed(each)));
    const wanted = tools.filter(({ bad, again, name, found }) => !again && !(bad && (name === '' || never(found))));
    report.check('a legacy client sees what any revision takes', names.join() === wanted.map(({ name }) => name).join(), `expected ${wanted.map(({ name }) => name)}\n     got ${names}`);
  });
}

/** With `schema.arguments = "enforce"` calls that do not fit never come to the server. */
async function enforced(context, report, canary, revision) {
  report.section(`arguments that do not fit the tools of a server of ${revision}, with schema.arguments = "enforce"`);
  const tools = fittingTools();
  await inFront(context, report, canary, revision, tools, { settings: ['schema.arguments = "enforce"'] }, async ({ server, proxied }) => {
    const unfit = tools.flatMap(({ name, unfit: calls = [] }) => calls.map((call) => ({ name, ...call })));
    const called = tools.filter(({ unfit: calls }) => calls === undefined).map(({ name }) => name);
    const wanted = JSON.stringify({ tools: tools.map(({ name }) => name), called, refused: [], unfit });
    for (const [client, { command }] of Object.entries(CLIENTS)) await driveClient(report, `${client} client`, [...command(context), proxied, wanted], {});
    const ran = server.lines.filter(({ text }) => text.startsWith('called ')).length;
    report.check('the server got the calls that fit, and no other', ran === called.length * Object.keys(CLIENTS).length, `${ran} calls`);
  });
}

/** Runs `body` with a server of these tools and a watched proxy before it; then nobody may have talked to anyone else. */
async function inFront(context, report, canary, revision, tools, options, body) {
  const open = [];
  try {
    const server = await startListing(context, [tools.map(({ text }) => text)], revision);
    open.push(server);
    const watched = new Watched(context.binary, context.cache);
    const { child: janus, port } = await startJanus(watched.binary, urlOf(server.port), options);
    open.push(janus);
    watched.follow(janus.process.pid);
    await body({ server, proxied: urlOf(port), watched });
    await janus.stop();
    const { peers, files } = await watched.seen();
    report.check(`the proxy talked to its upstream alone (${watched.how})`, peers.join() === `127.0.0.1:${server.port}`, peers.join('\n'));
    if (files === null) report.note('which files the proxy opened was not seen: strace is not there, or may not trace');
    else {
      const strange = files.filter((file) => LOOKUPS.includes(file) || file === canary.file || file === '/etc/passwd');
      report.check('it looked up no name and opened no file that a schema names', files.length > 0 && strange.length === 0, strange.join('\n'));
    }
    report.check('nobody called at the canary', canary.connections === 0, `${canary.connections} connections`);
    if (canary.fileRead === null) report.note('the file system does not tell whether the canary file was read');
    else report.check('nobody read the canary file', !canary.fileRead);
    if (context.verbose) report.note(`the proxy's log:\n${janus.tail(200)}`);
  } catch (error) {
    report.check('the run itself', false, error.stack);
  } finally {
    for (const thing of open.reverse()) await thing.stop();
  }
}

const urlOf = (port) => `http://127.0.0.1:${port}/mcp`;
const placed = (want) => (typeof want === 'string' ? want : want.source.replaceAll('\\/', '/').replace('^', ''));
/** The pointer of a finding, or what is known of its beginning. */
const placeOf = (want) => placed(want).split(' ')[1] ?? '';
