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

// The official Gemini client under every fault.

import assert from 'node:assert/strict';

import { ApiError, GoogleGenAI } from '@google/genai';

import { by, byNumber, image, is, schema, terminated } from './calls.mjs';
import { matrix } from './matrix.mjs';

const config = { tools: [{ functionDeclarations: [{ name: 'lookup', description: 'looks up', parametersJsonSchema: schema }] }] };
const withImage = (text) => [{ inlineData: { mimeType: 'image/png', data: image } }, { text }];

// read returns what pick finds in the chunks, and tells of the first.
async function read(chunks, seen, pick) {
  const all = [];
  for await (const chunk of chunks) {
    const piece = pick(chunk);
    if (!piece) continue;
    seen();
    all.push(piece);
  }
  return all;
}

const callOf = (answer) => {
  if (!answer.functionCalls) return undefined;
  const [{ name, args }] = answer.functionCalls;
  assert.equal(name, 'lookup');
  return args.by;
};

const calls = {
  chat: {
    answer: 'chat',
    sends: (text) => [text],
    run: async (client, { model, text }) => by((await client.models.generateContent({ model, contents: text })).text),
  },
  'chat, streamed': {
    stream: 'chat',
    sends: (text) => [text],
    run: async (client, { model, text, seen }) => {
      const chunks = await client.models.generateContentStream({ model, contents: text });
      return by((await read(chunks, seen, (chunk) => chunk.text)).join(''));
    },
  },
  'tool call': {
    answer: 'tools',
    sends: (text) => [text, '"lookup"'],
    run: async (client, { model, text }) => callOf(await client.models.generateContent({ model, contents: text, config })),
  },
  'tool call, streamed': {
    stream: 'tools',
    sends: (text) => [text, '"lookup"'],
    run: async (client, { model, text, seen }) => {
      const chunks = await client.models.generateContentStream({ model, contents: text, config });
      return (await read(chunks, seen, callOf)).join('');
    },
  },
  'image as input': {
    answer: 'chat',
    sends: (text) => [text, image],
    run: async (client, { model, text }) =>
      by((await client.models.generateContent({ model, contents: withImage(text) })).text),
  },
  embeddings: {
    answer: 'embeddings',
    sends: (text) => [text],
    run: async (client, { model, text }) =>
      byNumber((await client.models.embedContent({ model, contents: text })).embeddings[0].values[0]),
  },
  'count tokens': {
    answer: 'count tokens',
    sends: (text) => [text],
    run: async (client, { model, text }) => byNumber((await client.models.countTokens({ model, contents: text })).totalTokens),
  },
  'model list': {
    answer: 'models',
    modelless: true,
    sends: () => [],
    run: async (client) => by((await client.models.list()).page[0].name.replace('models/', '')),
  },
};

const status = (wanted, name) =>
  is(ApiError, (err) => err.status === wanted && err.message.includes(`"status":"${name}"`));

matrix({
  name: 'genai (Node)',
  api: 'gemini',
  path: '',
  connect: (baseUrl, apiKey) => new GoogleGenAI({ apiKey, httpOptions: { baseUrl } }),
  calls,
  retries: false,
  raises: {
    400: status(400, 'INVALID_ARGUMENT'),
    404: status(404, 'NOT_FOUND'),
    413: is(ApiError, (err) => err.status === 413),
    500: status(500, 'INTERNAL'),
    503: status(503, 'UNAVAILABLE'),
  },
  broken: terminated,
  text: (err) => err.message,
});
