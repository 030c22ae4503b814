// Owns: what the wire shows of questions, for the client scripts that answer them: how often a call ran, in which rounds it
// asked, and what the server was told when no answer came.
// Does not own: the other things a client asks the runner (answers.mjs), or what is right (asked.mjs, clients/).

const GIVEN_UP_MS = 8000;

export const ASKED = {
  mark: (_, world) => {
    world.marks = { front: world.front?.entries.items.length, upstream: world.upstream.entries.items.length, frontExchanges: world.front?.exchanges.length };
    return {};
  },
  'since-mark': sinceMark,
  'own-questions': ownQuestions,
  said: ({ lines }, world) => ({ times: lines.map((line) => world.server.lines.filter(({ text }) => text === line).length) }),
  'given-up': givenUp,
  'progress-of': progressOf,
  /** Streams that were taken up again where they had been closed. */
  resumed: (_, { upstream }) => ({ times: upstream.exchanges.filter(({ method, headers }) => method === 'GET' && headers['last-event-id'] !== undefined).length }),
};

/** How often the server got the call, and the kinds that the client was asked in each round. */
function sinceMark({ method }, { front, upstream, marks }) {
  const calls = upstream.entries.items.slice(marks.upstream).filter(({ direction, message }) => direction === 'request' && message.method === method);
  const rounds = (front?.entries.items.slice(marks.front) ?? upstream.entries.items.slice(marks.upstream)).filter(asksForInput);
  return { runs: calls.length, rounds: rounds.map(({ message }) => Object.values(message.result.inputRequests ?? {}).map(kindOf).sort()) };
}

function asksForInput({ direction, message }) {
  return direction === 'response' && message.result?.resultType === 'input_required';
}

function kindOf({ method, params }) {
  if (method === 'elicitation/create') return params.mode === 'url' ? 'url' : 'form';
  return method.split('/')[0];
}

/** Whether each question since the mark went to the call that it names: its user and its number are in the message. */
function ownQuestions({ tool }, { front, upstream, marks }) {
  const entries = front?.entries.items.slice(marks.front) ?? upstream.entries.items.slice(marks.upstream);
  const answers = entries.filter(asksForInput);
  const wrong = [];
  for (const { exchange, message } of answers) {
    const call = entries.find((entry) => entry.exchange === exchange && entry.direction === 'request' && entry.message.id === message.id)?.message;
    if (call?.params.name !== tool) continue;
    const { user, call: number } = call.params.arguments;
    for (const { params } of Object.values(message.result.inputRequests)) {
      if (params.message !== `${user}, what is your name? (${number})`) wrong.push(`${user} ${number} was asked: ${params.message}`);
    }
  }
  return { right: answers.length > 0 && wrong.length === 0, detail: wrong };
}

/** What the client was told of the progress of its last call of that tool, or of each leg of it since the mark. */
function progressOf({ tool, legs = false }, { front, upstream, marks }) {
  const { entries } = front ?? upstream;
  const from = legs ? (front === undefined ? marks.upstream : marks.front) : 0;
  const recent = entries.items.slice(from);
  const calls = recent.filter(({ direction, message }) => direction === 'request' && message.method === 'tools/call' && message.params.name === tool);
  const keyOf = ({ session }, token) => `${session} ${JSON.stringify(token)}`;
  const tokens = calls.slice(legs ? 0 : -1).map(({ exchange, message }) => keyOf(exchange, message.params._meta?.progressToken));
  const isTold = ({ method }) => method === 'notifications/progress';
  const told = recent.filter(({ exchange, message }) => isTold(message) && tokens.includes(keyOf(exchange, message.params.progressToken)));
  return { steps: told.map(({ message }) => message.params.progress) };
}

/** Waits until the last call of that tool is over for the server: its question answered with `cancel`, the call cancelled. */
async function givenUp({ tool, line }, { upstream, server }) {
  const { entries } = upstream;
  const call = entries.filter(({ direction, message }) => direction === 'request' && message.method === 'tools/call' && message.params.name === tool).at(-1);
  const session = call?.exchange.session;
  const told = (right) => entries.waitFor((entry) => entry.direction === 'request' && entry.exchange.session === session && right(entry.message), GIVEN_UP_MS);
  const missing = [];
  if ((await told(({ result }) => result?.action === 'cancel')) === null) missing.push('no answer "cancel"');
  if ((await told(({ method, params }) => method === 'notifications/cancelled' && params.requestId === call?.message.id)) === null) {
    missing.push('no notifications/cancelled for the call');
  }
  if (line !== undefined && (await server.lines.waitFor(({ text }) => new RegExp(line).test(text), GIVEN_UP_MS)) === null) {
    missing.push(`the server did not say ${line}`);
  }
  return { right: call !== undefined && missing.length === 0, detail: missing };
}
