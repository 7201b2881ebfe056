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

// The official Mistral client, unmodified.

import { Mistral } from '@mistralai/mistralai';
import { HTTPClient } from '@mistralai/mistralai/lib/http.js';
import { SDKError } from '@mistralai/mistralai/models/errors';

import { clientKey } from './gateway.mjs';
import { audio, image, matrix } from './matrix.mjs';

const say = (content) => [{ role: 'user', content }];
const parameters = { type: 'object', properties: { city: { type: 'string' } } };
const tools = [{ type: 'function', function: { name: 'weather', parameters } }];
const picture = { type: 'image_url', imageUrl: `data:image/png;base64,${image}` };

function connect(serverURL, { headers = {} }) {
  const httpClient = new HTTPClient();
  httpClient.addHook('beforeRequest', (request) => {
    for (const [name, value] of Object.entries(headers)) request.headers.set(name, value);
  });
  return new Mistral({ serverURL, apiKey: clientKey, httpClient });
}

const textOf = ({ choices }) => choices[0].message.content;
const callOf = ([{ function: call }]) => ({ name: call.name, arguments: JSON.parse(call.arguments) });

// read passes each piece of content on, and returns them all.
async function read(chunks, pieceOf, received) {
  const pieces = [];
  for await (const { data } of await chunks) {
    const { delta } = data.choices[0];
    if (delta.content || delta.toolCalls) received();
    if (pieceOf(delta)) pieces.push(pieceOf(delta));
  }
  return pieces;
}

matrix({
  name: 'mistral (Node)',
  wire: 'mistral',
  retries: false,
  connect,
  status: (err) => err.statusCode,
  code: (err) => JSON.parse(err.body).error.code,
  header: (err, name) => err.headers.get(name),
  errors: {
    400: [SDKError, 'invalid_request'],
    404: [SDKError, 'model_not_found'],
    413: [SDKError, 'request_too_large'],
    503: [SDKError, 'no_channel_available'],
  },
  calls: {
    chat: async ({ chat }, { model, text }) => textOf(await chat.complete({ model, messages: say(text) })),
    'chat stream': async ({ chat }, { model, text, received }) =>
      (await read(chat.stream({ model, messages: say(text) }), (delta) => delta.content, received)).join(''),
    tools: async ({ chat }, { model, text }) => {
      const { choices } = await chat.complete({ model, messages: say(text), tools });
      return callOf(choices[0].message.toolCalls);
    },
    'tools stream': async ({ chat }, { model, text, received }) => {
      const chunks = chat.stream({ model, messages: say(text), tools });
      return callOf((await read(chunks, (delta) => delta.toolCalls, received)).flat());
    },
    'image input': async ({ chat }, { model, text }) =>
      textOf(await chat.complete({ model, messages: say([picture, { type: 'text', text }]) })),
    'audio upload': async (client, { model, text }) => {
      const file = { fileName: `${text.slice(0, 2)}.wav`, content: text === 'hi' ? audio : Buffer.alloc(text.length) };
      return (await client.audio.transcriptions.complete({ model, file })).text;
    },
    embeddings: async ({ embeddings }, { model, text }) => {
      const { data, id } = await embeddings.create({ model, inputs: [text] });
      return [data[0].embedding, id];
    },
    models: async ({ models }) => (await models.list()).data.map(({ id }) => id),
  },
});
