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

// The official Google Gen AI client, unmodified.

import { ApiError, GoogleGenAI } from '@google/genai';

import { clientKey } from './gateway.mjs';
import { image, matrix } from './matrix.mjs';

const parameters = { type: 'OBJECT', properties: { city: { type: 'STRING' } } };
const config = { tools: [{ functionDeclarations: [{ name: 'weather', description: 'The weather of a city', parameters }] }] };
const picture = { inlineData: { mimeType: 'image/png', data: image } };

const callOf = ([{ name, args }]) => ({ name, arguments: args });

// read passes each piece of content on, and returns them all.
async function read(chunks, pieceOf, received) {
  const pieces = [];
  for await (const chunk of await chunks) {
    if (chunk.candidates) received();
    if (pieceOf(chunk)) pieces.push(pieceOf(chunk));
  }
  return pieces;
}

matrix({
  name: 'genai (Node)',
  wire: 'gemini',
  retries: false,
  connect: (baseUrl, { headers }) => new GoogleGenAI({ apiKey: clientKey, httpOptions: { baseUrl, headers } }),
  status: (err) => err.status,
  code: (err) => JSON.parse(err.message).error.status,
  errors: {
    400: [ApiError, 'INVALID_ARGUMENT'],
    404: [ApiError, 'NOT_FOUND'],
    413: [ApiError, 'INVALID_ARGUMENT'],
    503: [ApiError, 'UNAVAILABLE'],
  },
  calls: {
    chat: async ({ models }, { model, text }) => (await models.generateContent({ model, contents: text })).text,
    'chat stream': async ({ models }, { model, text, received }) => {
      const chunks = models.generateContentStream({ model, contents: text });
      return (await read(chunks, (chunk) => chunk.text, received)).join('');
    },
    tools: async ({ models }, { model, text }) =>
      callOf((await models.generateContent({ model, contents: text, config })).functionCalls),
    'tools stream': async ({ models }, { model, text, received }) => {
      const chunks = models.generateContentStream({ model, contents: text, config });
      return callOf((await read(chunks, (chunk) => chunk.functionCalls, received)).flat());
    },
    'image input': async ({ models }, { model, text }) =>
      (await models.generateContent({ model, contents: [picture, { text }] })).text,
    embeddings: async ({ models }, { model, text }) => {
      const { embeddings } = await models.embedContent({ model, contents: text });
      return embeddings[0].values;
    },
    'token count': async ({ models }, { model, text }) => (await models.countTokens({ model, contents: text })).totalTokens,
    models: async ({ models }) => {
      const names = [];
      for await (const { name } of await models.list()) names.push(name);
      return names;
    },
  },
});
