// Owns: runs of published MCP servers that list tools without credentials, each started by the proxy: their lists pass byte for byte
// between like eras and with the same meaning between unlike ones, and nothing bad is found in them.
// Does not own: what their tools do (the other scenarios).

import { mkdtempSync } from 'node:fs';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';

import { hostCommand, probe, startJanus, startJanusOfHost } from '../lib/janus.mjs';
import { LEGACY, MODERN, RawClient } from '../lib/raw-client.mjs';
import { everything, filesystem } from './targets.mjs';

/** Name -> the command, whether it speaks 2026-07-28 as well as the older revisions, and what is found of its tools. */
function servers(context) {
  const { node, nodeModules, pythonServers } = context;
  const npm = (path, ...args) => ({ command: [node, join(nodeModules, path), ...args], modern: false });
  const pypi = (module) => ({ command: [pythonServers, '-m', module], modern: true });
  return {
    // A tool of its can only be called as a task.
    everything: { command: everything.command(context), modern: false, notes: ['simulate-research-query /execution/taskSupport: needs_task'] },
    filesystem: { command: filesystem(context).command(context), modern: false },
    memory: npm('@modelcontextprotocol/server-memory/dist/index.js'),
    thinking: npm('@modelcontextprotocol/server-sequential-thinking/dist/index.js'),
    playwright: npm('@playwright/mcp/cli.js', '--output-dir', mkdtempSync(join(context.cache, 'files-'))),
    time: pypi('mcp_server_time'),
    fetch: pypi('mcp_server_fetch'),
    git: pypi('mcp_server_git'),
  };
}

export async function runSchemaServers(context, report) {
  report.section('lists of published servers');
  const all = servers(context);
  const open = [];
  try {
    const { child, port } = await startJanusOfHost(context.binary, Object.fromEntries(Object.entries(all).map(([name, { command }]) => [name, { command }])));
    open.push(child);
    const under = async ([name, server]) => checked(context, report, name, server, `http://127.0.0.1:${port}/${name}/mcp`);
    // Two at once: they are slow to start, and there are that many cores at least.
    const names = Object.entries(all);
    await Promise.all([0, 1].map(async (half) => {
      for (const entry of names.filter((_, at) => at % 2 === half)) await under(entry).catch((error) => report.check(entry[0], false, error.stack));
    }));
    if (context.verbose) report.note(`the proxy's log:\n${child.tail(200)}`);
  } catch (error) {
    report.check('the run itself', false, error.message);
  } finally {
    for (const thing of open.reverse()) await thing.stop();
  }
}

async function checked(context, report, name, { command, modern, notes = [] }, proxied) {
  const direct = { [LEGACY]: await listOf(() => RawClient.of(name, command, LEGACY)) };
  if (modern) direct[MODERN] = await listOf(() => RawClient.of(name, command, MODERN));
  const own = direct[modern ? MODERN : LEGACY];
  const count = own.tools.length;
  report.check(`${name}: lists tools`, count > 0);

  const like = modern ? MODERN : LEGACY;
  sameBytes(report, `${name}: ${count} tools pass byte for byte in ${like}`, await listOf(() => RawClient.at(proxied, like)), own);
  const unlike = modern ? LEGACY : MODERN;
  const translated = await listOf(() => RawClient.at(proxied, unlike));
  // What `execution` asks for is not there in the other era (A5.8).
  const wanted = own.tools.map(({ execution: _, ...tool }) => tool);
  report.check(`${name}: they mean the same in ${unlike}`, isDeepStrictEqual(translated.tools, wanted), firstDifference(translated.tools, wanted));

  const front = hostCommand(context.binary, { command });
  sameBytes(report, `${name}: they pass byte for byte over stdio`, await listOf(() => RawClient.of(`${name} behind stdio`, front, like)), own);
  if (modern) await likeLegacy(context, report, name, command, direct[LEGACY]);

  const { code, report: found, said } = await probe(context.binary, { command });
  const findings = found?.findings?.map(({ tool, at, kind }) => `${tool} ${at}: ${kind}`);
  const right = code === 0 && found?.tools?.listed === count && found.tools.left_out === 0 && findings.join() === notes.join();
  report.check(`${name}: probe lists all of them and finds ${notes.length === 0 ? 'nothing' : notes.join(', ')}`, right, said ?? findings?.join('\n'));
}

/** What speaks both eras, told to speak the older one. */
async function likeLegacy(context, report, name, command, own) {
  const { child, port } = await startJanus(context.binary, { command }, { settings: ['era = "legacy"'] });
  try {
    sameBytes(report, `${name}: they pass byte for byte in ${LEGACY}`, await listOf(() => RawClient.at(`http://127.0.0.1:${port}/mcp`, LEGACY)), own);
  } finally {
    await child.stop();
  }
}

async function listOf(connect) {
  const client = await connect();
  try {
    return await client.list();
  } finally {
    await client.close();
  }
}

function sameBytes(report, name, seen, own) {
  const same = seen.results.join('\n') === own.results.join('\n');
  report.check(name, same, `expected ${own.results.join('\n').slice(0, 1500)}\n     got ${seen.results.join('\n').slice(0, 1500)}`);
}

function firstDifference(seen, wanted) {
  const at = wanted.findIndex((tool, index) => !isDeepStrictEqual(tool, seen[index]));
  return `expected ${JSON.stringify(wanted[at])}\n     got ${JSON.stringify(seen[at])}`.slice(0, 3000);
}
