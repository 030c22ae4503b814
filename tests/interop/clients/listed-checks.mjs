// Owns: the checks that the TypeScript clients of both generations make of a list of tools.
// Does not own: the clients (listed.mjs, listed-legacy.mjs).

import { check, same, step } from './checks.mjs';

/**
 * `tools`: names in their order; `called`: some of them; `refused`: {name, at}, where `at` is in the words of the refusal; `unfit`:
 * {name, arguments, at}, calls whose arguments do not fit, which is the model's to mend.
 */
export async function checkListed(client, { tools, called, refused, unfit = [] }) {
  await step('the list is taken', async () => {
    const listed = (await client.listTools()).tools.map(({ name }) => name);
    same(`${tools.length} tools are listed, in their order`, listed, tools);
  });
  for (const name of called) {
    await step(`tool ${name} is called`, async () => {
      const { content } = await client.callTool({ name, arguments: {} });
      same(`tool ${name} answers`, content[0]?.text, `ran ${name}`);
    });
  }
  for (const { name, arguments: args, at } of unfit) {
    await step(`tool ${name} is called with what does not fit`, async () => {
      const { isError, content } = await client.callTool({ name, arguments: args });
      check(`arguments of tool ${name} do not fit at ${at}, as a result says`, isError === true && content[0]?.text?.includes(at), content);
    });
  }
  const faults = [];
  for (const { name, at } of refused) {
    const error = await client.callTool({ name, arguments: {} }).then((result) => ({ code: 'no error', message: JSON.stringify(result) }), (thrown) => thrown);
    if (error.code !== -32602 || !error.message.includes(at)) faults.push(`${name}: ${error.code} ${error.message}`);
  }
  if (refused.length > 0) check(`${refused.length} other tools are refused, with the place in words`, faults.length === 0, faults.join('\n'));
}
