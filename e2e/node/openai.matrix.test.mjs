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

// The official OpenAI client under every fault.

import assert from 'node:assert/strict';

import OpenAI, { toFile } from 'openai';

import { matrix } from './matrix.mjs';
import { by, image, is, schema, terminated } from './calls.mjs';

const tools = [{ type: 'function', function: { name: 'lookup', description: 'looks up', parameters: schema } }];
const ask = (content, more) => (client, { model, text }) =>
  client.chat.completions.create({ model, messages: [{ role: 'user', content: content(text) }], ...more });
const plain = (text) => text;
const withImage = (text) => [
  { type: 'text', text },
  { type: 'image_url', image_url: { url: `data:image/png;base64,${image}` } },
];

// read returns what pick finds in the chunks, and tells of the first.
async function read(chunks, seen, pick) {
  let all = '';
  for await (const chunk of chunks) {
    const piece = pick(chunk);
    if (piece) seen();
    all += piece ?? '';
  }
  return all;
}

const contentOf = (chunk) => chunk.choices[0]?.delta.content;
const argumentsOf = (chunk) => chunk.choices[0]?.delta.tool_calls?.[0]?.function.arguments;
const deltaOf = (event) => (event.type === 'response.output_text.delta' ? event.delta : '');

const calls = {
  chat: {
    answer: 'chat',
    sends: (text) => [text],
    run: async (client, args) => by((await ask(plain)(client, args)).choices[0].message.content),
  },
  'chat, streamed': {
    stream: 'chat',
    sends: (text) => [text, '"stream":true'],
    run: async (client, args) => by(await read(await ask(plain, { stream: true })(client, args), args.seen, contentOf)),
  },
  'tool call': {
    answer: 'tools',
    sends: (text) => [text, '"lookup"'],
    run: async (client, args) => {
      const [call] = (await ask(plain, { tools })(client, args)).choices[0].message.tool_calls;
      assert.equal(call.function.name, 'lookup');
      return JSON.parse(call.function.arguments).by;
    },
  },
  'tool call, streamed': {
    stream: 'tools',
    sends: (text) => [text, '"lookup"'],
    run: async (client, args) =>
      JSON.parse(await read(await ask(plain, { tools, stream: true })(client, args), args.seen, argumentsOf)).by,
  },
  'image as input': {
    answer: 'chat',
    sends: (text) => [text, image],
    run: async (client, args) => by((await ask(withImage)(client, args)).choices[0].message.content),
  },
  responses: {
    answer: 'responses',
    sends: (text) => [text],
    run: async (client, { model, text }) => by((await client.responses.create({ model, input: text })).output_text),
  },
  'responses, streamed': {
    stream: 'responses',
    sends: (text) => [text],
    run: async (client, { model, text, seen }) =>
      by(await read(await client.responses.create({ model, input: text, stream: true }), seen, deltaOf)),
  },
  embeddings: {
    answer: 'embeddings, base64',
    sends: (text) => [text],
    run: async (client, { model, text }) => {
      const answer = await client.embeddings.create({ model, input: text });
      assert.deepEqual(Array.from(answer.data[0].embedding), [0.5, -1.25, 3]);
      return by(answer.model);
    },
  },
  'image generation': {
    answer: 'image generation',
    sends: (text) => [text],
    run: async (client, { model, text }) => {
      const [{ b64_json, revised_prompt }] = (await client.images.generate({ model, prompt: text })).data;
      assert.equal(b64_json, image);
      return by(revised_prompt);
    },
  },
  'audio upload': {
    answer: 'transcription',
    sends: (text) => [text, 'bytes of speech'],
    run: async (client, { model, text }) => {
      const file = await toFile(Buffer.from('bytes of speech'), 'speech.wav', { type: 'audio/wav' });
      return by((await client.audio.transcriptions.create({ file, model, prompt: text })).text);
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
  name: 'openai (Node)',
  api: 'openai',
  path: '/v1',
  connect: (baseURL, apiKey, retries) => new OpenAI({ baseURL, apiKey, maxRetries: retries ? undefined : 0 }),
  calls,
  noModel: undefined,
  retries: true,
  raises: {
    400: is(OpenAI.BadRequestError),
    404: is(OpenAI.NotFoundError),
    413: is(OpenAI.APIError, (err) => err.status === 413),
    500: is(OpenAI.InternalServerError, (err) => err.status === 500),
    503: is(OpenAI.InternalServerError, (err) => err.status === 503 && err.code === 'no_channel_available'),
  },
  broken: terminated,
  text: (err) => err.message,
  header: (err, name) => err.headers.get(name),
});
