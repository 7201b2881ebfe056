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

// The official Mistral client under every fault.

import assert from 'node:assert/strict';

import { Mistral } from '@mistralai/mistralai';
import { SDKError } from '@mistralai/mistralai/models/errors';

import { by, image, is, schema, terminated } from './calls.mjs';
import { matrix } from './matrix.mjs';

const tools = [{ type: 'function', function: { name: 'lookup', description: 'looks up', parameters: schema } }];
const messages = (content) => [{ role: 'user', content }];
const withImage = (text) => [
  { type: 'text', text },
  { type: 'image_url', imageUrl: `data:image/png;base64,${image}` },
];

// read returns what pick finds in the events, and tells of the first.
async function read(events, seen, pick) {
  let all = '';
  for await (const { data } of events) {
    const piece = pick(data.choices[0].delta);
    if (piece) seen();
    all += piece ?? '';
  }
  return all;
}

const calls = {
  chat: {
    answer: 'chat',
    sends: (text) => [text],
    run: async (client, { model, text }) =>
      by((await client.chat.complete({ model, messages: messages(text) })).choices[0].message.content),
  },
  'chat, streamed': {
    stream: 'chat',
    sends: (text) => [text, '"stream":true'],
    run: async (client, { model, text, seen }) =>
      by(await read(await client.chat.stream({ model, messages: messages(text) }), seen, (delta) => delta.content)),
  },
  'tool call': {
    answer: 'tools',
    sends: (text) => [text, '"lookup"'],
    run: async (client, { model, text }) => {
      const [call] = (await client.chat.complete({ model, messages: messages(text), tools })).choices[0].message.toolCalls;
      assert.equal(call.function.name, 'lookup');
      return JSON.parse(call.function.arguments).by;
    },
  },
  'tool call, streamed': {
    stream: 'tools',
    sends: (text) => [text, '"lookup"'],
    run: async (client, { model, text, seen }) => {
      const events = await client.chat.stream({ model, messages: messages(text), tools });
      return JSON.parse(await read(events, seen, (delta) => delta.toolCalls?.[0].function.arguments)).by;
    },
  },
  'image as input': {
    answer: 'chat',
    sends: (text) => [text, image],
    run: async (client, { model, text }) =>
      by((await client.chat.complete({ model, messages: messages(withImage(text)) })).choices[0].message.content),
  },
  embeddings: {
    answer: 'embeddings',
    sends: (text) => [text],
    run: async (client, { model, text }) => {
      const answer = await client.embeddings.create({ model, inputs: text });
      assert.deepEqual(answer.data[0].embedding, [0.5, -1.25, 3]);
      return by(answer.model);
    },
  },
  'audio upload': {
    answer: 'transcription',
    sends: (text) => [text, 'bytes of speech'],
    run: async (client, { model, text }) => {
      const file = { fileName: 'speech.wav', content: Buffer.from('bytes of speech') };
      return by((await client.audio.transcriptions.complete({ model, file, contextBias: [text] })).text);
    },
  },
  'model list': {
    answer: 'models',
    modelless: true,
    sends: () => [],
    run: async (client) => by((await client.models.list()).data[0].id),
  },
};

const status = (wanted) => is(SDKError, (err) => err.statusCode === wanted);

matrix({
  name: 'mistral (Node)',
  api: 'mistral',
  path: '', // it adds /v1
  connect: (serverURL, apiKey) => new Mistral({ serverURL, apiKey }),
  calls,
  noModel: '',
  retries: false,
  raises: { 400: status(400), 404: status(404), 413: status(413), 500: status(500), 503: status(503) },
  broken: terminated,
  text: (err) => err.body,
  header: (err, name) => err.headers.get(name),
});
