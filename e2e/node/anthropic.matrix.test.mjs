// Copyright 2026 The llm_gateway Authors
//
// Licensed under the Apache License, Version 2.0 (the "License");
// you may not use this file except in compliance with the License.
// You may obtain a copy of the License at
//
//     http://www.apache.org/licenses/LICENSE-2.0
//
// Unless required by applicable law or agreed to in writing, software
// distributed under the License is distributed on an "AS IS" BASIS,
// WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
// See the License for the specific language governing permissions and
// limitations under the License.

// The official Anthropic client under every fault.

import assert from 'node:assert/strict';

import Anthropic from '@anthropic-ai/sdk';

import { by, byNumber, image, is, schema, terminated } from './calls.mjs';
import { matrix } from './matrix.mjs';

const tools = [{ name: 'lookup', description: 'looks up', input_schema: schema }];
const ask = (content, more) => (client, { model, text }) =>
  client.messages.create({ model, max_tokens: 9, messages: [{ role: 'user', content: content(text) }], ...more });
const plain = (text) => text;
const withImage = (text) => [
  { type: 'image', source: { type: 'base64', media_type: 'image/png', data: image } },
  { type: 'text', text },
];

// read returns what the deltas have under the given name, and tells of the
// first.
async function read(events, seen, name) {
  let all = '';
  for await (const { type, delta } of events) {
    if (type !== 'content_block_delta') continue;
    seen();
    all += delta[name];
  }
  return all;
}

const calls = {
  chat: {
    answer: 'chat',
    sends: (text) => [text],
    run: async (client, args) => by((await ask(plain)(client, args)).content[0].text),
  },
  'chat, streamed': {
    stream: 'chat',
    sends: (text) => [text, '"stream":true'],
    run: async (client, args) => by(await read(await ask(plain, { stream: true })(client, args), args.seen, 'text')),
  },
  'chat, stream helper': {
    stream: 'chat',
    sends: (text) => [text, '"stream":true'],
    run: async (client, { model, text, seen }) => {
      const stream = client.messages.stream({ model, max_tokens: 9, messages: [{ role: 'user', content: text }] });
      return by(await stream.on('text', seen).finalText());
    },
  },
  'tool call': {
    answer: 'tools',
    sends: (text) => [text, '"lookup"'],
    run: async (client, args) => {
      const [{ type, name, input }] = (await ask(plain, { tools })(client, args)).content;
      assert.deepEqual([type, name], ['tool_use', 'lookup']);
      return input.by;
    },
  },
  'tool call, streamed': {
    stream: 'tools',
    sends: (text) => [text, '"lookup"'],
    run: async (client, args) =>
      JSON.parse(await read(await ask(plain, { tools, stream: true })(client, args), args.seen, 'partial_json')).by,
  },
  'image as input': {
    answer: 'chat',
    sends: (text) => [text, image],
    run: async (client, args) => by((await ask(withImage)(client, args)).content[0].text),
  },
  'count tokens': {
    answer: 'count tokens',
    sends: (text) => [text],
    run: async (client, { model, text }) => {
      const count = await client.messages.countTokens({ model, messages: [{ role: 'user', content: text }] });
      return byNumber(count.input_tokens);
    },
  },
  'model list': {
    answer: 'models',
    modelless: true,
    sends: () => [],
    run: async (client) => by((await client.models.list()).data[0].id),
  },
};

matrix({
  name: 'anthropic (Node)',
  api: 'anthropic',
  path: '',
  connect: (baseURL, apiKey, retries) => new Anthropic({ baseURL, apiKey, maxRetries: retries ? undefined : 0 }),
  calls,
  noModel: undefined,
  retries: true,
  raises: {
    400: is(Anthropic.BadRequestError, (err) => err.type === 'invalid_request_error'),
    404: is(Anthropic.NotFoundError, (err) => err.type === 'not_found_error'),
    413: is(Anthropic.APIError, (err) => err.status === 413 && err.type === 'request_too_large'),
    500: is(Anthropic.InternalServerError, (err) => err.status === 500),
    503: is(Anthropic.InternalServerError, (err) => err.status === 503),
  },
  broken: (err) => terminated(err instanceof Anthropic.AnthropicError ? err.cause : err), // the helper wraps it
  text: (err) => err.message,
  header: (err, name) => err.headers.get(name),
});
